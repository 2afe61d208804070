/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What kube-scheduler sends: the structs of k8s.io/kube-scheduler/extender/v1. They have no JSON
 * tags, so Go writes their fields under their own names and reads them in any case; so does this
 * reader.
 *
 * One call has thousands of nodes. They are handed to a visitor one by one while the text is read,
 * because Go writes the pod before them. A text with the nodes before the pod is read twice. */

#include "scheduler/policy/directory.h"
#include "wire/json.h"
#include "wire/pod.h"

enum { ARGS_E_MALFORMED = 1 };

/* One offered node. raw: its text in the request, a quoted name or a whole Node object. */
typedef struct ArgsNode {
        Str raw, name;
        DirectoryNode *node; /* NULL: no such Node object is known */
} ArgsNode;

typedef struct ExtenderArgs {
        Pod pod;
        Str pod_text; /* text of `pod` in the request */
        bool by_name; /* the nodes came as NodeNames, and the answer names them so */
} ExtenderArgs;

/* What args_read() calls: `pod` first and once, then `node` for each node. For NodeNames `pod` may
 * return ARGS_ALL: then `all` is called once instead, and no node is looked up. Any other nonzero
 * result of `pod` ends the reading, and args_read() returns it. */
enum { ARGS_ALL = 2 };
typedef struct ArgsVisitor {
        int (*pod)(void *userdata, const ExtenderArgs *args);
        void (*node)(void *userdata, const ArgsNode *c);
        void (*all)(void *userdata, Str names); /* what stands between the brackets */
        void *userdata;
} ArgsVisitor;

/* Reads ExtenderArgs. Returns 0, ARGS_E_MALFORMED with a fault that names the path, -ENOMEM, or
 * what the visitor's `pod` returned. On an error `node` may already have been called for some
 * nodes. */
int args_read(Str body, Directory *d, Arena *arena, const ArgsVisitor *visitor, Fault *fault);

/* ExtenderBindingArgs; all four are required. args_read_binding() returns 0, ARGS_E_MALFORMED with
 * a fault, or -ENOMEM. */
/* ExtenderBindingArgs. */
typedef struct BindingArgs {
        Str name, namespace_, uid, node;
} BindingArgs;
int args_read_binding(Str body, Arena *arena, BindingArgs *ret, Fault *fault);

/* Whether this raw key is that field, in any case. field: ASCII letters. */
bool args_key_is(Str raw, const char *field);
