/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the API server is and who we are: kubeconfig files (several, merged as kubectl does), or
 * the pod's service account. Credentials by token, token file (re-read, since kubelets rotate it)
 * or client certificate. */

#include "base/fault.h"
#include "base/str.h"

enum { KUBE_CONFIG_SECRETS = 3 };

typedef struct KubeConfig {
        char *server;               /* http(s)://host:port, possibly with a path, no slash at the end */
        char *ca_file;              /* NULL: the system's CAs */
        char *cert_file, *key_file; /* client certificate; both or neither */
        char *token, *token_file;   /* the file, while it can be read, comes before the token */
        char *tls_server_name;
        char *proxy;
        char *namespace_;
        bool insecure;

        /* curl's GnuTLS backend takes certificates and keys by path only. What a kubeconfig carries
         * as data stands in memory files, -1 where there is none, and the paths above are
         * /proc/self/fd/N: a key never reaches a disk, and is gone with the process however it
         * ends. */
        int secrets[KUBE_CONFIG_SECRETS];
} KubeConfig;

enum { KUBE_CONFIG_E_MALFORMED = 1, KUBE_CONFIG_E_NONE };

/* path: --kubeconfig, or NULL for KUBECONFIG, then in-cluster credentials, then ~/.kube/config.
 * context: NULL for the current one. Returns 0, KUBE_CONFIG_E_NONE when there is no configuration
 * at all, KUBE_CONFIG_E_MALFORMED, -ENOMEM or the errno of a file; fault names file and field. Exec
 * and auth-provider plugins are refused by name. */
int kube_config_load(const char *path, const char *context, KubeConfig **ret, Fault *fault);

/* Plain HTTP without credentials, for a local store. */
int kube_config_for_server(const char *server, KubeConfig **ret);

/* The service account of the pod that we run in; what kube_config_load() calls with the values that
 * the kubelet sets. directory: holds token, ca.crt and namespace. KUBE_CONFIG_E_NONE when host or
 * port is NULL or there is no token. */
int kube_config_in_cluster(const char *directory, const char *host, const char *port, KubeConfig **ret,
                           Fault *fault);

KubeConfig *kube_config_free(KubeConfig *c);

DEFINE_CLEANUP(KubeConfig *, kube_config_free)
