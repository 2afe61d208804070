/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "fixture.h"
#include "kube/kubeconfig.h"
#include "kube/token.h"
#include "peer.h"
#include "tls.h"

static char dir[] = "/tmp/aliquot-test-XXXXXX";

/* Every file that a test writes has one of these names, so that the end can remove them. */
static const char *const names[] = {"config", "a",      "b",         "bad",  "tok",
                                    "token",  "ca.crt", "namespace", "cert", "key"};

static const char *path_of(const char *name) {
        static char paths[8][128];
        static unsigned next;
        char *path = paths[next++ % 8];

        (void) snprintf(path, 128, "%s/%s", dir, name);
        return path;
}

static const char *put(const char *name, const char *text) {
        const char *path = path_of(name);
        FILE *f = fopen(path, "we");

        ASSERT_TRUE(f && fputs(text, f) >= 0 && fclose(f) == 0);
        return path;
}

static KubeConfig *load(const char *path, const char *context) {
        Fault fault = FAULT_NULL;
        KubeConfig *c = NULL;

        if (kube_config_load(path, context, &c, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
        return c;
}

/* ---- kubeconfig ---- */

#define HEAD "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
#define PEM  "LS0tLS1CRUdJTiBYLS0tLS0KYQotLS0tLUVORCBYLS0tLS0K" /* -----BEGIN X-----, a, -----END X----- */

static void reads_a_kubeconfig(void) {
        const char *path =
                put("config", "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
                              "clusters:\n- name: c\n  cluster: {server: 'https://10.0.0.1:6443/', "
                              "certificate-authority: ca.crt, tls-server-name: api}\n"
                              "users:\n- name: u\n  user: {client-certificate-data: " PEM
                              ", client-key-data: " PEM "}\n"
                              "- name: t\n  user: {tokenFile: tok}\n"
                              "contexts:\n- name: here\n  context: {cluster: c, user: u, namespace: ns}\n"
                              "- {name: there, context: {cluster: c, user: t}}\n");
        _cleanup_buf_ Buf key = BUF_NULL;
        char expected[128];
        KubeConfig *c;

        (void) put("ca.crt", "x");
        (void) put("tok", "secret");
        c = load(path, NULL);
        ASSERT_TEXT(c->server, "https://10.0.0.1:6443");
        ASSERT_TEXT(c->namespace_, "ns");
        ASSERT_TEXT(c->tls_server_name, "api");
        (void) snprintf(expected, sizeof expected, "%s/ca.crt", dir);
        ASSERT_TEXT(c->ca_file, expected);
        ASSERT_OK(file_read(c->key_file, 100, &key));
        ASSERT_STR(buf_str(&key), STR("-----BEGIN X-----\na\n-----END X-----\n"));
        ASSERT_TRUE(!str_has_prefix(str_from(c->key_file), str_from(dir)));
        c = kube_config_free(c);
        c = load(path, "there");
        (void) snprintf(expected, sizeof expected, "%s/tok", dir);
        ASSERT_TEXT(c->token_file, expected);
        ASSERT_TRUE(!c->cert_file && !c->namespace_);
        c = kube_config_free(c);
}

/* Secrets given as data are in no folder, and are closed with their object. */
static void secrets_do_not_outlive_their_object(void) {
        const char *path = put("config", HEAD "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                              "clusters: [{name: c, cluster: {server: 'https://h', "
                                              "certificate-authority-data: " PEM "}}]\n"
                                              "users: [{name: u, user: {client-certificate-data: " PEM
                                              ", client-key-data: " PEM "}}]\n");
        KubeConfig *c = load(path, NULL);
        char key[64];

        (void) snprintf(key, sizeof key, "%s", c->key_file);
        ASSERT_TRUE(strcmp(c->key_file, c->cert_file) != 0 && strcmp(c->ca_file, c->cert_file) != 0);
        for (size_t i = 0; i < KUBE_CONFIG_SECRETS; i++)
                ASSERT_INT(fcntl(c->secrets[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        ASSERT_OK(access(key, R_OK));
        c = kube_config_free(c);
        ASSERT_INT(access(key, R_OK), -1);
}

static void merges_files_and_the_first_wins(void) {
        char list[512];
        const char *a =
                put("a", "current-context: x\nclusters: [{name: c, cluster: {server: 'http://first'}}]\n");
        const char *b =
                put("b", "current-context: other\nclusters: [{name: c, cluster: {server: 'http://second'}}]\n"
                         "users: [{name: u, user: {token: secret}}]\ncontexts: [{name: x, context: {cluster: "
                         "c, user: u}}]\n");
        KubeConfig *c;

        (void) snprintf(list, sizeof list, "%s::%s/missing:%s", a, dir, b);
        ASSERT_OK(setenv("KUBECONFIG", list, 1));
        c = load(NULL, NULL);
        ASSERT_TEXT(c->server, "http://first");
        ASSERT_TEXT(c->token, "secret");
        c = kube_config_free(c);
        ASSERT_OK(unsetenv("KUBECONFIG"));
}

static void refuses_by_name(void) {
#define CLUSTER(text)                                                                                        \
        HEAD "contexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {" text "}}]\n"
#define USER(text)                                                                                           \
        HEAD "contexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: "         \
             "{server: "                                                                                     \
             "'http://s'}}]\nusers: [{name: u, user: {" text "}}]\n"
        static const struct {
                const char *text, *words;
                int answer;
        } cases[] = {
                {"", "no kubeconfig", KUBE_CONFIG_E_NONE},
                {"{}", "no kubeconfig", KUBE_CONFIG_E_NONE},
                {"kind: Pod\n", "kind is \"Pod\"", KUBE_CONFIG_E_MALFORMED},
                {HEAD, "there is no context \"x\"", KUBE_CONFIG_E_MALFORMED},
                {"clusters: [{name: c}]\n", "current-context is not set", KUBE_CONFIG_E_MALFORMED},
                {HEAD "contexts: [{name: x, context: {cluster: c}}]\n", "context \"x\": its cluster",
                 KUBE_CONFIG_E_MALFORMED},
                {HEAD "contexts: [{name: x, context: {cluster: c, user: w}}]\n"
                      "clusters: [{name: c, cluster: {server: 'http://s'}}]\n",
                 "context \"x\": its user", KUBE_CONFIG_E_MALFORMED},
                {CLUSTER(""), "server is missing", KUBE_CONFIG_E_MALFORMED},
                {CLUSTER("server: 'ftp://s'"), "must begin with https://", KUBE_CONFIG_E_MALFORMED},
                {CLUSTER("server: \"http://s\\r\\nX: y\""), "control characters", KUBE_CONFIG_E_MALFORMED},
                {CLUSTER("server: 'https://s', insecure-skip-tls-verify: true, certificate-authority: /x"),
                 "insecure-skip-tls-verify", KUBE_CONFIG_E_MALFORMED},
                {CLUSTER("server: 'https://s', certificate-authority: /proc/self/absent/ca"),
                 "/proc/self/absent/ca", -ENOENT},
                {CLUSTER("server: 'https://s', certificate-authority-data: aGVsbG8="), "does not hold PEM",
                 KUBE_CONFIG_E_MALFORMED},
                {USER("exec: {command: aws}"), "exec plugin", KUBE_CONFIG_E_MALFORMED},
                {USER("auth-provider: {name: gcp}"), "auth-provider", KUBE_CONFIG_E_MALFORMED},
                {USER("username: root, password: secret"), "username and password", KUBE_CONFIG_E_MALFORMED},
                {USER("as: root"), "impersonation", KUBE_CONFIG_E_MALFORMED},
                {USER("token: \"a\\nb\""), "token", KUBE_CONFIG_E_MALFORMED},
                {USER("tokenFile: /proc/self/absent/token"), "/proc/self/absent/token", -ENOENT},
                {USER("client-key-data: '!!', client-certificate-data: '!!'"),
                 "client-certificate-data: not base64", KUBE_CONFIG_E_MALFORMED},
                {USER("client-key: /x"), "client-key without client-certificate", KUBE_CONFIG_E_MALFORMED},
                {"clusters: {name: c}\n", "clusters: not an array", KUBE_CONFIG_E_MALFORMED},
                {"clusters: [{name: [1]}]\n", "clusters[0].name", KUBE_CONFIG_E_MALFORMED},
                {"a: [b\n", "line", KUBE_CONFIG_E_MALFORMED},
                {"{}\n---\n{}\n", "second document", KUBE_CONFIG_E_MALFORMED},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fault fault = FAULT_NULL;
                KubeConfig *c = NULL;
                const char *path = put("bad", cases[i].text);

                if (kube_config_load(path, NULL, &c, &fault) != cases[i].answer)
                        TEST_FAIL_("case %zu: %s", i, fault.text);
                ASSERT_CONTAINS(fault.text, cases[i].words);
                ASSERT_TRUE(!strstr(fault.text, "secret"));
        }
}

static void a_missing_file_is_named(void) {
        Fault fault = FAULT_NULL;
        KubeConfig *c = NULL;

        ASSERT_INT(kube_config_load("/proc/self/absent/config", NULL, &c, &fault), -ENOENT);
        ASSERT_CONTAINS(fault.text, "/proc/self/absent/config");
        ASSERT_OK(setenv("KUBECONFIG", "/proc/self/absent/config", 1));
        ASSERT_INT(kube_config_load(NULL, NULL, &c, &fault), KUBE_CONFIG_E_NONE);
        ASSERT_OK(unsetenv("KUBECONFIG"));
        ASSERT_OK(setenv("HOME", "/proc/self/absent", 1));
        ASSERT_INT(kube_config_load(NULL, NULL, &c, &fault), KUBE_CONFIG_E_NONE);
        ASSERT_CONTAINS(fault.text, "/proc/self/absent/.kube/config");
}

static void a_pod_finds_its_service_account(void) {
        Fault fault = FAULT_NULL;
        KubeConfig *c = NULL;

        (void) unlink(path_of("token"));
        ASSERT_INT(kube_config_in_cluster(dir, NULL, "443", &c, &fault), KUBE_CONFIG_E_NONE);
        ASSERT_INT(kube_config_in_cluster(dir, "10.0.0.1", "443", &c, &fault), KUBE_CONFIG_E_NONE);
        (void) put("token", "t");
        (void) unlink(path_of("ca.crt"));
        ASSERT_INT(kube_config_in_cluster(dir, "10.0.0.1", "443", &c, &fault), -ENOENT);
        ASSERT_CONTAINS(fault.text, "ca.crt");
        (void) put("ca.crt", "x");
        (void) put("namespace", "kube-system\n");
        ASSERT_OK(kube_config_in_cluster(dir, "fd00::1", "6443", &c, &fault));
        ASSERT_TEXT(c->server, "https://[fd00::1]:6443");
        ASSERT_TEXT(c->namespace_, "kube-system");
        ASSERT_TEXT(c->token_file, path_of("token"));
        c = kube_config_free(c);
}

/* ---- tokens ---- */

static void a_token_file_is_read_again(void) {
        const char *path = put("tok", "one\n");
        usec_t now = 1000 * USEC_PER_SEC;
        KubeToken t;

        kube_token_init(&t, "fixed", path);
        ASSERT_TEXT(kube_token_get(&t, now), "one");
        (void) put("tok", "two");
        ASSERT_TEXT(kube_token_get(&t, now + 59 * USEC_PER_SEC), "one");
        ASSERT_TEXT(kube_token_get(&t, now + 61 * USEC_PER_SEC), "two");
        ASSERT_FALSE(kube_token_renew(&t, now + 62 * USEC_PER_SEC));
        (void) put("tok", "three");
        ASSERT_TRUE(kube_token_renew(&t, now + 62 * USEC_PER_SEC));
        ASSERT_TEXT(kube_token_get(&t, now + 62 * USEC_PER_SEC), "three");
        (void) put("tok", "fo\r\nur: x");
        ASSERT_TEXT(kube_token_get(&t, now + 200 * USEC_PER_SEC), "three");
        ASSERT_OK(unlink(path));
        ASSERT_TEXT(kube_token_get(&t, now + 300 * USEC_PER_SEC),
                    "three"); /* the last token is better than none */
        kube_token_done(&t);
        kube_token_init(&t, "fixed", path);
        ASSERT_TEXT(kube_token_get(&t, now), "fixed");
        kube_token_done(&t);
}

/* Takes the next request at the peer, checks that its header has `text`, and answers. */
static void answer(Fixture *f, Peer *p, const char *text, const char *response) {
        turn_until(f, peer_heard(p, "\r\n\r\n"));
        ASSERT_CONTAINS(p->heard.data, text);
        peer_say(p, response);
}

#define OK           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#define UNAUTHORIZED "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"

/* 401 means that nothing was done: with a newer token the same request is sent once more, also a
 * POST. */
static void a_refused_token_is_read_again_at_once(void) {
        KubeRequest request = {.method = "POST", .path = "/x", .body = STR("{}")};
        Told told = {0};
        Fixture f;
        Peer p;

        fixture_begin(&f, NULL, NULL);
        (void) put("tok", "one");
        f.config = NULL;
        {
                char url[64];
                (void) snprintf(url, sizeof url, "http://127.0.0.1:%u", peer_begin(&p));
                ASSERT_OK(kube_config_for_server(url, &f.config));
        }
        f.config->token_file = str_dup(str_from(path_of("tok")));
        ASSERT_OK(kube_client_new(f.event, f.config, &f.client));

        ASSERT_OK(kube_call(f.client, &request, on_done, &told, NULL));
        turn_until(&f, peer_heard(&p, "\r\n\r\n{}"));
        ASSERT_CONTAINS(p.heard.data, "Authorization: Bearer one\r\n");
        (void) put("tok", "two");
        peer_say(&p, UNAUTHORIZED);
        answer(&f, &p, "Authorization: Bearer two\r\n", UNAUTHORIZED);
        turn_until(&f, told.n == 1); /* twice, and no more */
        ASSERT_INT(told.status, 401);
        ASSERT_TRUE(!strstr(told.fault.text, "two"));

        ASSERT_OK(kube_call(f.client, &request, on_done, &told, NULL));
        /* the file has no other token */
        answer(&f, &p, "Authorization: Bearer two\r\n", UNAUTHORIZED);
        turn_until(&f, told.n == 2);
        ASSERT_OK(kube_call(f.client, &request, on_done, &told, NULL));
        answer(&f, &p, "Authorization: Bearer two\r\n", OK);
        turn_until(&f, told.n == 3);
        ASSERT_INT(told.status, 200);
        told_done(&told);
        fixture_end(&f);
        peer_end(&p);
}

/* A certificate is shown once for a connection, and files are read for a new one only. */
static void a_refused_certificate_is_read_again(void) {
        KubeRequest request = {.method = "GET", .path = "/x"};
        Told told = {0};
        char url[64];
        Fixture f;
        Peer p;

        fixture_begin(&f, NULL, NULL);
        (void) snprintf(url, sizeof url, "http://127.0.0.1:%u", peer_begin(&p));
        ASSERT_OK(kube_config_for_server(url, &f.config));
        f.config->cert_file = str_dup(str_from(path_of("c.pem")));
        f.config->key_file = str_dup(str_from(path_of("k.pem")));
        ASSERT_OK(kube_client_new(f.event, f.config, &f.client));
        for (unsigned i = 0; i < 4; i++) {
                ASSERT_OK(kube_call(f.client, &request, on_done, &told, NULL));
                turn_until(&f, peer_heard(&p, "\r\n\r\n"));
                ASSERT_INT(p.n_accepted, i < 2 ? 1 : 2);
                peer_say(&p, i == 1 ? UNAUTHORIZED : OK);
                turn_until(&f, told.n == i + 1);
        }
        told_done(&told);
        fixture_end(&f);
        peer_end(&p);
}

/* ---- TLS ---- */

static void handle(void *userdata, HttpExchange *x, const HttpRequest *r) {
        http_respond(x, 200, "application/json", STR("{}"));
}

static void get_over_tls(Fixture *f, const char *ca, const char *name, bool insecure, Told *told) {
        char url[64];

        (void) snprintf(url, sizeof url, "https://127.0.0.1:%u", http_server_port(f->server));
        ASSERT_OK(kube_config_for_server(url, &f->config));
        f->config->insecure = insecure;
        f->config->ca_file = ca ? str_dup(str_from(put("ca.crt", ca))) : NULL;
        f->config->tls_server_name = name ? str_dup(str_from(name)) : NULL;
        ASSERT_OK(kube_client_new(f->event, f->config, &f->client));
        ask(f, "POST", "/x", "{}", told);
        f->client = kube_client_free(f->client);
        f->config = kube_config_free(f->config);
}

static void a_server_needs_its_own_certificate(void) {
        HttpServerOptions options = {.listen = "127.0.0.1:0",
                                     .max_body = 1000,
                                     .tls_cert = tls_server_cert,
                                     .tls_key = tls_server_key};
        Fault fault = FAULT_NULL;
        Told told = {0};
        Fixture f;

        fixture_begin(&f, NULL, NULL);
        ASSERT_OK(http_server_new(f.event, &options, handle, NULL, &f.server, &fault));
        get_over_tls(&f, tls_ca, "api.test", false, &told);
        ASSERT_TEXT(told.fault.text, "");
        ASSERT_INT(told.status, 200);
        get_over_tls(&f, tls_ca, NULL, false, &told); /* the certificate is for another name */
        ASSERT_INT(told.outcome, KUBE_NOT_SENT);
        get_over_tls(&f, tls_other_ca, "api.test", false, &told);
        ASSERT_INT(told.outcome, KUBE_NOT_SENT);
        ASSERT_CONTAINS(told.fault.text, "POST /x: not sent: ");
        get_over_tls(&f, "no certificate", "api.test", false, &told);
        ASSERT_INT(told.outcome, KUBE_NOT_SENT);
        get_over_tls(&f, NULL, NULL, false, &told); /* it is not signed by the system's CAs */
        ASSERT_INT(told.outcome, KUBE_NOT_SENT);
        get_over_tls(&f, NULL, NULL, true, &told);
        ASSERT_INT(told.status, 200);
        told_done(&told);
        fixture_end(&f);
}

int main(void) {
        int r;

        ASSERT_TRUE(mkdtemp(dir) != NULL);
        (void) unsetenv("KUBECONFIG");
        (void) unsetenv("KUBERNETES_SERVICE_HOST");
        r = TEST_MAIN(TEST(reads_a_kubeconfig), TEST(secrets_do_not_outlive_their_object),
                      TEST(merges_files_and_the_first_wins), TEST(refuses_by_name),
                      TEST(a_missing_file_is_named), TEST(a_pod_finds_its_service_account),
                      TEST(a_token_file_is_read_again), TEST(a_refused_token_is_read_again_at_once),
                      TEST(a_refused_certificate_is_read_again), TEST(a_server_needs_its_own_certificate));
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                (void) unlink(path_of(names[i]));
        (void) rmdir(dir);
        return r;
}
