/* cmocka, with the headers that it wants before it, and one assertion of ours. */
#ifndef SUPPORT_CM_H
#define SUPPORT_CM_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

/* The call fails with this code and exactly this text. */
#define assert_fails(call, want_code, want_text) \
    do { \
        struct err err = ERR_INIT; \
        assert_int_equal((call), (want_code)); \
        assert_string_equal(err_text(&err), (want_text)); \
    } while (0)
#define assert_works(call) \
    do { \
        struct err err = ERR_INIT; \
        int r_ = (call); \
        if (r_ < 0) \
            fail_msg("%s: %s", #call, err_text(&err)); \
    } while (0)

#endif
