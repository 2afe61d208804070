/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What kube-scheduler sends: the structs of k8s.io/kube-scheduler/extender/v1. They carry no JSON
 * tags, so that Go writes their fields as they are named and reads them in any case; so do we.
 *
 * The nodes of one call are thousands, and are handed out one by one while the text is read: the
 * pod stands before them in what Go writes. A text that has them the other way round is read
 * twice. */

#include "scheduler/directory.h"
#include "wire/json.h"
#include "wire/pod.h"

enum { ARGS_E_MALFORMED = 1 };

/* One node on offer. raw: its text in the request, a quoted name or a whole Node object. */
typedef struct Candidate {
        Str raw, name;
        DirectoryNode *node; /* NULL: there is no such Node object */
} Candidate;

typedef struct ExtenderArgs {
        Pod pod;
        Str pod_text; /* that it was decoded from */
        bool by_name; /* the nodes came as NodeNames, and are answered so */
} ExtenderArgs;

/* Who takes the nodes. `pod` comes first and once; nonzero from it ends the reading and is what
 * args_read() returns. */
typedef struct ArgsVisitor {
        int (*pod)(void *userdata, const ExtenderArgs *args);
        void (*candidate)(void *userdata, const Candidate *c);
        void *userdata;
} ArgsVisitor;

/* ExtenderArgs. 0, ARGS_E_MALFORMED with a fault that names the path, -ENOMEM, or what the
 * visitor's `pod` returned. By then nodes may have been handed out. */
int args_read(Str body, Directory *d, Arena *arena, const ArgsVisitor *visitor, Fault *fault);

/* ExtenderBindingArgs. */
typedef struct BindingArgs {
        Str name, namespace_, uid, node;
} BindingArgs;
int binding_args_read(Str body, Arena *arena, BindingArgs *ret, Fault *fault);

/* Is this raw key that field, in any case? field: ASCII letters. */
bool args_key_is(Str raw, const char *field);
