/* SPDX-License-Identifier: Apache-2.0 */
#include "local/manifests.h"

#include <stdlib.h>

#include "test.h"

static char path[] = "/tmp/aliquot-manifest-XXXXXX";

static int load(const char *text, Manifests *m, Fault *fault) {
        FILE *f = fopen(path, "we");

        ASSERT_TRUE(f);
        ASSERT_INT(fwrite(text, 1, strlen(text), f), strlen(text));
        ASSERT_OK(fclose(f));
        return manifests_load(m, path, fault);
}

static void takes_lists_apart(void) {
        _cleanup_(manifests_done) Manifests m = MANIFESTS_NULL;

        ASSERT_OK(load(
                "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n# nothing\n---\n"
                "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n"
                "- apiVersion: v1\n  kind: List\n  items:\n  - {apiVersion: v1, kind: Pod, metadata: {name: "
                "c}}\n"
                "---\n{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"d\"}}]"
                "}\n",
                &m, NULL));
        ASSERT_INT(m.n, 4);
        for (size_t i = 0; i < m.n; i++) {
                char name[2] = {(char) ('a' + (char) i), '\0'};

                ASSERT_TEXT(tree_text(m.items[i].object, "metadata", "name", NULL), name);
                ASSERT_TEXT(tree_text(m.items[i].object, "kind", NULL), "Pod");
        }
}

static void says_where_and_what(void) {
        static const char *const cases[][2] = {
                {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: b}\n",
                 ": document 2 (line 5): apiVersion is missing"},
                {"apiVersion: v1\nmetadata: {name: a}\n", ": document 1 (line 1): kind is missing"},
                {"apiVersion: v1\nkind: 7\nmetadata: {name: a}\n", "kind is 7, must be a string: quote it"},
                {"apiVersion: v1\nkind: Pod\n", "kind Pod: metadata is missing"},
                {"apiVersion: v1\nkind: Pod\nmetadata: {}\n", "kind Pod: metadata.name is missing"},
                {"apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n",
                 "kind Pod: metadata.name is 5, must be a string: quote it"},
                {"- a\n- b\n", "not an object"},
                {"just words\n", "not an object"},
                {"apiVersion: v1\nkind: List\nitems:\n- 5\n", "items[0]: not an object"},
                {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\na: [1\n", ": document 2: "},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(manifests_done) Manifests m = MANIFESTS_NULL;
                Fault fault = FAULT_NULL;

                ASSERT_INT(load(cases[i][0], &m, &fault), MANIFEST_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, cases[i][1]);
                ASSERT_CONTAINS(fault.text, path);
        }
}

static void says_which_file_is_missing(void) {
        _cleanup_(manifests_done) Manifests m = MANIFESTS_NULL;
        Fault fault = FAULT_NULL;

        ASSERT_INT(manifests_load(&m, "/proc/self/absent/x.yaml", &fault), MANIFEST_E_MALFORMED);
        ASSERT_TEXT(fault.text, "/proc/self/absent/x.yaml: cannot be read: No such file or directory");
        ASSERT_INT(manifests_load(&m, "/proc/self/fdinfo", &fault), MANIFEST_E_MALFORMED);
        ASSERT_TEXT(fault.text, "/proc/self/fdinfo: has no .yaml, .yml or .json file");
}

int main(void) {
        int fd = mkstemp(path), r;

        ASSERT_TRUE(fd >= 0);
        (void) close(fd);
        r = TEST_MAIN(TEST(takes_lists_apart), TEST(says_where_and_what), TEST(says_which_file_is_missing));
        (void) unlink(path);
        return r;
}
