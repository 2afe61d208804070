/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page/page_host.h"

#include <errno.h>

#include "test.h"

static void an_address_is_ours_and_a_name_is_not(void) {
        static const char *const ours[] = {"localhost",   "LocalHost:65535", "127.0.0.1",
                                           "10.1.2.3:80", "[::1]",           "[::1]:0"};
        static const char *const others[] = {"",
                                             "a",
                                             "localhost.a",
                                             "a:80",
                                             "127.0.0.1.a",
                                             ":80",
                                             "[::1",
                                             "[]",
                                             "[::1]80",
                                             "[a]:1",
                                             "1.2.3",
                                             "localhost:",
                                             "localhost:65536",
                                             "localhost:a",
                                             "127.0.0.1:1:1",
                                             "[127.0.0.1]"};

        ASSERT_TRUE(!page_host_is_ours(NULL, NULL));
        for (size_t i = 0; i < ELEMENTSOF(ours); i++)
                ASSERT_TRUE(page_host_is_ours(ours[i], NULL));
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                ASSERT_TRUE(!page_host_is_ours(others[i], NULL) && !page_host_is_ours(others[i], "b.c,d"));
}

static void a_name_of_the_list_is_ours(void) {
        static const char *const ours[] = {"gpus.example.com", "GPUs.example.com:8443", "b", "localhost:1"};
        static const char *const others[] = {
                "example.com", "gpus.example.com.a", "gpus.example.co", "gpus.example.com,b", "[b]", "b:x"};

        for (size_t i = 0; i < ELEMENTSOF(ours); i++)
                ASSERT_TRUE(page_host_is_ours(ours[i], "gpus.example.com,b"));
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                ASSERT_TRUE(!page_host_is_ours(others[i], "gpus.example.com,b"));
}

static void a_list_has_names_alone(void) {
        static const char *const good[] = {"a", "a,b", "gpus.example.com,B-1"};
        static const char *const bad[] = {"", ",", "a,,b", "a:80", "a b", "*.example.com", "http://a", "a/"};
        char longest[512];

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                ASSERT_OK(page_host_check_names(good[i], NULL));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                Fault fault = FAULT_NULL;

                ASSERT_INT(page_host_check_names(bad[i], &fault), -EINVAL);
                ASSERT_CONTAINS(fault.text, "must be host names");
        }
        memset(longest, 'a', sizeof longest);
        longest[253] = '\0';
        ASSERT_OK(page_host_check_names(longest, NULL));
        ASSERT_TRUE(page_host_is_ours(longest, longest));
        longest[253] = 'a';
        longest[254] = '\0';
        ASSERT_INT(page_host_check_names(longest, NULL), -EINVAL);
}

static void another_site_may_only_open_the_page(void) {
        ASSERT_TRUE(page_host_may_fetch(NULL, false));
        ASSERT_TRUE(page_host_may_fetch("same-origin", false));
        ASSERT_TRUE(page_host_may_fetch("none", false));
        ASSERT_TRUE(page_host_may_fetch("cross-site", true));
        ASSERT_TRUE(!page_host_may_fetch("cross-site", false));
        ASSERT_TRUE(!page_host_may_fetch("same-site", false));
        ASSERT_TRUE(!page_host_may_fetch("", false));
}

static void it_listens_on_the_loopback_alone(void) {
        static const char *const good[] = {"127.0.0.1:0", "127.1.2.3:80", "[::1]:80"};
        static const char *const bad[] = {"",           "127.0.0.1",
                                          "::1",        "[::1]",
                                          "[::]:80",    "0.0.0.0:80",
                                          "10.0.0.1:1", "[127.0.0.1]:80",
                                          ":8080",      "[::ffff:127.0.0.1]:80"};

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                ASSERT_INT(page_host_check_listen(good[i], NULL), 0);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ASSERT_INT(page_host_check_listen(bad[i], NULL), -EINVAL);
}

int main(void) {
        return TEST_MAIN(TEST(an_address_is_ours_and_a_name_is_not), TEST(a_name_of_the_list_is_ours),
                         TEST(a_list_has_names_alone), TEST(another_site_may_only_open_the_page),
                         TEST(it_listens_on_the_loopback_alone));
}
