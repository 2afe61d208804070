/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decodes and merges the text of kubeconfig files, without reading files or the environment. As in
 * kubectl, the first file that sets a cluster, user, context or the current context wins. */

#include "base/arena.h"
#include "base/fault.h"

enum { KUBECONFIG_E_MALFORMED = 1 };

typedef struct KubeconfigEntry {
        struct KubeconfigEntry *next;
        Str name;
        Str directory; /* directory of its file, where relative paths start */
        Str file;      /* name of the file, for faults */

        /* of a cluster */
        Str server, ca_file, ca_data, tls_server_name, proxy;
        bool insecure;
        /* of a user */
        Str token, token_file, cert_file, cert_data, key_file, key_data, username, impersonate;
        bool exec, auth_provider;
        /* of a context */
        Str cluster, user, namespace_;
} KubeconfigEntry;

typedef struct Kubeconfig {
        KubeconfigEntry *clusters, *users, *contexts;
        Str current_context;
} Kubeconfig;

/* Adds one file's text (YAML or JSON). Everything is copied into the arena. Returns 0,
 * KUBECONFIG_E_MALFORMED (fault: file, path in it, reason) or -ENOMEM. */
int kubeconfig_add(Kubeconfig *k, Arena *arena, const char *file, Str text, Fault *fault);

/* What one context stands for. user is NULL when the context names none. */
typedef struct KubeconfigChoice {
        const KubeconfigEntry *cluster, *user;
        Str namespace_;
} KubeconfigChoice;

/* context: NULL for the current one. Checks everything that needs no files: that every name is
 * defined, and that no unsupported method is asked for. Returns 0 or KUBECONFIG_E_MALFORMED. */
int kubeconfig_choose(const Kubeconfig *k, const char *context, KubeconfigChoice *ret, Fault *fault);
