/*
 * What every unit test includes: cmocka with what it needs in front, and a few helpers. A test is a
 * static function whose name is the sentence it proves, listed once in main.
 */
#ifndef UNIT_H
#define UNIT_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fs.h"

#define TEST(name) static void name(void **state UNUSED)
#define RUN_TESTS(tests) cmocka_run_group_tests((tests), NULL, NULL)

/* The call succeeds; its error text is shown if it does not. */
#define assert_ok(call, err) \
    do { \
        int ok_ = (call); \
        if (ok_ < 0) \
            fail_msg("%s: %d: %s", #call, ok_, (err)->text); \
    } while (0)

/* The call fails with this code and this whole text. */
#define assert_fails(call, err, want_code, want_text) \
    do { \
        *(err) = ERR_INIT; \
        assert_int_equal((call), (want_code)); \
        assert_int_equal((err)->code, (want_code)); \
        assert_string_equal((err)->text, (want_text)); \
    } while (0)

/* A new empty folder; unit_dir_done removes it. */
#define UNIT_DIR_MAX 64
static inline UNUSED void unit_dir_init(char path[UNIT_DIR_MAX])
{
    snprintf(path, UNIT_DIR_MAX, "/tmp/muster-unit-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static inline UNUSED void unit_dir_done(const char *path)
{
    struct err err = ERR_INIT;

    assert_ok(fs_remove_tree(path, &err), &err);
}

static inline UNUSED void unit_write(const char *path, const char *text)
{
    struct err err = ERR_INIT;

    assert_ok(fs_write(path, text, strlen(text), 0644, &err), &err);
}

/* The whole file; heap. */
static inline UNUSED char *unit_read(const char *path)
{
    struct err err = ERR_INIT;
    char *text = NULL;

    assert_ok(fs_read(path, 1024 * 1024, &text, NULL, &err), &err);
    return text;
}

#endif
