/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/api.h"

#include <errno.h>

#include "kube/escape.h"
#include "kube/lease.h"
#include "wire/json.h"
#include "wire/json_write.h"

int kube_get_pod(KubeClient *c, Str namespace_, Str name, KubeDone done, void *userdata, KubeCall **ret) {
        _cleanup_buf_ Buf path = BUF_NULL;

        kube_pod_path(&path, namespace_, name);
        if (buf_result(&path) < 0)
                return -ENOMEM;
        return kube_call(c, &(KubeRequest){.method = "GET", .path = path.data}, done, userdata, ret);
}

static void write_binding(Buf *out, const KubeBinding *b) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "apiVersion", "v1");
        json_write_text(&w, "kind", "Binding");
        json_write_object(&w, "metadata");
        json_write_str(&w, "name", b->name);
        json_write_str(&w, "namespace", b->namespace_);
        if (!str_is_empty(b->uid))
                json_write_str(&w, "uid", b->uid);
        if (!str_is_empty(b->annotations))
                json_write_raw(&w, "annotations", b->annotations);
        if (!str_is_empty(b->labels))
                json_write_raw(&w, "labels", b->labels);
        json_write_object_end(&w);
        json_write_object(&w, "target");
        json_write_text(&w, "apiVersion", "v1");
        json_write_text(&w, "kind", "Node");
        json_write_str(&w, "name", b->node);
        json_write_object_end(&w);
        json_write_object_end(&w);
}

int kube_bind(KubeClient *c, const KubeBinding *b, KubeDone done, void *userdata, KubeCall **ret) {
        _cleanup_buf_ Buf path = BUF_NULL, body = BUF_NULL;

        kube_pod_path(&path, b->namespace_, b->name);
        buf_append_str(&path, STR("/binding"));
        write_binding(&body, b);
        if (buf_result(&path) < 0 || buf_result(&body) < 0)
                return -ENOMEM;
        return kube_call(c,
                         &(KubeRequest){.method = "POST",
                                        .path = path.data,
                                        .body = buf_str(&body),
                                        .timeout = LEASE_BINDING_SEC * USEC_PER_SEC},
                         done, userdata, ret);
}

/* ---- eviction ---- */

static void write_eviction(Buf *out, Str namespace_, Str name, Str uid) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "apiVersion", "policy/v1");
        json_write_text(&w, "kind", "Eviction");
        json_write_object(&w, "metadata");
        json_write_str(&w, "name", name);
        json_write_str(&w, "namespace", namespace_);
        json_write_object_end(&w);
        json_write_object(&w, "deleteOptions");
        json_write_object(&w, "preconditions");
        json_write_str(&w, "uid", uid);
        json_write_object_end(&w);
        json_write_object_end(&w);
        json_write_object_end(&w);
}

int kube_evict(KubeClient *c, Str namespace_, Str name, Str uid, KubeDone done, void *userdata,
               KubeCall **ret) {
        _cleanup_buf_ Buf path = BUF_NULL, body = BUF_NULL;

        kube_pod_path(&path, namespace_, name);
        buf_append_str(&path, STR("/eviction"));
        write_eviction(&body, namespace_, name, uid);
        if (buf_result(&path) < 0 || buf_result(&body) < 0)
                return -ENOMEM;
        return kube_call(c, &(KubeRequest){.method = "POST", .path = path.data, .body = buf_str(&body)}, done,
                         userdata, ret);
}

/* ---- merge patch ---- */

/* Appends a member. The raw key is copied between quotes, with its escapes. */
static void copy_member(Buf *out, Str key, Str value) {
        if (out->data[out->len - 1] != '{')
                buf_append_char(out, ',');
        buf_append_char(out, '"');
        buf_append_str(out, key);
        buf_append_str(out, STR("\":"));
        buf_append_str(out, value);
}

static void open_metadata(Buf *out, Str resource_version) {
        if (out->data[out->len - 1] != '{')
                buf_append_char(out, ',');
        buf_append_str(out, STR("\"metadata\":{\"resourceVersion\":"));
        json_write_quoted(out, resource_version);
}

/* Appends the patch's own members of metadata. Its resourceVersion is left out: the argument
 * counts. */
static void merge_metadata(JsonReader *r, Buf *out, Str resource_version) {
        Str key, value = {NULL, 0};

        open_metadata(out, resource_version);
        if (json_object_begin(r))
                while (json_object_next(r, &key)) {
                        json_raw(r, &value);
                        if (!json_key_is(key, "resourceVersion") && out->len > 0)
                                copy_member(out, key, value);
                }
        buf_append_char(out, '}');
}

static int add_version(Str patch, Str resource_version, Buf *out) {
        Str key, value = {NULL, 0};
        bool merged = false;
        JsonReader r;

        json_init(&r, patch);
        if (json_peek(&r) != JSON_OBJECT)
                return -EINVAL;
        buf_append_char(out, '{');
        if (json_object_begin(&r))
                while (json_object_next(&r, &key) && !out->broken) {
                        if (json_key_is(key, "metadata") && !merged) {
                                merged = true;
                                merge_metadata(&r, out, resource_version);
                                continue;
                        }
                        json_raw(&r, &value);
                        copy_member(out, key, value);
                }
        if (out->broken)
                return -ENOMEM;
        if (!merged) {
                open_metadata(out, resource_version);
                buf_append_char(out, '}');
        }
        buf_append_char(out, '}');
        if (buf_result(out) < 0)
                return -ENOMEM;
        return json_finish(&r, NULL) == 0 ? 0 : -EINVAL;
}

int kube_merge_patch(KubeClient *c, const char *path, const char *subresource, Str patch,
                     Str resource_version, KubeDone done, void *userdata, KubeCall **ret) {
        _cleanup_buf_ Buf full = BUF_NULL, body = BUF_NULL;
        KubeRequest request = {
                .method = "PATCH", .content_type = "application/merge-patch+json", .body = patch};
        int r;

        buf_appendf(&full, "%s%s%s", path, *subresource ? "/" : "", subresource);
        if (buf_result(&full) < 0)
                return -ENOMEM;
        if (!str_is_empty(resource_version)) {
                r = add_version(patch, resource_version, &body);
                if (r < 0)
                        return r;
                request.body = buf_str(&body);
        }
        request.path = full.data;
        return kube_call(c, &request, done, userdata, ret);
}
