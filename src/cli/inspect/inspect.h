/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The report of `kubectl inspect cgpu`: fed with objects one at a time, printed byte for byte as
 * older tools print it. libc only. */

#include "base/buf.h"
#include "base/fault.h"
#include "base/str.h"

typedef struct Inspect Inspect;

int inspect_new(Inspect **ret);
Inspect *inspect_free(Inspect *i);

/* One Node or Pod, other kinds are passed over; in any order, and what is kept is copied. An object
 * that comes again replaces itself. kind: what a typed list said; empty: as the object says.
 * Returns 0, also with a fault that has words where a part of the object was passed over; -ENOMEM;
 * or INSPECT_E_MALFORMED with a fault that names the object where it can, and the object is left
 * out. */
enum { INSPECT_E_MALFORMED = 1, INSPECT_E_NO_NODE };
int inspect_add(Inspect *i, Str kind, Str object, Fault *fault);

/* node: restrict to this node; empty: all. INSPECT_E_NO_NODE when it is not a sharing node of the
 * cluster. */
int inspect_print_summary(Inspect *i, Str node, Buf *out, Fault *fault);
int inspect_print_details(Inspect *i, Str node, Buf *out, Fault *fault);
int inspect_print_json(Inspect *i, Str node, Buf *out, Fault *fault);

/* How many pods on these nodes have annotations whose amounts differ from their limits: 0 with
 * *ret, and errors as above. */
int inspect_count_differences(Inspect *i, Str node, size_t *ret, Fault *fault);

DEFINE_CLEANUP(Inspect *, inspect_free)
