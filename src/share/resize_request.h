/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sizes that the annotations ANNOTATION_RESIZE_MEM and ANNOTATION_RESIZE_CORE of a running pod
 * ask for. Each is a number, for a pod with one container that has such a limit, or JSON with the
 * index in spec.containers: {"0":6,"1":2}. A container that is not named has its limit. A slice
 * shrinks below its limit and grows back to it. Growth beyond the limit is refused where the caller
 * does not allow it: the kubelet and kube-scheduler count the limit. Pure. */

#include "base/fault.h"
#include "base/str.h"

/* A main container with a limit. */
typedef struct ResizeLimit {
        Str name;
        uint32_t index;     /* in spec.containers */
        uint32_t mem, core; /* its limits: units of all its cards, percent; 0: none */
        uint32_t cards;     /* that its memory is on: it is divided by them */
        bool grows;         /* sizes above the limit are allowed */
} ResizeLimit;

typedef struct ResizeSize {
        uint32_t mem, core;
} ResizeSize;

enum { RESIZE_REQUEST_E_REFUSED = 1 };

/* Reads both annotations; an empty one asks for the limits. ret has room for n sizes. 0;
 * RESIZE_REQUEST_E_REFUSED with a fault that names annotation, container, value and rule, and *ret
 * stays as it is; or -ENOMEM. */
int resize_request_read(Str mem, Str core, const ResizeLimit *limits, size_t n, ResizeSize *ret,
                        Fault *fault);
