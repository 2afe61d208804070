/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kubeconfig.h"

#include <errno.h>

#include "wire/json_table.h"
#include "wire/yaml.h"

/* What one named entry of any of the three lists may say; which list it stands in tells what counts. */
struct KubeconfigEntry {
        KubeconfigEntry *next;
        Str name;
        KubeconfigCluster cluster;
        KubeconfigUser user;
        Str context_cluster, context_user, context_namespace;
};

static const JsonField cluster_fields[] = {
        JSON_FIELD(KubeconfigCluster, server, "server", json_field_str),
        JSON_FIELD(KubeconfigCluster, ca_file, "certificate-authority", json_field_str),
        JSON_FIELD(KubeconfigCluster, ca_data, "certificate-authority-data", json_field_str),
        JSON_FIELD(KubeconfigCluster, tls_server_name, "tls-server-name", json_field_str),
        JSON_FIELD(KubeconfigCluster, insecure, "insecure-skip-tls-verify", json_field_bool),
};

static void decode_cluster(JsonReader *r, Arena *arena, void *into) {
        json_decode(r, arena, cluster_fields, ELEMENTSOF(cluster_fields), into);
}

static const JsonField user_fields[] = {
        JSON_FIELD(KubeconfigUser, cert_file, "client-certificate", json_field_str),
        JSON_FIELD(KubeconfigUser, cert_data, "client-certificate-data", json_field_str),
        JSON_FIELD(KubeconfigUser, key_file, "client-key", json_field_str),
        JSON_FIELD(KubeconfigUser, key_data, "client-key-data", json_field_str),
        JSON_FIELD(KubeconfigUser, token, "token", json_field_str),
        JSON_FIELD(KubeconfigUser, token_file, "tokenFile", json_field_str),
        JSON_FIELD(KubeconfigUser, username, "username", json_field_str),
        JSON_FIELD(KubeconfigUser, exec, "exec", json_field_present),
        JSON_FIELD(KubeconfigUser, auth_provider, "auth-provider", json_field_present),
};

static void decode_user(JsonReader *r, Arena *arena, void *into) {
        json_decode(r, arena, user_fields, ELEMENTSOF(user_fields), into);
}

static const JsonField context_fields[] = {
        JSON_FIELD(KubeconfigEntry, context_cluster, "cluster", json_field_str),
        JSON_FIELD(KubeconfigEntry, context_user, "user", json_field_str),
        JSON_FIELD(KubeconfigEntry, context_namespace, "namespace", json_field_str),
};

static void decode_context(JsonReader *r, Arena *arena, void *into) {
        json_decode(r, arena, context_fields, ELEMENTSOF(context_fields), into);
}

static const JsonField entry_fields[] = {
        JSON_FIELD(KubeconfigEntry, name, "name", json_field_str),
        JSON_FIELD(KubeconfigEntry, cluster, "cluster", decode_cluster),
        JSON_FIELD(KubeconfigEntry, user, "user", decode_user),
        {STR("context"), decode_context, 0},
};

static KubeconfigEntry *find(KubeconfigEntry *list, Str name) {
        for (; list; list = list->next)
                if (str_eq(list->name, name))
                        return list;
        return NULL;
}

static void decode_list(JsonReader *r, Arena *arena, void *into) {
        KubeconfigEntry **list = into;

        if (!json_array_begin(r))
                return;
        while (json_array_next(r)) {
                KubeconfigEntry *e = arena_new(arena, KubeconfigEntry, 1);

                if (!e) {
                        json_no_memory(r);
                        return;
                }
                json_decode(r, arena, entry_fields, ELEMENTSOF(entry_fields), e);
                if (find(*list, e->name))
                        continue; /* the first file that names it wins */
                e->next = *list;
                *list = e;
        }
}

static const JsonField file_fields[] = {
        JSON_FIELD(Kubeconfig, current, "current-context", json_field_str),
        JSON_FIELD(Kubeconfig, clusters, "clusters", decode_list),
        JSON_FIELD(Kubeconfig, users, "users", decode_list),
        JSON_FIELD(Kubeconfig, contexts, "contexts", decode_list),
};

typedef struct Adding {
        Kubeconfig *k;
        Arena *arena;
        Str dir;
} Adding;

static void name_dir(KubeconfigEntry *list, Str dir) {
        for (; list; list = list->next)
                if (!list->cluster.dir.data) {
                        list->cluster.dir = dir;
                        list->user.dir = dir;
                }
}

static int add_document(void *userdata, Str json, unsigned line, Fault *fault) {
        Adding *a = userdata;
        Kubeconfig *k = a->k;
        Str current = k->current, text = arena_str(a->arena, json);
        JsonReader r;
        int q;

        if (!text.data)
                return -ENOMEM;
        json_init(&r, text);
        json_decode(&r, a->arena, file_fields, ELEMENTSOF(file_fields), k);
        q = json_finish(&r, fault);
        if (q != 0)
                return q < 0 ? q : KUBECONFIG_E_MALFORMED;
        if (!str_is_empty(current))
                k->current = current;
        name_dir(k->clusters, a->dir);
        name_dir(k->users, a->dir);
        return 0;
}

int kubeconfig_add(Kubeconfig *k, Str text, Str dir, Arena *arena, Fault *fault) {
        Adding a = {.k = k, .arena = arena, .dir = arena_str(arena, dir)};

        if (!a.dir.data)
                return -ENOMEM;
        return yaml_documents(text, add_document, &a, fault);
}

int kubeconfig_resolve(const Kubeconfig *k, Str context, KubeconfigCluster *ret_cluster,
                       KubeconfigUser *ret_user, Str *ret_namespace, Fault *fault) {
        const KubeconfigEntry *c, *cluster, *user;

        if (str_is_empty(context))
                context = k->current;
        if (str_is_empty(context))
                return fault_set(fault, KUBECONFIG_E_MISSING, "no current-context, and no other was named");
        c = find(k->contexts, context);
        if (!c)
                return fault_set(fault, KUBECONFIG_E_MISSING, "context \"" STR_FMT "\" does not exist",
                                 STR_ARG(context));
        cluster = find(k->clusters, c->context_cluster);
        if (!cluster || str_is_empty(cluster->cluster.server))
                return fault_set(fault, KUBECONFIG_E_MISSING,
                                 "context \"" STR_FMT "\": cluster \"" STR_FMT
                                 "\" does not exist or has no server",
                                 STR_ARG(context), STR_ARG(c->context_cluster));
        user = find(k->users, c->context_user);
        if (!user && !str_is_empty(c->context_user))
                return fault_set(fault, KUBECONFIG_E_MISSING,
                                 "context \"" STR_FMT "\": user \"" STR_FMT "\" does not exist",
                                 STR_ARG(context), STR_ARG(c->context_user));
        *ret_cluster = cluster->cluster;
        *ret_user = user ? user->user : (KubeconfigUser){0};
        *ret_namespace = c->context_namespace;
        return 0;
}
