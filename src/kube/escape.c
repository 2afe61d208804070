/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/escape.h"

static bool is_unreserved(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '.' || c == '_' || c == '~';
}

void kube_url_escape(Buf *out, Str s) {
        static const char digits[] = "0123456789ABCDEF";

        for (size_t i = 0; i < s.len; i++) {
                unsigned char c = (unsigned char) s.data[i];

                if (is_unreserved(s.data[i])) {
                        buf_append_char(out, s.data[i]);
                        continue;
                }
                buf_append_char(out, '%');
                buf_append_char(out, digits[c >> 4]);
                buf_append_char(out, digits[c & 15]);
        }
}

void kube_pod_path(Buf *out, Str namespace_, Str name) {
        buf_append_str(out, STR("/api/v1/namespaces/"));
        kube_url_escape(out, namespace_);
        buf_append_str(out, STR("/pods/"));
        kube_url_escape(out, name);
}

void kube_node_path(Buf *out, Str name) {
        buf_append_str(out, STR("/api/v1/nodes/"));
        kube_url_escape(out, name);
}
