/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The report of `kubectl inspect cgpu`. It takes objects one at a time and prints them byte for
 * byte as older tools do. Needs libc only. */

#include "base/buf.h"
#include "base/fault.h"
#include "base/str.h"

typedef struct Inspect Inspect;

int inspect_new(Inspect **ret);
Inspect *inspect_free(Inspect *i);

/* Adds a Node or Pod, in any order; other kinds are ignored. Everything that is kept is copied. A
 * later object replaces an earlier one of the same name. kind: from a typed list; empty: from the
 * object.
 *
 * Returns 0, with a fault when a part of the object was ignored; -ENOMEM; or INSPECT_E_MALFORMED
 * with a fault, and the object is left out. */
enum { INSPECT_E_MALFORMED = 1, INSPECT_E_NO_NODE };
int inspect_add(Inspect *i, Str kind, Str object, Fault *fault);

/* Print for one node, or for all when `node` is empty. They return 0, -ENOMEM, or INSPECT_E_NO_NODE
 * when it is not a sharing node of the cluster. */
int inspect_print_summary(Inspect *i, Str node, Buf *out, Fault *fault);
int inspect_print_details(Inspect *i, Str node, Buf *out, Fault *fault);
int inspect_print_json(Inspect *i, Str node, Buf *out, Fault *fault);

/* Counts the pods on these nodes that have other amounts in annotations than in limits. Returns 0
 * with *ret, or an error as above. */
int inspect_count_differences(Inspect *i, Str node, size_t *ret, Fault *fault);

DEFINE_CLEANUP(Inspect *, inspect_free)
