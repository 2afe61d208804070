/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"

/* Appends `s` so that it is one segment of a path, or one value of a query, whatever is in it (RFC
 * 3986: all but the unreserved characters become %XX). Names and tokens come from outside: a "/" or
 * "&" in one must not lead elsewhere. */
void kube_url_escape(Buf *out, Str s);
