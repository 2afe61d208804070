/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the API server is and which credentials we use: kubeconfig files (several, merged as
 * kubectl does), or the pod's service account. Credentials are a token, a token file (re-read,
 * since kubelets rotate it) or a client certificate. */

#include "base/fault.h"
#include "base/str.h"

enum { KUBE_CONFIG_SECRETS = 3 };

typedef struct KubeConfig {
        /* http(s)://host:port, possibly with a path, without a final slash */
        char *server;
        char *ca_file;              /* NULL: the system's CAs */
        char *cert_file, *key_file; /* client certificate; both or neither */
        char *token, *token_file;   /* the file, while it is readable, is preferred */
        char *tls_server_name;
        char *proxy;
        char *namespace_;
        bool insecure;

        /* curl's GnuTLS backend takes certificates and keys by path only. Data of a kubeconfig is
         * put into memory files, so that a key never reaches a disk. The paths above are then
         * /proc/self/fd/N. -1: none. */
        int secrets[KUBE_CONFIG_SECRETS];
} KubeConfig;

enum { KUBE_CONFIG_E_MALFORMED = 1, KUBE_CONFIG_E_NONE };

/* path: --kubeconfig, or NULL for KUBECONFIG, then in-cluster credentials, then ~/.kube/config.
 * context: NULL for the current one. Exec and auth-provider plugins are refused by name.
 *
 * Returns 0, KUBE_CONFIG_E_NONE when there is no configuration, KUBE_CONFIG_E_MALFORMED, -ENOMEM or
 * the errno of a file; fault names file and field. */
int kube_config_load(const char *path, const char *context, KubeConfig **ret, Fault *fault);

/* A configuration without credentials for this URL: the server of `aliquot local` and of tests.
 * Returns 0 or -ENOMEM. */
int kube_config_for_server(const char *server, KubeConfig **ret);

/* The service account of this pod; kube_config_load() passes the values that the kubelet sets.
 * directory: holds token, ca.crt and namespace. Returns 0, KUBE_CONFIG_E_NONE when host or port is
 * missing or no token can be read, -ENOMEM, or the errno of ca.crt or namespace. */
int kube_config_in_cluster(const char *directory, const char *host, const char *port, KubeConfig **ret,
                           Fault *fault);

KubeConfig *kube_config_free(KubeConfig *c);

DEFINE_CLEANUP(KubeConfig *, kube_config_free)
