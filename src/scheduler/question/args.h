/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What kube-scheduler sends: the structs of k8s.io/kube-scheduler/extender/v1. They carry no JSON
 * tags, so that Go writes their fields as they are named and reads them in any case; so does this
 * reader.
 *
 * One call has thousands of nodes. They are handed out one by one while the text is read, because
 * Go writes the pod before them. A text with the nodes before the pod is read twice. */

#include "scheduler/policy/directory.h"
#include "wire/json.h"
#include "wire/pod.h"

enum { ARGS_E_MALFORMED = 1 };

/* One node on offer. raw: its text in the request, a quoted name or a whole Node object. */
typedef struct ArgsNode {
        Str raw, name;
        DirectoryNode *node; /* NULL: there is no such Node object */
} ArgsNode;

typedef struct ExtenderArgs {
        Pod pod;
        Str pod_text; /* of `pod`, as it was sent */
        bool by_name; /* the nodes came as NodeNames, and the answer names them so */
} ExtenderArgs;

/* What args_read() calls: `pod` first and once, then `node` for each node. After ARGS_ALL from
 * `pod`, which is for NodeNames alone, it calls `all` once instead, and looks no node up. Any other
 * nonzero result of `pod` ends the reading, and args_read() returns it. */
enum { ARGS_ALL = 2 };
typedef struct ArgsVisitor {
        int (*pod)(void *userdata, const ExtenderArgs *args);
        void (*node)(void *userdata, const ArgsNode *c);
        void (*all)(void *userdata, Str names); /* what stands between the brackets */
        void *userdata;
} ArgsVisitor;

/* ExtenderArgs. 0, ARGS_E_MALFORMED with a fault that names the path, -ENOMEM, or what the
 * visitor's `pod` returned. By then nodes may have been handed out. */
int args_read(Str body, Directory *d, Arena *arena, const ArgsVisitor *visitor, Fault *fault);

/* ExtenderBindingArgs. */
typedef struct BindingArgs {
        Str name, namespace_, uid, node;
} BindingArgs;
int args_read_binding(Str body, Arena *arena, BindingArgs *ret, Fault *fault);

/* Whether this raw key is that field, in any case. field: ASCII letters. */
bool args_key_is(Str raw, const char *field);
