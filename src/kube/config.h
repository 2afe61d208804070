/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the API server is and who we are: kubeconfig files (several, merged as kubectl does), or the pod's service
 * account. Credentials by token, token file (re-read, since kubelets rotate it) or client certificate. */

#include "base/fault.h"
#include "base/str.h"

typedef struct KubeConfig {
        char *server;           /* https://host:port, no slash at the end */
        char *ca_file, *ca_pem; /* at most one; neither: the system's CAs */
        char *cert_file,
                *key_file; /* client certificate; data from a kubeconfig is written to private files (0600, unlinked
                                       with the object), because curl's GnuTLS backend takes paths only */
        char *token, *token_file;
        char *tls_server_name;
        char *namespace_;
        bool insecure;
        char *scratch; /* directory of the private files, NULL when there are none */
} KubeConfig;

enum { KUBE_CONFIG_E_MALFORMED = 1, KUBE_CONFIG_E_NONE };

/* path: --kubeconfig, or NULL for KUBECONFIG, then in-cluster credentials, then ~/.kube/config. context: NULL for the current one. Returns 0,
 * KUBE_CONFIG_E_NONE when there is no configuration at all, KUBE_CONFIG_E_MALFORMED, -ENOMEM or the errno of a file;
 * fault names file and field. Exec and auth-provider plugins are refused by name. */
int kube_config_load(const char *path, const char *context, KubeConfig **ret, Fault *fault);

/* Plain HTTP without credentials, for a local store. */
int kube_config_for_server(const char *server, KubeConfig **ret);

KubeConfig *kube_config_free(KubeConfig *c);

DEFINE_CLEANUP(KubeConfig *, kube_config_free)
