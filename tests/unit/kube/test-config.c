/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "kube/config.h"
#include "kube/token.h"
#include "test.h"

static char dir[] = "/tmp/aliquot-test-XXXXXX";

static const char *put(const char *name, const char *text) {
        static char paths[8][128];
        static unsigned next;
        char *path = paths[next++ % 8];
        FILE *f;

        (void) snprintf(path, 128, "%s/%s", dir, name);
        f = fopen(path, "we");
        ASSERT_TRUE(f && fputs(text, f) >= 0 && fclose(f) == 0);
        return path;
}

static void reads_a_kubeconfig(void) {
        const char *path =
                put("config",
                    "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
                    "clusters:\n- name: c\n  cluster: {server: 'https://10.0.0.1:6443/', "
                    "certificate-authority: pki/ca.crt}\n"
                    "users:\n- name: u\n  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}\n"
                    "- name: t\n  user: {tokenFile: tok}\n"
                    "contexts:\n- name: here\n  context: {cluster: c, user: u, namespace: ns}\n"
                    "- {name: there, context: {cluster: c, user: t}}\n");
        _cleanup_buf_ Buf key = BUF_NULL;
        char expected[128], scratch[128];
        Fault fault = FAULT_NULL;
        KubeConfig *c = NULL;
        struct stat st;

        ASSERT_OK(kube_config_load(path, NULL, &c, &fault));
        ASSERT_TEXT(c->server, "https://10.0.0.1:6443");
        ASSERT_TEXT(c->namespace_, "ns");
        (void) snprintf(expected, sizeof expected, "%s/pki/ca.crt", dir);
        ASSERT_TEXT(c->ca_file, expected);
        ASSERT_OK(file_read(c->key_file, 100, &key));
        ASSERT_STR(buf_str(&key), STR("key"));
        ASSERT_OK(stat(c->key_file, &st));
        ASSERT_INT(st.st_mode & 0777, 0600);
        (void) snprintf(scratch, sizeof scratch, "%s", c->scratch);
        c = kube_config_free(c);
        ASSERT_INT(stat(scratch, &st), -1); /* private keys do not outlive their object */
        ASSERT_OK(kube_config_load(path, "there", &c, &fault));
        (void) snprintf(expected, sizeof expected, "%s/tok", dir);
        ASSERT_TEXT(c->token_file, expected);
        c = kube_config_free(c);
}

static void merges_files_and_the_first_wins(void) {
        char list[512];
        Fault fault = FAULT_NULL;
        KubeConfig *c = NULL;
        const char *a =
                put("a", "current-context: x\nclusters: [{name: c, cluster: {server: 'http://first'}}]\n");
        const char *b =
                put("b", "current-context: other\nclusters: [{name: c, cluster: {server: 'http://second'}}]\n"
                         "users: [{name: u, user: {token: secret}}]\ncontexts: [{name: x, context: {cluster: "
                         "c, user: u}}]\n");

        (void) snprintf(list, sizeof list, "%s:%s/missing:%s", a, dir, b);
        ASSERT_OK(setenv("KUBECONFIG", list, 1));
        if (kube_config_load(NULL, NULL, &c, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
        ASSERT_TEXT(c->server, "http://first");
        ASSERT_TEXT(c->token, "secret");
        c = kube_config_free(c);
        ASSERT_OK(unsetenv("KUBECONFIG"));
}

static void refuses_by_name(void) {
        static const struct {
                const char *text, *words;
        } cases[] = {
                {"current-context: x\n", "context \"x\" does not exist"},
                {"a: b\n", "no current-context"},
                {"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n",
                 "cluster \"c\" does not exist"},
                {"current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
                 "clusters: [{name: c, cluster: {server: 'http://s'}}]\nusers: [{name: u, user: {exec: "
                 "{command: aws}}}]\n",
                 "an exec plugin"},
                {"current-context: x\ncontexts: [{name: x, context: {cluster: c, user: w}}]\n"
                 "clusters: [{name: c, cluster: {server: 'http://s'}}]\n",
                 "user \"w\" does not exist"},
                {"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
                 "clusters: [{name: c, cluster: {server: 'ftp://s'}}]\n",
                 "must begin with https://"},
                {"current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
                 "clusters: [{name: c, cluster: {server: 'http://s'}}]\nusers: [{name: u, user: "
                 "{client-key-data: '!!'}}]\n",
                 "client-key-data is not base64"},
                {"clusters: {name: c}\n", "clusters: not an array"},
                {"clusters: [{name: [1]}]\n", "clusters[0].name"},
                {"a: [b\n", "line"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fault fault = FAULT_NULL;
                KubeConfig *c = NULL;
                const char *path = put("bad", cases[i].text);

                ASSERT_INT(kube_config_load(path, NULL, &c, &fault), KUBE_CONFIG_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, cases[i].words);
                ASSERT_CONTAINS(fault.text, path);
        }
        {
                Fault fault = FAULT_NULL;
                KubeConfig *c = NULL;
                ASSERT_INT(kube_config_load("/nonexistent/config", NULL, &c, &fault), -ENOENT);
                ASSERT_CONTAINS(fault.text, "/nonexistent/config");
        }
}

static void a_token_file_is_read_again(void) {
        const char *path = put("tok", "one\n");
        usec_t now = 1000 * USEC_PER_SEC;
        KubeToken t;

        kube_token_init(&t, NULL, path);
        ASSERT_TEXT(kube_token_get(&t, now), "one");
        (void) put("tok", "two");
        ASSERT_TEXT(kube_token_get(&t, now + 59 * USEC_PER_SEC), "one");
        ASSERT_TEXT(kube_token_get(&t, now + 61 * USEC_PER_SEC), "two");
        (void) put("tok", "three");
        kube_token_forget(&t);
        ASSERT_TEXT(kube_token_get(&t, now + 62 * USEC_PER_SEC), "three");
        ASSERT_OK(unlink(path));
        ASSERT_TEXT(kube_token_get(&t, now + 200 * USEC_PER_SEC),
                    "three"); /* better the last one than none */
        kube_token_done(&t);
}

int main(void) {
        int r;

        ASSERT_TRUE(mkdtemp(dir) != NULL);
        (void) unsetenv("KUBECONFIG");
        r = TEST_MAIN(TEST(reads_a_kubeconfig), TEST(merges_files_and_the_first_wins), TEST(refuses_by_name),
                      TEST(a_token_file_is_read_again));
        for (const char *const *name = (const char *const[]){"config", "a", "b", "bad", NULL}; *name; name++)
                (void) unlink(put(*name, ""));
        (void) rmdir(dir);
        return r;
}
