/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/api.h"

#include <errno.h>

#include "wire/json_write.h"

int kube_get_pod(KubeClient *c, Str namespace_, Str name, KubeDone done, void *userdata, KubeCall **ret) {
        _cleanup_free_ char *path = NULL;
        KubeRequest request = {.method = "GET"};

        if (asprintf(&path, "/api/v1/namespaces/" STR_FMT "/pods/" STR_FMT, STR_ARG(namespace_),
                     STR_ARG(name)) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        request.path = path;
        return kube_call(c, &request, done, userdata, ret);
}

static void binding_write(const KubeBinding *b, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "apiVersion", "v1");
        json_write_text(&w, "kind", "Binding");
        json_write_object(&w, "metadata");
        json_write_str(&w, "name", b->name);
        json_write_str(&w, "namespace", b->namespace_);
        json_write_str(&w, "uid", b->uid);
        if (!str_is_empty(b->annotations))
                json_write_raw(&w, "annotations", b->annotations);
        json_write_object_end(&w);
        json_write_object(&w, "target");
        json_write_text(&w, "apiVersion", "v1");
        json_write_text(&w, "kind", "Node");
        json_write_str(&w, "name", b->node);
        json_write_object_end(&w);
        json_write_object_end(&w);
}

int kube_bind(KubeClient *c, const KubeBinding *b, KubeDone done, void *userdata, KubeCall **ret) {
        _cleanup_free_ char *path = NULL;
        _cleanup_buf_ Buf body = BUF_NULL;
        KubeRequest request = {.method = "POST"};

        if (asprintf(&path, "/api/v1/namespaces/" STR_FMT "/pods/" STR_FMT "/binding", STR_ARG(b->namespace_),
                     STR_ARG(b->name)) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        binding_write(b, &body);
        if (buf_result(&body) < 0)
                return -ENOMEM;
        request.path = path;
        request.body = buf_str(&body);
        return kube_call(c, &request, done, userdata, ret);
}

/* The precondition goes first: `{"metadata":{"resourceVersion":"7"}}` merged under the caller's own patch would need a
 * parser; a merge patch may not name a member twice. So the version is put into the caller's own metadata when the patch
 * begins with it, else in front as a metadata of its own. */
static int with_version(Str patch, Str version, Buf *out) {
        static const Str metadata = STR("{\"metadata\":{");

        if (str_is_empty(version)) {
                buf_append_str(out, patch);
                return buf_result(out);
        }
        buf_append_str(out, metadata);
        buf_append_str(out, STR("\"resourceVersion\":"));
        json_quote(out, version);
        if (str_has_prefix(patch, metadata)) {
                Str rest = {patch.data + metadata.len, patch.len - metadata.len};

                if (!str_has_prefix(rest, STR("}")))
                        buf_append_char(out, ',');
                buf_append_str(out, rest);
                return buf_result(out);
        }
        if (memmem(patch.data, patch.len, "\"metadata\"", strlen("\"metadata\"")))
                return -EINVAL; /* metadata must come first, without blanks: the caller is ours */
        buf_append_char(out, '}');
        if (patch.len > 2)
                buf_append_char(out, ',');
        buf_append(out, patch.data + 1, patch.len - 1);
        return buf_result(out);
}

int kube_merge_patch(KubeClient *c, const char *path, const char *subresource, Str patch,
                     Str resource_version, KubeDone done, void *userdata, KubeCall **ret) {
        _cleanup_free_ char *full = NULL;
        _cleanup_buf_ Buf body = BUF_NULL;
        KubeRequest request = {.method = "PATCH", .content_type = "application/merge-patch+json"};
        int r;

        if (asprintf(&full, "%s%s%s", path, subresource[0] ? "/" : "", subresource) < 0) {
                full = NULL;
                return -ENOMEM;
        }
        r = with_version(patch, resource_version, &body);
        if (r < 0)
                return r;
        request.path = full;
        request.body = buf_str(&body);
        return kube_call(c, &request, done, userdata, ret);
}
