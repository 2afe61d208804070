/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"

/* Appends `s` escaped as one segment of a path or one value of a query (RFC 3986: all but the
 * unreserved characters become %XX). Names and tokens come from outside: a "/" or "&" must not
 * change the request. */
void kube_url_escape(Buf *out, Str s);

/* Append the API path of a pod, or of a node, with its names escaped. */
void kube_pod_path(Buf *out, Str namespace_, Str name);
void kube_node_path(Buf *out, Str name);
