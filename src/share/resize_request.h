/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sizes that a running pod asks for by ANNOTATION_RESIZE_MEM and ANNOTATION_RESIZE_CORE. The
 * value is a number, if one container of the pod has such a limit, or JSON by index in
 * spec.containers: {"0":6,"1":2}. A container that is not named gets its limit. A slice shrinks
 * below its limit and grows back to it. Growth beyond the limit is refused unless the caller allows
 * it, because kubelet and kube-scheduler count the limit. Pure. */

#include "base/fault.h"
#include "base/str.h"

/* A main container with a limit. */
typedef struct ResizeLimit {
        Str name;
        uint32_t index;     /* in spec.containers */
        uint32_t mem, core; /* units on all its cards together; percent; 0: no such limit */
        uint32_t cards;     /* number of cards among which its memory is divided */
        bool grows;         /* sizes above the limit are allowed */
} ResizeLimit;

typedef struct ResizeSize {
        uint32_t mem, core;
} ResizeSize;

enum { RESIZE_REQUEST_E_REFUSED = 1 };

/* Reads both annotations; an empty one asks for the limits. ret has n elements. Returns 0; -ENOMEM;
 * or RESIZE_REQUEST_E_REFUSED with a fault that names annotation, container, value and rule. On
 * errors *ret is unchanged. */
int resize_request_read(Str mem, Str core, const ResizeLimit *limits, size_t n, ResizeSize *ret,
                        Fault *fault);
