/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Typed assertions that print both values, and a list of cases per program:
 *     int main(void) { return TEST_MAIN(TEST(parses_units), TEST(refuses_zero)); }
 * A failed assertion ends the program with its place; meson counts programs, we print cases. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

typedef struct TestCase {
        const char *name;
        void (*run)(void);
} TestCase;

#define TEST(function)                                                                                       \
        { #function, function }
#define TEST_MAIN(...)                                                                                       \
        test_run((const TestCase[]){__VA_ARGS__}, sizeof((const TestCase[]){__VA_ARGS__}) / sizeof(TestCase))

static inline int test_run(const TestCase *cases, size_t n) {
        (void) setvbuf(stdout, NULL, _IOLBF, 0); /* the last "ok" must be out when the next case aborts */
        for (size_t i = 0; i < n; i++) {
                cases[i].run();
                printf("ok %s\n", cases[i].name);
        }
        return 0;
}

#define TEST_FAIL_(...)                                                                                      \
        do {                                                                                                 \
                (void) fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                       \
                (void) fprintf(stderr, __VA_ARGS__);                                                         \
                (void) fputc('\n', stderr);                                                                  \
                abort();                                                                                     \
        } while (0)

#define ASSERT_TRUE(e)                                                                                       \
        do {                                                                                                 \
                if (!(e))                                                                                    \
                        TEST_FAIL_("%s is false", #e);                                                       \
        } while (0)
#define ASSERT_FALSE(e) ASSERT_TRUE(!(e))

#define ASSERT_INT(a, b)                                                                                     \
        do {                                                                                                 \
                int64_t a_ = (int64_t) (a), b_ = (int64_t) (b);                                              \
                if (a_ != b_)                                                                                \
                        TEST_FAIL_("%s is %" PRId64 ", expected %" PRId64 " (%s)", #a, a_, b_, #b);          \
        } while (0)
#define ASSERT_OK(r) ASSERT_INT(r, 0)

#define ASSERT_STR(a, b)                                                                                     \
        do {                                                                                                 \
                Str a_ = (a), b_ = (b);                                                                      \
                if (!str_eq(a_, b_))                                                                         \
                        TEST_FAIL_("%s is \"" STR_FMT "\", expected \"" STR_FMT "\"", #a, STR_ARG(a_),       \
                                   STR_ARG(b_));                                                             \
        } while (0)
#define ASSERT_TEXT(a, b) ASSERT_STR(str_from(a), str_from(b))

#define ASSERT_CONTAINS(haystack, needle)                                                                    \
        do {                                                                                                 \
                const char *h_ = (haystack), *n_ = (needle);                                                 \
                if (!strstr(h_, n_))                                                                         \
                        TEST_FAIL_("%s is \"%s\", which lacks \"%s\"", #haystack, h_, n_);                   \
        } while (0)
