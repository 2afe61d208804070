/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/file.h"
#include "kube/server_version.h"
#include "test.h"

static const char *install_page; /* docs/operate/install.md */

static bool judge(const char *body, Fault *line) {
        return server_version_judge(&(KubeReply){.outcome = KUBE_DONE, .status = 200, .body = str_from(body)},
                                    line);
}

static void a_minor_that_was_run_is_news(void) {
        Fault line = FAULT_NULL;

        ASSERT_FALSE(judge("{\"major\":\"1\",\"minor\":\"31\",\"gitVersion\":\"v1.31.14\"}", &line));
        ASSERT_TEXT(line.text, "the API server is Kubernetes v1.31.14");
        ASSERT_FALSE(judge("{\"major\":\"1\",\"minor\":\"36+\",\"gitVersion\":\"v1.36.2-x\"}", &line));
        ASSERT_TEXT(line.text, "the API server is Kubernetes v1.36.2-x");
}

static void other_minors_are_warnings(void) {
        Fault line = FAULT_NULL;

        ASSERT_TRUE(judge("{\"major\":\"1\",\"minor\":\"21\",\"gitVersion\":\"v1.21.0\"}", &line));
        ASSERT_TEXT(line.text, "the API server is Kubernetes v1.21.0, older than 1.22, the floor");
        ASSERT_TRUE(judge("{\"major\":\"1\",\"minor\":\"22\",\"gitVersion\":\"v1.22.9\"}", &line));
        ASSERT_CONTAINS(line.text, "v1.22.9; aliquot was never run on 1.22 ");
        ASSERT_TRUE(judge("{\"major\":\"1\",\"minor\":\"37\",\"gitVersion\":\"v1.37.0\"}", &line));
        ASSERT_CONTAINS(line.text, "never run on 1.37 ");
}

static void without_an_answer_the_line_says_why(void) {
        static const char *const bodies[] = {"", "{}", "[1]", "{\"major\":\"2\",\"minor\":\"31\"}",
                                             "{\"major\":\"1\",\"minor\":\"x\"}"};
        KubeReply refused = {
                .outcome = KUBE_DONE, .status = 403, .fault = {.text = "GET /version: HTTP 403"}};
        Fault line = FAULT_NULL;

        for (size_t i = 0; i < ELEMENTSOF(bodies); i++) {
                ASSERT_FALSE(judge(bodies[i], &line));
                ASSERT_CONTAINS(line.text, "is not known: no minor of 1");
        }
        ASSERT_FALSE(server_version_judge(&refused, &line));
        ASSERT_TEXT(line.text, "the API server's version is not known: GET /version: HTTP 403");
}

static void must_contain(const char *page, const Buf *want) {
        ASSERT_OK(buf_result(want));
        if (!strstr(page, want->data))
                TEST_FAIL_("docs/operate/install.md lacks \"%s\"", want->data);
}

static void the_page_names_the_same_minors(void) {
        static const unsigned run[] = SERVER_MINORS_RUN;
        _cleanup_buf_ Buf page = BUF_NULL, want = BUF_NULL;

        ASSERT_OK(file_read(install_page, 1 << 20, &page));
        buf_appendf(&want, "| Kubernetes | 1.%d;", SERVER_MINOR_FLOOR);
        must_contain(page.data, &want);
        buf_clear(&want);
        buf_append_str(&want, STR("ran on Kubernetes "));
        for (size_t i = 0; i < ELEMENTSOF(run); i++)
                buf_appendf(&want, "%s1.%u", i == 0 ? "" : i + 1 < ELEMENTSOF(run) ? ", " : " and ", run[i]);
        buf_append_str(&want, STR(" "));
        must_contain(page.data, &want);
}

int main(int argc, char **argv) {
        ASSERT_INT(argc, 2);
        install_page = argv[1];
        return TEST_MAIN(TEST(a_minor_that_was_run_is_news), TEST(other_minors_are_warnings),
                         TEST(without_an_answer_the_line_says_why), TEST(the_page_names_the_same_minors));
}
