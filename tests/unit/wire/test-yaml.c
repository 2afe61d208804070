/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/yaml.h"

#include <errno.h>

#include "test.h"

/* Every document as one line of JSON, after the line where it starts. */
static int collect(void *userdata, Str json, unsigned line, Fault *fault) {
        Buf *out = userdata;

        buf_appendf(out, "%u:" STR_FMT "\n", line, STR_ARG(json));
        return 0;
}

static void expect(const char *yaml, const char *documents) {
        _cleanup_buf_ Buf out = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r = yaml_documents(str_from(yaml), collect, &out, &fault);

        if (r != 0)
                TEST_FAIL_("%s: %d %s", yaml, r, fault.text);
        ASSERT_STR(buf_str(&out), str_from(documents));
}

/* One value, as JSON. */
static void expect_value(const char *scalar, const char *json) {
        _cleanup_buf_ Buf yaml = BUF_NULL;
        _cleanup_buf_ Buf document = BUF_NULL;

        buf_appendf(&yaml, "v: %s\n", scalar);
        buf_appendf(&document, "1:{\"v\":%s}\n", json);
        expect(yaml.data, document.data);
}

static void refuse_str(Str yaml, const char *why) {
        _cleanup_buf_ Buf out = BUF_NULL;
        Fault fault = FAULT_NULL;

        ASSERT_INT(yaml_documents(yaml, collect, &out, &fault), YAML_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, why);
}

static void refuse(const char *yaml, const char *why) {
        refuse_str(str_from(yaml), why);
}

static void a_manifest_of_ack(void) {
        expect("# binpack of cGPU, as in the ACK documentation\n"
               "apiVersion: apps/v1\n"
               "kind: StatefulSet\n"
               "metadata:\n"
               "  name: app-3g-v1\n"
               "  labels:\n"
               "    app: app-3g-v1\n"
               "spec:\n"
               "  replicas: 1\n"
               "  serviceName: \"app-3g-v1\"\n"
               "  podManagementPolicy: \"Parallel\"\n"
               "  selector: # define how the deployment finds the pods it manages\n"
               "    matchLabels:\n"
               "      app: app-3g-v1\n"
               "  template:\n"
               "    spec:\n"
               "      containers:\n"
               "      - name: app-3g-v1\n"
               "        image: registry.example.com/gpu-player:v2\n"
               "        resources:\n"
               "          limits:\n"
               "            aliyun.com/gpu-mem: 4\n",
               "2:{\"apiVersion\":\"apps/"
               "v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"app-3g-v1\",\"labels\":{"
               "\"app\":\"app-3g-v1\"}},\"spec\":{\"replicas\":1,\"serviceName\":\"app-3g-v1\","
               "\"podManagementPolicy\":"
               "\"Parallel\",\"selector\":{\"matchLabels\":{\"app\":\"app-3g-v1\"}},\"template\":{\"spec\":{"
               "\"containers\":[{"
               "\"name\":\"app-3g-v1\",\"image\":\"registry.example.com/"
               "gpu-player:v2\",\"resources\":{\"limits\":{"
               "\"aliyun.com/gpu-mem\":4}}}]}}}}\n");
}

static void several_documents_and_empty_ones(void) {
        expect("---\n# nothing here\n---\na: 1\n---\n---\n\nb: 2\n...\n# the end\n",
               "4:{\"a\":1}\n8:{\"b\":2}\n");
        expect("", "");
        expect("# only a comment\n", "");
        expect("---\n", "");
        expect("null\n", "");
        expect("\xef\xbb\xbf"
               "a: b\n",
               "1:{\"a\":\"b\"}\n");
        expect("a: b\r\nc: d\r\n", "1:{\"a\":\"b\",\"c\":\"d\"}\n");
}

static void json_is_yaml(void) {
        expect("{\n\t\"a\": [1, 2.5, true, null, \"x\\u00e9\\ud83d\\ude00\\/\"],\n\t\"b\": {}\n}\n",
               "1:{\"a\":[1,2.5,true,null,\"xé😀/\"],\"b\":{}}\n");
        expect("[]", "1:[]\n");
        expect("\"text\"", "1:\"text\"\n");
}

static void block_scalars_and_flow_style(void) {
        expect("command: [sh, -c, \"echo $A\"]\n"
               "script: |\n"
               "  set -e\n"
               "  if x; then\n"
               "    y\n"
               "  fi\n"
               "folded: >-\n"
               "  one\n"
               "  line\n"
               "args: [\n"
               "  a, b\n"
               "]\n"
               "limits: {aliyun.com/gpu-mem: 3, cpu: 500m}\n",
               "1:{\"command\":[\"sh\",\"-c\",\"echo $A\"],\"script\":\"set -e\\nif x; then\\n  "
               "y\\nfi\\n\",\"folded\":"
               "\"one "
               "line\",\"args\":[\"a\",\"b\"],\"limits\":{\"aliyun.com/gpu-mem\":3,\"cpu\":\"500m\"}}\n");
}

static void words_as_kubectl_reads_them(void) {
        expect_value("yes", "true");
        expect_value("On", "true");
        expect_value("y", "true");
        expect_value("NO", "false");
        expect_value("off", "false");
        expect_value("True", "true");
        expect_value("tRUE", "\"tRUE\"");
        expect_value("~", "null");
        expect_value("Null", "null");
        expect_value("", "null");
        expect_value("\"yes\"", "\"yes\"");
        expect_value("'~'", "\"~\"");
        expect_value("\"\"", "\"\"");
}

static void numbers_as_kubectl_reads_them(void) {
        expect_value("3", "3");
        expect_value("\"3\"", "\"3\"");
        expect_value("'3'", "\"3\"");
        expect_value("-3", "-3");
        expect_value("+3", "3");
        expect_value("-0", "0");
        expect_value("0", "0");
        expect_value("0644", "420");
        expect_value("0o644", "420");
        expect_value("0x1F", "31");
        expect_value("-0x1f", "-31");
        expect_value("0b101", "5");
        expect_value("08", "8");
        expect_value("1_000", "1000");
        expect_value("1.50", "1.50");
        expect_value("1.", "1");
        expect_value(".5", "0.5");
        expect_value("-.5", "-0.5");
        expect_value("+1.5", "1.5");
        expect_value("007.5", "7.5");
        expect_value("1e3", "1e3");
        expect_value("1.E+3", "1E+3");
        expect_value("9223372036854775807", "9223372036854775807");
        expect_value("18446744073709551615", "18446744073709551615");
        expect_value("18446744073709551616", "18446744073709551616");
        expect_value("-9223372036854775808", "-9223372036854775808");
        expect_value("-9223372036854775809", "-9223372036854775809");
        refuse("v: 0xffffffffffffffffff\n", "line 1, column 4: number does not fit 64 bits: \"0xff");
        refuse("v: .inf\n", "JSON has no number \".inf\"");
        refuse("v: [.NaN]\n", "JSON has no number \".NaN\"");
}

static void what_only_looks_like_a_number(void) {
        expect_value("1.2.3", "\"1.2.3\"");
        expect_value("2Gi", "\"2Gi\"");
        expect_value("500m", "\"500m\"");
        expect_value("1e", "\"1e\"");
        expect_value("1e400", "\"1e400\"");
        expect_value("0x", "\"0x\"");
        expect_value("+", "\"+\"");
        expect_value(".", "\".\"");
        expect_value("12:30", "\"12:30\"");
        expect_value("2024-01-02", "\"2024-01-02\"");
        expect_value("2024-01-02T03:04:05Z", "\"2024-01-02T03:04:05Z\"");
        expect_value("v1.20", "\"v1.20\"");
        expect_value("1,000", "\"1,000\"");
}

static void tags(void) {
        expect_value("!!str 3", "\"3\"");
        expect_value("! 3", "\"3\"");
        expect_value("!!int \"3\"", "3");
        expect_value("!!float 3", "3");
        expect_value("!!bool yes", "true");
        expect_value("!!null ''", "null");
        refuse("v: !!int x\n", "the value does not fit its tag");
        refuse("v: !!binary aGk=\n", "unknown tag \"tag:yaml.org,2002:binary\"");
        refuse("v: !secret x\n", "unknown tag \"!secret\"");
}

static void keys_become_strings(void) {
        expect("1: a\ntrue: b\n\"x y\": c\n0x10: d\nn: e\n",
               "1:{\"1\":\"a\",\"true\":\"b\",\"x y\":\"c\",\"16\":\"d\",\"false\":\"e\"}\n");
        refuse("? [a]\n: b\n", "line 1, column 3: a key must be a scalar");
        refuse("? {a: 1}\n: b\n", "a key must be a scalar");
        refuse("a: 1\nb: 2\na: 3\n", "line 3, column 1: duplicate key \"a\"");
        refuse("{\"a\": 1, a: 2}", "duplicate key \"a\"");
        refuse("x:\n- 1: a\n  \"1\": b\n", "duplicate key \"1\"");
}

static void anchors_and_merge_keys(void) {
        expect("a: &x {mem: 3}\nb: *x\n", "1:{\"a\":{\"mem\":3},\"b\":{\"mem\":3}}\n");
        expect("a: &x 3\nb: [*x, *x]\n*x : 4\n", "1:{\"a\":3,\"b\":[3,3],\"3\":4}\n");
        expect("a: &x {m: 1, u: 2}\nb:\n  <<: *x\n  u: 3\n  o: 4\n",
               "1:{\"a\":{\"m\":1,\"u\":2},\"b\":{\"u\":3,\"o\":4,\"m\":1}}\n");
        expect("a: &x {m: 1}\nb: &y {m: 2, u: 2}\nc: {<<: [*x, *y]}\n",
               "1:{\"a\":{\"m\":1},\"b\":{\"m\":2,\"u\":2},\"c\":{\"m\":1,\"u\":2}}\n");
        expect("a: &x {m: 1}\nb: &y {<<: *x, u: 2}\nc: {<<: *y}\n",
               "1:{\"a\":{\"m\":1},\"b\":{\"u\":2,\"m\":1},\"c\":{\"u\":2,\"m\":1}}\n");
        expect("\"<<\": {m: 1}\n", "1:{\"<<\":{\"m\":1}}\n");
        expect("a: &x 1\nb: &x 2\nc: *x\n", "1:{\"a\":1,\"b\":2,\"c\":2}\n");
        refuse("a: *nope\n", "line 1, column 5: no such anchor: \"nope\"");
        refuse("a: &x 1\n---\nb: *x\n", "line 3, column 5: no such anchor: \"x\"");
        refuse("a: &x [1, *x]\n", "an anchor that contains itself: \"x\"");
        refuse("a: &x\n  <<: *x\n", "an anchor that contains itself: \"x\"");
        refuse("<<: 3\n", "a merge key takes a map");
        refuse("<<: [{a: 1}, 3]\n", "a merge key takes a map");
}

static void faults_name_line_and_column(void) {
        refuse("a: 1\nb: c: d\n", "line 2, column 5: ");
        refuse("a:\n\t- b\n", "line 2, column 1: tab character");
        refuse("a: \"never closed\n", "without closing quote");
        refuse("a: [1, 2\n", "line ");
        refuse("- a\nb: c\n", "line 2, column 1: ");
        refuse("%YAML 1.1\n---\na: b\n", "line 1, column 1: YAML directives");
        refuse("a: b\n...\r\n%TAG ! x\n", "line 3, column 1: YAML directives");
        refuse("{\"a\":1}\n}\n", "line 2");
        refuse("a: \xff\n", "not UTF-8");
        refuse("%Y\xc1ML 1.1\n", "not UTF-8");
}

static Buf repeat(const char *head, const char *piece, size_t n, const char *tail) {
        Buf b = BUF_NULL;

        buf_append_str(&b, str_from(head));
        for (size_t i = 0; i < n; i++)
                buf_append_str(&b, str_from(piece));
        buf_append_str(&b, str_from(tail));
        ASSERT_OK(buf_result(&b));
        return b;
}

static void depth_is_bounded(void) {
        _cleanup_buf_ Buf just = repeat("", "[", 60, "");
        _cleanup_buf_ Buf over = repeat("", "[", 61, "");
        _cleanup_buf_ Buf far = repeat("", "[", 100000, "");
        _cleanup_buf_ Buf maps = repeat("", "{a: ", 100000, "");

        for (int i = 0; i < 60; i++)
                buf_append_char(&just, ']');
        expect(just.data, "1:[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
                          "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n");
        refuse_str(buf_str(&over), "nested deeper than 60 levels");
        refuse_str(buf_str(&far), "nested deeper than 60 levels");
        refuse_str(buf_str(&maps), "nested deeper than 60 levels");
}

/* Ten levels of ten aliases each: 10^10 values from 600 bytes. */
static void billion_laughs(void) {
        _cleanup_buf_ Buf b = BUF_NULL;
        _cleanup_buf_ Buf merges = BUF_NULL;
        _cleanup_buf_ Buf deep = BUF_NULL;

        buf_append_str(&b, STR("l0: &l0 [lol]\n"));
        for (int i = 1; i <= 10; i++) {
                buf_appendf(&b, "l%d: &l%d [", i, i);
                for (int k = 0; k < 10; k++)
                        buf_appendf(&b, "*l%d%s", i - 1, k < 9 ? "," : "]\n");
        }
        refuse_str(buf_str(&b), "aliases repeat more than 4 MiB");

        /* Every map merges all members of the one before it: the sum is quadratic. */
        buf_append_str(&merges, STR("m0: &m0 {k0: 0}\n"));
        for (int i = 1; i < 900; i++)
                buf_appendf(&merges, "m%d: &m%d {<<: *m%d, k%d: 0}\n", i, i, i - 1, i);
        refuse_str(buf_str(&merges), "merge keys copy more than 100000 members");

        buf_append_str(&deep, STR("d0: &d0 [x]\n"));
        for (int i = 1; i < 100; i++)
                buf_appendf(&deep, "d%d: &d%d [*d%d]\n", i, i, i - 1);
        refuse_str(buf_str(&deep), "nested deeper than 60 levels by its aliases");
}

static void sizes_are_bounded(void) {
        _cleanup_buf_ Buf values = repeat("[", "1,", 1000000, "1]");
        _cleanup_buf_ Buf anchors = repeat("", "- &a 1\n", 1001, "");
        _cleanup_buf_ Buf bytes = repeat("", "# 32 bytes of comment, no more.\n", 1024 * 1024 + 1, "");

        refuse_str(buf_str(&values), "more than 1000000 values");
        refuse_str(buf_str(&anchors), "line 1001, column 6: more than 1000 anchors");
        refuse_str(buf_str(&bytes), "at most 32 MiB are taken");
}

static int stop(void *userdata, Str json, unsigned line, Fault *fault) {
        ++*(int *) userdata;
        return fault_set(fault, -ECANCELED, "enough");
}

static void the_callback_may_stop(void) {
        Fault fault = FAULT_NULL;
        int n = 0;

        ASSERT_INT(yaml_documents(STR("a: 1\n---\nb: 2\n"), stop, &n, &fault), -ECANCELED);
        ASSERT_INT(n, 1);
        ASSERT_TEXT(fault.text, "enough");
}

/* Cut anywhere, in an allocation that ends there. */
static void every_prefix(void) {
        static const char text[] = "a: &x {b: \"q\\n\", c: 'd'}\n"
                                   "s: |-\n  one\n  two\n"
                                   "<<: *x\n"
                                   "l: [1, 0x2, !!str 3]\n---\n- ? k\n  : v\n";

        for (size_t len = 0; len < sizeof text; len++) {
                _cleanup_buf_ Buf out = BUF_NULL;
                Fault fault = FAULT_NULL;
                char *exact = malloc(len + 1);
                int r;

                ASSERT_TRUE(exact);
                exact = realloc(exact, len > 0 ? len : 1);
                memcpy(exact, text, len);
                r = yaml_documents((Str){exact, len}, collect, &out, &fault);
                ASSERT_TRUE(r == 0 || (r == YAML_E_MALFORMED && fault.text[0] != '\0'));
                free(exact);
        }
}

int main(void) {
        return TEST_MAIN(TEST(a_manifest_of_ack), TEST(several_documents_and_empty_ones), TEST(json_is_yaml),
                         TEST(block_scalars_and_flow_style), TEST(words_as_kubectl_reads_them),
                         TEST(numbers_as_kubectl_reads_them), TEST(what_only_looks_like_a_number), TEST(tags),
                         TEST(keys_become_strings), TEST(anchors_and_merge_keys),
                         TEST(faults_name_line_and_column), TEST(depth_is_bounded), TEST(billion_laughs),
                         TEST(sizes_are_bounded), TEST(the_callback_may_stop), TEST(every_prefix));
}
