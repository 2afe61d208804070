/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/file.h"
#include "kube/kubeconfig.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

enum { FILE_MAX = 16 * 1024 * 1024 };

/* ---- private files ---- */

static int make_scratch(KubeConfig *c, Fault *fault) {
        const char *tmp = getenv("TMPDIR");

        if (c->scratch)
                return 0;
        if (asprintf(&c->scratch, "%s/aliquot-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp") < 0) {
                c->scratch = NULL;
                return -ENOMEM;
        }
        if (!mkdtemp(c->scratch)) { /* mode 0700 */
                int r = -errno;

                (void) fault_set(fault, r, "cannot make a folder for certificates like %s: %s", c->scratch,
                                 strerror(-r));
                free(c->scratch);
                c->scratch = NULL;
                return r;
        }
        return 0;
}

static int write_all(int fd, Str bytes) {
        while (bytes.len > 0) {
                ssize_t n = write(fd, bytes.data, bytes.len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                bytes.data += n;
                bytes.len -= (size_t) n;
        }
        return 0;
}

/* Certificates that stand in the kubeconfig itself: curl's GnuTLS backend takes paths only. */
static int put_data(KubeConfig *c, const char *name, Str data, char **ret, Fault *fault) {
        _cleanup_buf_ Buf bytes = BUF_NULL;
        _cleanup_close_ int fd = -1;
        _cleanup_free_ char *path = NULL;
        int r;

        if (!base64_decode(data, &bytes))
                return fault_set(fault, KUBE_CONFIG_E_MALFORMED, "%s-data is not base64", name);
        r = buf_result(&bytes);
        if (r == 0)
                r = make_scratch(c, fault);
        if (r < 0)
                return r;
        if (asprintf(&path, "%s/%s.pem", c->scratch, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = fd < 0 ? -errno : write_all(fd, buf_str(&bytes));
        if (r < 0)
                return fault_set(fault, r, "cannot write %s: %s", path, strerror(-r));
        *ret = TAKE_PTR(path);
        return 0;
}

static int put_path(Str dir, Str path, char **ret) {
        bool absolute = str_has_prefix(path, STR("/")) || str_is_empty(dir);

        if (asprintf(ret, STR_FMT "%s" STR_FMT, absolute ? 0 : (int) dir.len, dir.data ? dir.data : "",
                     absolute ? "" : "/", STR_ARG(path)) < 0) {
                *ret = NULL;
                return -ENOMEM;
        }
        return 0;
}

/* Data beats a file, as in client-go. */
static int put_either(KubeConfig *c, const char *name, Str dir, Str path, Str data, char **ret,
                      Fault *fault) {
        if (!str_is_empty(data))
                return put_data(c, name, data, ret, fault);
        return str_is_empty(path) ? 0 : put_path(dir, path, ret);
}

static int put_text(Str text, char **ret) {
        if (str_is_empty(text))
                return 0;
        *ret = str_dup(text);
        return *ret ? 0 : -ENOMEM;
}

/* ---- from kubeconfig files ---- */

static int put_cluster(KubeConfig *c, const KubeconfigCluster *k, Fault *fault) {
        Str server = k->server;
        int r;

        while (server.len > 0 && server.data[server.len - 1] == '/')
                server.len--;
        if (!str_has_prefix(server, STR("https://")) && !str_has_prefix(server, STR("http://")))
                return fault_set(fault, KUBE_CONFIG_E_MALFORMED,
                                 "server is \"" STR_FMT "\", must begin with https:// or http://",
                                 STR_ARG(server));
        c->insecure = k->insecure;
        r = put_text(server, &c->server);
        if (r == 0)
                r = put_text(k->tls_server_name, &c->tls_server_name);
        if (r == 0)
                r = put_either(c, "certificate-authority", k->dir, k->ca_file, k->ca_data, &c->ca_file,
                               fault);
        return r;
}

static int put_user(KubeConfig *c, const KubeconfigUser *u, Fault *fault) {
        int r;

        if (u->exec || u->auth_provider || !str_is_empty(u->username))
                return fault_set(fault, KUBE_CONFIG_E_MALFORMED,
                                 "the user logs in by %s, must be a token or a client certificate",
                                 u->exec            ? "an exec plugin"
                                 : u->auth_provider ? "an auth-provider plugin"
                                                    : "a password");
        r = put_either(c, "client-certificate", u->dir, u->cert_file, u->cert_data, &c->cert_file, fault);
        if (r == 0)
                r = put_either(c, "client-key", u->dir, u->key_file, u->key_data, &c->key_file, fault);
        if (r == 0 && !c->cert_file != !c->key_file)
                r = fault_set(fault, KUBE_CONFIG_E_MALFORMED,
                              "a client certificate needs its key, and a key its certificate");
        if (r == 0)
                r = put_text(u->token, &c->token);
        if (r == 0 && !str_is_empty(u->token_file))
                r = put_path(u->dir, u->token_file, &c->token_file);
        return r;
}

static int load_file(Kubeconfig *k, Str path, bool may_be_missing, Arena *arena, Fault *fault) {
        _cleanup_free_ char *name = str_dup(path);
        _cleanup_buf_ Buf text = BUF_NULL;
        const char *slash;
        int r;

        if (!name)
                return -ENOMEM;
        r = file_read(name, FILE_MAX, &text);
        if (r == -ENOENT && may_be_missing)
                return 0;
        if (r < 0)
                return fault_set(fault, r, "kubeconfig %s: %s", name, strerror(-r));
        slash = strrchr(name, '/');
        r = kubeconfig_add(k, buf_str(&text), slash ? (Str){name, (size_t) (slash - name)} : STR("."), arena,
                           fault);
        return r == 0 ? 0 : fault_wrap(fault, r < 0 ? r : KUBE_CONFIG_E_MALFORMED, "kubeconfig %s", name);
}

static int load_files(Str list, bool several, const char *context, KubeConfig *c, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Kubeconfig k = {0};
        KubeconfigCluster cluster;
        KubeconfigUser user;
        Str rest = list, namespace_;
        int r;

        while (!str_is_empty(rest)) {
                Str path = several ? str_split(&rest, ':') : rest;

                if (!several)
                        rest = (Str){NULL, 0};
                if (str_is_empty(path))
                        continue;
                r = load_file(&k, path, several, &arena, fault);
                if (r != 0)
                        return r;
        }
        r = kubeconfig_resolve(&k, str_from(context), &cluster, &user, &namespace_, fault);
        if (r == 0)
                r = put_cluster(c, &cluster, fault);
        if (r == 0)
                r = put_user(c, &user, fault);
        if (r == 0)
                r = put_text(namespace_, &c->namespace_);
        return r <= 0 ? r : fault_wrap(fault, KUBE_CONFIG_E_MALFORMED, "kubeconfig " STR_FMT, STR_ARG(list));
}

/* ---- in a pod ---- */

static int load_in_cluster(KubeConfig *c, Fault *fault) {
        const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
        bool v6 = host && strchr(host, ':');
        _cleanup_buf_ Buf namespace_ = BUF_NULL;

        if (!host || !port)
                return fault_set(fault, KUBE_CONFIG_E_NONE,
                                 "no --kubeconfig, no KUBECONFIG, not in a pod, and no ~/.kube/config");
        if (asprintf(&c->server, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port) < 0) {
                c->server = NULL;
                return -ENOMEM;
        }
        /* A pod always has this file; without it curl itself would say less. */
        if (file_read(SERVICE_ACCOUNT "/namespace", 4096, &namespace_) == 0 &&
            put_text(str_trim(buf_str(&namespace_)), &c->namespace_) < 0)
                return -ENOMEM;
        c->ca_file = str_dup(STR(SERVICE_ACCOUNT "/ca.crt"));
        c->token_file = str_dup(STR(SERVICE_ACCOUNT "/token"));
        return c->ca_file && c->token_file ? 0 : -ENOMEM;
}

int kube_config_load(const char *path, const char *context, KubeConfig **ret, Fault *fault) {
        _cleanup_(kube_config_freep) KubeConfig *c = calloc(1, sizeof *c);
        const char *env = getenv("KUBECONFIG"), *home = getenv("HOME");
        _cleanup_free_ char *standard = NULL;
        int r;

        if (!c)
                return -ENOMEM;
        if (home && asprintf(&standard, "%s/.kube/config", home) < 0) {
                standard = NULL;
                return -ENOMEM;
        }
        if (path)
                r = load_files(str_from(path), false, context, c, fault);
        else if (env && env[0])
                r = load_files(str_from(env), true, context, c, fault);
        else if (getenv("KUBERNETES_SERVICE_HOST") || !standard || access(standard, R_OK) < 0)
                r = load_in_cluster(c, fault);
        else
                r = load_files(str_from(standard), false, context, c, fault);
        if (r == 0)
                *ret = TAKE_PTR(c);
        return r;
}

int kube_config_for_server(const char *server, KubeConfig **ret) {
        _cleanup_(kube_config_freep) KubeConfig *c = calloc(1, sizeof *c);

        if (!c || put_text(str_from(server), &c->server) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(c);
        return 0;
}

static void remove_scratch(KubeConfig *c) {
        char *const files[] = {c->ca_file, c->cert_file, c->key_file};

        if (!c->scratch)
                return;
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                if (files[i] && str_has_prefix(str_from(files[i]), str_from(c->scratch)))
                        (void) unlink(files[i]);
        (void) rmdir(c->scratch);
}

KubeConfig *kube_config_free(KubeConfig *c) {
        if (!c)
                return NULL;
        remove_scratch(c);
        free(c->server);
        free(c->ca_file);
        free(c->cert_file);
        free(c->key_file);
        free(c->token);
        free(c->token_file);
        free(c->tls_server_name);
        free(c->namespace_);
        free(c->scratch);
        free(c);
        return NULL;
}
