/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pure part of reading kubeconfig files (client-go, tools/clientcmd): several of them merged, where the first file
 * that says something wins, and the one cluster, user and namespace that a context stands for. */

#include "base/arena.h"
#include "base/fault.h"

typedef struct KubeconfigCluster {
        Str server, ca_file, ca_data, tls_server_name;
        bool insecure;
        Str dir; /* of the file it stands in: relative paths start there */
} KubeconfigCluster;

typedef struct KubeconfigUser {
        Str cert_file, cert_data, key_file, key_data, token, token_file, username;
        bool exec, auth_provider;
        Str dir;
} KubeconfigUser;

typedef struct KubeconfigEntry KubeconfigEntry;

typedef struct Kubeconfig {
        Str current;
        KubeconfigEntry *clusters, *users, *contexts;
} Kubeconfig;

enum { KUBECONFIG_E_MALFORMED = 1, KUBECONFIG_E_MISSING };

/* Adds one file's text (YAML or JSON). dir: its folder. Everything lives in the arena. 0, KUBECONFIG_E_MALFORMED or -ENOMEM. */
int kubeconfig_add(Kubeconfig *k, Str text, Str dir, Arena *arena, Fault *fault);

/* context: empty for the current one. KUBECONFIG_E_MISSING names what is not there. */
int kubeconfig_resolve(const Kubeconfig *k, Str context, KubeconfigCluster *ret_cluster,
                       KubeconfigUser *ret_user, Str *ret_namespace, Fault *fault);
