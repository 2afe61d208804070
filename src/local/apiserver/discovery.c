/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/rest.h"
#include "wire/json_write.h"

/* The part of discovery that kubectl requests before its first request. */

static void write_verbs(JsonWriter *w, const char *const *verbs) {
        json_write_array(w, "verbs");
        for (; *verbs; verbs++)
                json_write_text(w, NULL, *verbs);
        json_write_array_end(w);
}

static void write_resource(JsonWriter *w, const StoreKind *kind, const char *subresource, const char *as) {
        static const char *const whole[] = {"create", "delete", "get",   "list",
                                            "patch",  "update", "watch", NULL};
        static const char *const status[] = {"get", "patch", "update", NULL}, *const binding[] = {"create",
                                                                                                  NULL};
        char name[64];

        (void) snprintf(name, sizeof name, STR_FMT "%s", STR_ARG(kind->plural), subresource);
        json_write_object(w, NULL);
        json_write_text(w, "name", name);
        json_write_text(w, "singularName", *subresource ? "" : kind->singular);
        json_write_bool(w, "namespaced", kind->namespaced);
        if (as)
                json_write_text(w, "kind", as);
        else
                json_write_str(w, "kind", kind->kind);
        write_verbs(w, as ? binding : *subresource ? status : whole);
        if (kind->short_name && !*subresource) {
                json_write_array(w, "shortNames");
                json_write_text(w, NULL, kind->short_name);
                json_write_array_end(w);
        }
        json_write_object_end(w);
}

static void write_resource_list(JsonWriter *w, Str group, Str api_version) {
        json_write_text(w, "kind", "APIResourceList");
        json_write_text(w, "apiVersion", "v1");
        json_write_str(w, "groupVersion", api_version);
        json_write_array(w, "resources");
        for (size_t i = 0; i < STORE_N_KINDS; i++) {
                if (!str_eq(store_kinds[i].group, group))
                        continue;
                write_resource(w, &store_kinds[i], "", NULL);
                if (store_kinds[i].status)
                        write_resource(w, &store_kinds[i], "/status", NULL);
                if (store_kind_is_pod(&store_kinds[i]))
                        write_resource(w, &store_kinds[i], "/binding", "Binding");
        }
        json_write_array_end(w);
}

static void write_group_version(JsonWriter *w, const char *key, const StoreKind *kind) {
        json_write_object(w, key);
        json_write_str(w, "groupVersion", kind->api_version);
        json_write_str(w, "version", store_kind_version(kind));
        json_write_object_end(w);
}

static void write_group(JsonWriter *w, const StoreKind *kind) {
        json_write_str(w, "name", kind->group);
        json_write_array(w, "versions");
        write_group_version(w, NULL, kind);
        json_write_array_end(w);
        write_group_version(w, "preferredVersion", kind);
}

static void write_groups(JsonWriter *w) {
        json_write_text(w, "kind", "APIGroupList");
        json_write_text(w, "apiVersion", "v1");
        json_write_array(w, "groups");
        for (size_t i = 1; i < STORE_N_KINDS; i++) {
                /* the table is sorted by group */
                if (str_eq(store_kinds[i].group, store_kinds[i - 1].group))
                        continue;
                json_write_object(w, NULL);
                write_group(w, &store_kinds[i]);
                json_write_object_end(w);
        }
        json_write_array_end(w);
}

static void write_core_versions(JsonWriter *w) {
        json_write_text(w, "kind", "APIVersions");
        json_write_array(w, "versions");
        json_write_text(w, NULL, "v1");
        json_write_array_end(w);
        json_write_raw(w, "serverAddressByClientCIDRs", STR("[]"));
}

static void write_version(JsonWriter *w) {
        json_write_text(w, "major", "1");
        json_write_text(w, "minor", "36");
        json_write_text(w, "gitVersion", "v1.36.0+aliquot-" ALIQUOT_VERSION);
        json_write_text(w, "platform", "linux/amd64");
}

/* Answers /apis/GROUP and /apis/GROUP/v1. */
static bool write_of_group(JsonWriter *w, Str path) {
        for (size_t i = 0; i < STORE_N_KINDS; i++) {
                const StoreKind *kind = &store_kinds[i];

                if (str_is_empty(kind->group))
                        continue;
                if (str_eq(path, kind->group)) {
                        json_write_text(w, "kind", "APIGroup");
                        json_write_text(w, "apiVersion", "v1");
                        write_group(w, kind);
                        return true;
                }
                if (str_eq(path, kind->api_version)) {
                        write_resource_list(w, kind->group, kind->api_version);
                        return true;
                }
        }
        return false;
}

/* ---- OpenAPI ---- */

/* kubectl leaves validation to a server whose PATCH of the kind knows fieldValidation. Our
 * documents contain nothing else, because we validate in any case. */
static void write_patch_operation(JsonWriter *w, const StoreKind *kind) {
        char path[128];

        (void) snprintf(path, sizeof path, "%s" STR_FMT "/%s" STR_FMT "/{name}",
                        str_is_empty(kind->group) ? "/api/" : "/apis/", STR_ARG(kind->api_version),
                        kind->namespaced ? "namespaces/{namespace}/" : "", STR_ARG(kind->plural));
        json_write_object(w, path);
        json_write_object(w, "patch");
        json_write_raw(w, "parameters", STR("[{\"name\":\"fieldValidation\",\"in\":\"query\"}]"));
        json_write_object(w, "x-kubernetes-group-version-kind");
        json_write_str(w, "group", kind->group);
        json_write_text(w, "version", "v1");
        json_write_str(w, "kind", kind->kind);
        json_write_object_end(w);
        json_write_object_end(w);
        json_write_object_end(w);
}

static void write_openapi_index(JsonWriter *w) {
        char path[64], url[96];

        json_write_object(w, "paths");
        for (size_t i = 0; i < STORE_N_KINDS; i++) {
                if (i > 0 && str_eq(store_kinds[i].group, store_kinds[i - 1].group))
                        continue;
                (void) snprintf(path, sizeof path, "%s/" STR_FMT,
                                str_is_empty(store_kinds[i].group) ? "api" : "apis",
                                STR_ARG(store_kinds[i].api_version));
                (void) snprintf(url, sizeof url, "/openapi/v3/%s", path);
                json_write_object(w, path);
                json_write_text(w, "serverRelativeURL", url);
                json_write_object_end(w);
        }
        json_write_object_end(w);
}

/* Answers the OpenAPI document of api/v1 or apis/GROUP/v1. */
static bool write_openapi(JsonWriter *w, Str path) {
        bool any = false;

        (void) str_split(&path, '/');
        json_write_text(w, "openapi", "3.0.0");
        json_write_raw(w, "info", STR("{\"title\":\"Aliquot\",\"version\":\"" ALIQUOT_VERSION "\"}"));
        json_write_object(w, "paths");
        for (size_t i = 0; i < STORE_N_KINDS; i++) {
                if (!str_eq(store_kinds[i].api_version, path))
                        continue;
                write_patch_operation(w, &store_kinds[i]);
                any = true;
        }
        json_write_object_end(w);
        return any;
}

static bool write_document(JsonWriter *w, Str path) {
        if (str_eq(path, STR("/version")))
                write_version(w);
        else if (str_eq(path, STR("/api")))
                write_core_versions(w);
        else if (str_eq(path, STR("/apis")))
                write_groups(w);
        else if (str_eq(path, STR("/api/v1")))
                write_resource_list(w, STR(""), STR("v1"));
        else if (str_has_prefix(path, STR("/apis/")))
                return write_of_group(w, (Str){path.data + 6, path.len - 6});
        else if (str_eq(path, STR("/openapi/v3")))
                write_openapi_index(w);
        else if (str_has_prefix(path, STR("/openapi/v3/")))
                return write_openapi(
                        w, (Str){path.data + strlen("/openapi/v3/"), path.len - strlen("/openapi/v3/")});
        else
                return false;
        return true;
}

bool store_discover(const char *path, StoreReply *reply) {
        Str p = str_from(path);
        JsonWriter w;

        if (p.len > 1 && p.data[p.len - 1] == '/')
                p.len--;
        if (str_eq(p, STR("/healthz")) || str_eq(p, STR("/readyz")) || str_eq(p, STR("/livez"))) {
                reply->status = 200;
                buf_append_str(&reply->body, STR("ok"));
                return true;
        }
        json_write_init(&w, &reply->body);
        json_write_object(&w, NULL);
        if (!write_document(&w, p)) {
                buf_clear(&reply->body);
                return false;
        }
        json_write_object_end(&w);
        reply->status = 200;
        return true;
}
