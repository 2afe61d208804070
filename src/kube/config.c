/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/base64.h"
#include "base/file.h"
#include "kube/kubeconfig.h"

enum {
        KUBECONFIG_MAX_SIZE = 4 * 1024 * 1024,
        SMALL_FILE_MAX = 1024 * 1024,
};

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

static KubeConfig *config_new(void) {
        KubeConfig *c = calloc(1, sizeof *c);

        for (size_t i = 0; c && i < KUBE_CONFIG_SECRETS; i++)
                c->secrets[i] = -1;
        return c;
}

KubeConfig *kube_config_free(KubeConfig *c) {
        if (!c)
                return NULL;
        if (c->token)
                explicit_bzero(c->token, strlen(c->token));
        for (size_t i = 0; i < KUBE_CONFIG_SECRETS; i++)
                cleanup_closep(&c->secrets[i]);
        free(c->server);
        free(c->ca_file);
        free(c->cert_file);
        free(c->key_file);
        free(c->token);
        free(c->token_file);
        free(c->tls_server_name);
        free(c->proxy);
        free(c->namespace_);
        free(c);
        return NULL;
}

/* Copies a value into a field. An empty string in a kubeconfig counts as absent. */
static bool set_field(char **field, Str value) {
        if (str_is_empty(value))
                return true;
        *field = str_dup(value);
        return *field != NULL;
}

static bool set_server(KubeConfig *c, Str server) {
        while (server.len > 0 && server.data[server.len - 1] == '/')
                server.len--;
        return set_field(&c->server, server);
}

/* ---- certificates and keys ---- */

static int write_all(int fd, Str bytes) {
        while (bytes.len > 0) {
                ssize_t n = write(fd, bytes.data, bytes.len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                bytes.data += n;
                bytes.len -= (size_t) n;
        }
        return 0;
}

/* Puts data into a memory file and its name below /proc into *path. */
static int keep_secret(KubeConfig *c, Str bytes, char **path) {
        _cleanup_close_ int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
        char name[32];
        int r;

        if (fd < 0)
                return -errno;
        r = write_all(fd, bytes);
        if (r < 0)
                return r;
        (void) snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        *path = str_dup(str_from(name));
        if (!*path)
                return -ENOMEM;
        for (size_t i = 0; i < KUBE_CONFIG_SECRETS; i++)
                if (c->secrets[i] < 0) {
                        c->secrets[i] = TAKE_FD(fd);
                        break;
                }
        return 0;
}

static int refuse_entry(Fault *fault, const KubeconfigEntry *e, const char *field, const char *what) {
        return fault_set(fault, KUBE_CONFIG_E_MALFORMED, STR_FMT ": \"%.100s\": %s: %s", STR_ARG(e->file),
                         e->name.data ? e->name.data : "", field, what);
}

static int set_path(const KubeconfigEntry *e, Str file, char **path) {
        _cleanup_buf_ Buf joined = BUF_NULL;

        if (file.data[0] != '/')
                buf_append_str(&joined, e->directory);
        buf_append_str(&joined, file);
        *path = buf_take(&joined);
        return *path ? 0 : -ENOMEM;
}

/* Sets a PEM file from data or a path; data comes first, as in client-go. */
static int set_pem(KubeConfig *c, const KubeconfigEntry *e, const char *field, Str file, Str data,
                   char **path, Fault *fault) {
        _cleanup_buf_ Buf pem = BUF_NULL;
        int r;

        if (str_is_empty(data))
                return str_is_empty(file) ? 0 : set_path(e, file, path);
        if (!base64_decode(data, &pem))
                return refuse_entry(fault, e, field, "not base64");
        if (buf_result(&pem) < 0)
                return -ENOMEM;
        if (pem.len == 0 || !strstr(pem.data, "-----BEGIN "))
                return refuse_entry(fault, e, field, "does not hold PEM text");
        r = keep_secret(c, buf_str(&pem), path);
        explicit_bzero(pem.data, pem.len);
        return r < 0 ? fault_set(fault, r, "a memory file for %s: %s", field, strerror(-r)) : 0;
}

static int check_readable(const KubeconfigEntry *e, const char *field, const char *path, Fault *fault) {
        int r;

        if (!path || access(path, R_OK) == 0)
                return 0;
        r = -errno;
        return fault_set(fault, r, STR_FMT ": \"%.100s\": %s: %s: %s", STR_ARG(e->file), e->name.data, field,
                         path, strerror(-r));
}

static int set_cluster(KubeConfig *c, const KubeconfigEntry *e, Fault *fault) {
        int r;

        if (!set_server(c, e->server) || !set_field(&c->tls_server_name, e->tls_server_name) ||
            !set_field(&c->proxy, e->proxy))
                return -ENOMEM;
        c->insecure = e->insecure;
        r = set_pem(c, e, "certificate-authority-data", e->ca_file, e->ca_data, &c->ca_file, fault);
        return r != 0 ? r : check_readable(e, "certificate-authority", c->ca_file, fault);
}

static int set_user(KubeConfig *c, const KubeconfigEntry *e, Fault *fault) {
        int r;

        if (!set_field(&c->token, str_trim(e->token)))
                return -ENOMEM;
        r = str_is_empty(e->token_file) ? 0 : set_path(e, e->token_file, &c->token_file);
        if (r == 0)
                r = check_readable(e, "tokenFile", c->token_file, fault);
        if (r == 0)
                r = set_pem(c, e, "client-certificate-data", e->cert_file, e->cert_data, &c->cert_file,
                            fault);
        if (r == 0)
                r = check_readable(e, "client-certificate", c->cert_file, fault);
        if (r == 0)
                r = set_pem(c, e, "client-key-data", e->key_file, e->key_data, &c->key_file, fault);
        return r != 0 ? r : check_readable(e, "client-key", c->key_file, fault);
}

static int from_choice(const KubeconfigChoice *choice, KubeConfig **ret, Fault *fault) {
        _cleanup_(kube_config_freep) KubeConfig *c = config_new();
        int r;

        if (!c || !set_field(&c->namespace_, choice->namespace_))
                return -ENOMEM;
        r = set_cluster(c, choice->cluster, fault);
        if (r == 0 && choice->user)
                r = set_user(c, choice->user, fault);
        if (r != 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

/* ---- where it is looked for ---- */

static int add_file(Kubeconfig *k, Arena *arena, const char *path, Fault *fault) {
        _cleanup_buf_ Buf text = BUF_NULL;
        int r;

        r = file_read(path, KUBECONFIG_MAX_SIZE, &text);
        if (r < 0)
                return fault_set(fault, r, "%s: %s", path, strerror(-r));
        r = kubeconfig_add(k, arena, path, buf_str(&text), fault);
        return r > 0 ? KUBE_CONFIG_E_MALFORMED : r;
}

static bool is_unset(const Kubeconfig *k) {
        return !k->clusters && !k->users && !k->contexts && str_is_empty(k->current_context);
}

/* paths: separated by colons. Missing files are skipped when must_exist is false, as for
 * KUBECONFIG. */
static int from_files(Str paths, bool must_exist, const char *context, KubeConfig **ret, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Kubeconfig k = {0};
        KubeconfigChoice choice;
        Str rest = paths;
        int r;

        while (rest.len > 0) {
                Str path = must_exist ? rest : str_split(&rest, ':');
                Str copy = arena_str(&arena, path);

                if (!copy.data)
                        return -ENOMEM;
                r = copy.len > 0 ? add_file(&k, &arena, copy.data, fault) : 0;
                if (r != 0 && (r != -ENOENT || must_exist))
                        return r;
                if (must_exist)
                        break;
        }
        if (is_unset(&k))
                return fault_set(fault, KUBE_CONFIG_E_NONE, "no kubeconfig in " STR_FMT, STR_ARG(paths));
        r = kubeconfig_choose(&k, context, &choice, fault);
        return r != 0 ? KUBE_CONFIG_E_MALFORMED : from_choice(&choice, ret, fault);
}

static char *join_path(const char *directory, const char *name) {
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%s", directory, name);
        return buf_take(&path);
}

static int read_namespace(KubeConfig *c, const char *directory) {
        _cleanup_free_ char *path = join_path(directory, "namespace");
        _cleanup_buf_ Buf text = BUF_NULL;

        if (!path)
                return -ENOMEM;
        if (file_read(path, SMALL_FILE_MAX, &text) < 0)
                return 0; /* not every pod mounts it */
        return set_field(&c->namespace_, str_trim(buf_str(&text))) ? 0 : -ENOMEM;
}

int kube_config_in_cluster(const char *directory, const char *host, const char *port, KubeConfig **ret,
                           Fault *fault) {
        _cleanup_(kube_config_freep) KubeConfig *c = config_new();
        _cleanup_buf_ Buf server = BUF_NULL;
        int r;

        if (!c)
                return -ENOMEM;
        if (!host || !port || !*host || !*port)
                return fault_set(fault, KUBE_CONFIG_E_NONE,
                                 "not in a cluster: KUBERNETES_SERVICE_HOST is not set");
        buf_appendf(&server, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
        c->server = buf_take(&server);
        c->token_file = join_path(directory, "token");
        c->ca_file = join_path(directory, "ca.crt");
        if (!c->server || !c->token_file || !c->ca_file)
                return -ENOMEM;
        if (access(c->token_file, R_OK) < 0)
                return fault_set(fault, KUBE_CONFIG_E_NONE, "no service account token at %s: %s",
                                 c->token_file, strerror(errno));
        if (access(c->ca_file, R_OK) < 0) {
                r = -errno;
                return fault_set(fault, r, "%s: %s", c->ca_file, strerror(-r));
        }
        r = read_namespace(c, directory);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

static int from_home(const char *context, KubeConfig **ret, Fault *fault) {
        _cleanup_free_ char *path = NULL;
        const char *home = getenv("HOME");

        path = join_path(home ? home : "", ".kube/config");
        if (!path)
                return -ENOMEM;
        if (access(path, F_OK) < 0)
                return fault_set(fault, KUBE_CONFIG_E_NONE,
                                 "no Kubernetes configuration: no --kubeconfig, no KUBECONFIG, not in a "
                                 "cluster, no %s",
                                 path);
        return from_files(str_from(path), true, context, ret, fault);
}

int kube_config_load(const char *path, const char *context, KubeConfig **ret, Fault *fault) {
        const char *paths = getenv("KUBECONFIG");
        int r;

        if (path)
                return from_files(str_from(path), true, context, ret, fault);
        if (paths && *paths)
                return from_files(str_from(paths), false, context, ret, fault);
        r = kube_config_in_cluster(SERVICE_ACCOUNT, getenv("KUBERNETES_SERVICE_HOST"),
                                   getenv("KUBERNETES_SERVICE_PORT"), ret, fault);
        return r == KUBE_CONFIG_E_NONE ? from_home(context, ret, fault) : r;
}

int kube_config_for_server(const char *server, KubeConfig **ret) {
        _cleanup_(kube_config_freep) KubeConfig *c = config_new();

        if (!c || !set_server(c, str_from(server)))
                return -ENOMEM;
        *ret = TAKE_PTR(c);
        return 0;
}
