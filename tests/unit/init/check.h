/* cmocka.h and what it forgets to include. */
#ifndef TESTS_UNIT_INIT_CHECK_H
#define TESTS_UNIT_INIT_CHECK_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
