/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kubeconfig.h"

#include <errno.h>

#include "wire/json_field.h"
#include "wire/yaml.h"

/* Bounds the memory of a file that repeats itself by YAML aliases. */
enum { KUBECONFIG_MAX_ENTRIES = 4096 };

typedef struct Reading {
        Kubeconfig *config;
        Arena *arena;
        Str file, directory;
        /* a document was read: kubectl ignores further documents of a file, we refuse them */
        bool seen;
        size_t n_entries;
} Reading;

/* One list of the file; entries keep their order. */
typedef struct EntryList {
        KubeconfigEntry *first, **end;
        size_t n;
        void (*decode_body)(JsonReader *r, Arena *arena, void *entry);
        const char *body;
} EntryList;

static void decode_cluster(JsonReader *r, Arena *arena, void *entry) {
        static const JsonField fields[] = {
                JSON_FIELD(KubeconfigEntry, server, "server", json_field_str),
                JSON_FIELD(KubeconfigEntry, ca_file, "certificate-authority", json_field_str),
                JSON_FIELD(KubeconfigEntry, ca_data, "certificate-authority-data", json_field_str),
                JSON_FIELD(KubeconfigEntry, tls_server_name, "tls-server-name", json_field_str),
                JSON_FIELD(KubeconfigEntry, proxy, "proxy-url", json_field_str),
                JSON_FIELD(KubeconfigEntry, insecure, "insecure-skip-tls-verify", json_field_bool),
        };

        json_field_decode(r, arena, fields, ELEMENTSOF(fields), entry);
}

static void decode_user(JsonReader *r, Arena *arena, void *entry) {
        static const JsonField fields[] = {
                JSON_FIELD(KubeconfigEntry, token, "token", json_field_str),
                JSON_FIELD(KubeconfigEntry, token_file, "tokenFile", json_field_str),
                JSON_FIELD(KubeconfigEntry, cert_file, "client-certificate", json_field_str),
                JSON_FIELD(KubeconfigEntry, cert_data, "client-certificate-data", json_field_str),
                JSON_FIELD(KubeconfigEntry, key_file, "client-key", json_field_str),
                JSON_FIELD(KubeconfigEntry, key_data, "client-key-data", json_field_str),
                JSON_FIELD(KubeconfigEntry, username, "username", json_field_str),
                JSON_FIELD(KubeconfigEntry, impersonate, "as", json_field_str),
                JSON_FIELD(KubeconfigEntry, exec, "exec", json_field_present),
                JSON_FIELD(KubeconfigEntry, auth_provider, "auth-provider", json_field_present),
        };

        json_field_decode(r, arena, fields, ELEMENTSOF(fields), entry);
}

static void decode_context(JsonReader *r, Arena *arena, void *entry) {
        static const JsonField fields[] = {
                JSON_FIELD(KubeconfigEntry, cluster, "cluster", json_field_str),
                JSON_FIELD(KubeconfigEntry, user, "user", json_field_str),
                JSON_FIELD(KubeconfigEntry, namespace_, "namespace", json_field_str),
        };

        json_field_decode(r, arena, fields, ELEMENTSOF(fields), entry);
}

static void decode_entry(JsonReader *r, Arena *arena, EntryList *list) {
        KubeconfigEntry *entry = arena_new(arena, KubeconfigEntry, 1);
        Str key;

        if (!entry) {
                json_no_memory(r);
                return;
        }
        if (++list->n > KUBECONFIG_MAX_ENTRIES) {
                json_fault(r, "more entries than any kubeconfig has");
                return;
        }
        if (!json_object_begin(r))
                return;
        while (json_object_next(r, &key))
                if (json_key_is(key, "name"))
                        json_string(r, arena, &entry->name);
                else if (json_key_is(key, list->body))
                        list->decode_body(r, arena, entry);
                else
                        json_skip(r);
        *list->end = entry;
        list->end = &entry->next;
}

static void decode_list(JsonReader *r, Arena *arena, void *list_) {
        EntryList *list = list_;

        JSON_EACH_ELEMENT(r)
                decode_entry(r, arena, list);
}

typedef struct Document {
        EntryList clusters, users, contexts;
        Str current_context, kind;
} Document;

static const KubeconfigEntry *find_entry(const KubeconfigEntry *list, Str name) {
        for (; list; list = list->next)
                if (str_eq(list->name, name))
                        return list;
        return NULL;
}

static void merge_list(const Reading *f, KubeconfigEntry **into, KubeconfigEntry *from) {
        KubeconfigEntry **end = into, *next;

        while (*end)
                end = &(*end)->next;
        for (; from; from = next) {
                next = from->next;
                if (find_entry(*into, from->name))
                        continue;
                from->next = NULL;
                from->file = f->file;
                from->directory = f->directory;
                *end = from;
                end = &from->next;
        }
}

static int read_document(void *userdata, Str json, unsigned line, Fault *fault) {
        static const JsonField fields[] = {
                JSON_FIELD(Document, kind, "kind", json_field_str),
                JSON_FIELD(Document, current_context, "current-context", json_field_str),
                JSON_FIELD(Document, clusters, "clusters", decode_list),
                JSON_FIELD(Document, users, "users", decode_list),
                JSON_FIELD(Document, contexts, "contexts", decode_list),
        };
        Reading *f = userdata;
        Document d = {
                .clusters = {.end = &d.clusters.first, .decode_body = decode_cluster, .body = "cluster"},
                .users = {.end = &d.users.first, .decode_body = decode_user, .body = "user"},
                .contexts = {.end = &d.contexts.first, .decode_body = decode_context, .body = "context"},
        };
        Str text = arena_str(f->arena, json); /* the decoded strings are views of it */
        int r;

        if (!text.data)
                return -ENOMEM;
        if (f->seen)
                return fault_set(fault, KUBECONFIG_E_MALFORMED, "a second document at line %u", line);
        f->seen = true;
        r = json_field_read(text, f->arena, fields, ELEMENTSOF(fields), &d, fault);
        if (r != 0)
                return r < 0 ? r : KUBECONFIG_E_MALFORMED;
        if (!str_is_empty(d.kind) && !str_eq(d.kind, STR("Config")))
                return fault_set(fault, KUBECONFIG_E_MALFORMED, "kind is \"%.*s\", not \"Config\"",
                                 STR_CUT(d.kind, 64));
        merge_list(f, &f->config->clusters, d.clusters.first);
        merge_list(f, &f->config->users, d.users.first);
        merge_list(f, &f->config->contexts, d.contexts.first);
        if (str_is_empty(f->config->current_context))
                f->config->current_context = d.current_context;
        return 0;
}

int kubeconfig_add(Kubeconfig *k, Arena *arena, const char *file, Str text, Fault *fault) {
        const char *slash = strrchr(file, '/');
        Str directory = slash ? (Str){file, (size_t) (slash - file) + 1} : STR("");
        Reading f = {
                .config = k,
                .arena = arena,
                .file = arena_str(arena, str_from(file)),
                .directory = arena_str(arena, directory),
        };
        int r;

        if (!f.file.data || !f.directory.data)
                return -ENOMEM;
        r = yaml_documents(text, read_document, &f, fault);
        return r == 0 ? 0 : fault_wrap(fault, r < 0 ? r : KUBECONFIG_E_MALFORMED, "%s", file);
}

/* ---- the choice ---- */

#define NAME_ARG(s) STR_CUT(s, 100)

static int refuse_entry(Fault *fault, const KubeconfigEntry *e, const char *list, const char *what) {
        return fault_set(fault, KUBECONFIG_E_MALFORMED, STR_FMT ": %s \"%.*s\": %s", NAME_ARG(e->file), list,
                         NAME_ARG(e->name), what);
}

/* Whether the text has no blank or control character, which would end a header line or a URL. */
static bool is_printable(Str s) {
        for (size_t i = 0; i < s.len; i++)
                if ((unsigned char) s.data[i] <= ' ' || s.data[i] == 0x7f)
                        return false;
        return true;
}

static int check_cluster(const KubeconfigEntry *c, Fault *fault) {
        if (str_is_empty(c->server))
                return refuse_entry(fault, c, "cluster", "server is missing");
        if (!str_has_prefix(c->server, STR("https://")) && !str_has_prefix(c->server, STR("http://")))
                return refuse_entry(fault, c, "cluster", "server must begin with https:// or http://");
        if (!is_printable(c->server) || !is_printable(c->tls_server_name) || !is_printable(c->proxy))
                return refuse_entry(fault, c, "cluster",
                                    "blanks or control characters in server, tls-server-name or proxy-url");
        if (c->insecure && (!str_is_empty(c->ca_file) || !str_is_empty(c->ca_data)))
                return refuse_entry(fault, c, "cluster",
                                    "insecure-skip-tls-verify together with a certificate authority");
        return 0;
}

static int check_user(const KubeconfigEntry *u, Fault *fault) {
        bool cert = !str_is_empty(u->cert_file) || !str_is_empty(u->cert_data);
        bool key = !str_is_empty(u->key_file) || !str_is_empty(u->key_data);

        if (u->exec)
                return refuse_entry(
                        fault, u, "user",
                        "credentials by exec plugin are not supported; use a token or a client certificate");
        if (u->auth_provider)
                return refuse_entry(fault, u, "user",
                                    "credentials by auth-provider are not supported; use a token or a client "
                                    "certificate");
        if (!str_is_empty(u->username))
                return refuse_entry(fault, u, "user",
                                    "username and password are not supported (nor by Kubernetes since 1.19)");
        if (!str_is_empty(u->impersonate))
                return refuse_entry(fault, u, "user", "impersonation (as) is not supported");
        if (cert != key)
                return refuse_entry(fault, u, "user",
                                    cert ? "client-certificate without client-key"
                                         : "client-key without client-certificate");
        if (!is_printable(str_trim(u->token)))
                return refuse_entry(fault, u, "user", "blanks or control characters in token");
        return 0;
}

int kubeconfig_choose(const Kubeconfig *k, const char *context, KubeconfigChoice *ret, Fault *fault) {
        Str name = context ? str_from(context) : k->current_context;
        const KubeconfigEntry *c = find_entry(k->contexts, name);
        KubeconfigChoice choice = {0};
        int r;

        if (str_is_empty(name))
                return fault_set(fault, KUBECONFIG_E_MALFORMED, "kubeconfig: current-context is not set");
        if (!c)
                return fault_set(fault, KUBECONFIG_E_MALFORMED, "kubeconfig: there is no context \"%.*s\"",
                                 NAME_ARG(name));
        choice.cluster = find_entry(k->clusters, c->cluster);
        if (!choice.cluster)
                return refuse_entry(fault, c, "context", "its cluster is not among clusters");
        r = check_cluster(choice.cluster, fault);
        if (r != 0)
                return r;
        choice.user = find_entry(k->users, c->user);
        if (!choice.user && !str_is_empty(c->user))
                return refuse_entry(fault, c, "context", "its user is not among users");
        if (choice.user)
                r = check_user(choice.user, fault);
        if (r != 0)
                return r;
        choice.namespace_ = c->namespace_;
        *ret = choice;
        return 0;
}
