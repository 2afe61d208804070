/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The value of ANNOTATION_RESIZE_STATUS: what the node's agent says of a resize. Users and `kubectl
 * inspect cgpu` read it:
 *
 *     refused: WHY; in force: container 0: gpu-mem 6 of 8, gpu-core 50 of 60; container 2: ...
 *
 * "refused" is there only after a refusal; gpu-core if the container has a limit of it. WHY may
 * quote a user's value; nothing behind it comes from a user. "waits: WHY" replaces "refused" if the
 * agent could not write a file. Without sizes it is not known which are in force. Pure. */

#include "base/buf.h"
#include "share/resize_request.h"

/* A container, with its size in force and its limit. */
typedef struct ResizeInForce {
        uint32_t index; /* in spec.containers */
        ResizeSize size, limit;
} ResizeInForce;

enum { RESIZE_STATUS_CONTAINERS = 64, RESIZE_STATUS_E_MALFORMED = 1 };

typedef struct ResizeStatus {
        Str refused, waits; /* the reason; empty: nothing was refused, or nothing waits */
        ResizeInForce list[RESIZE_STATUS_CONTAINERS];
        size_t n;
} ResizeStatus;

/* Appends the status. refused: the reason, or empty. */
void resize_status_write(Str refused, const ResizeInForce *list, size_t n, Buf *out);
/* Appends the status of a resize that waits. n may be 0. */
void resize_status_write_waiting(Str waits, const ResizeInForce *list, size_t n, Buf *out);

/* Reads a status; refused and waits point into the text. Returns 0, or RESIZE_STATUS_E_MALFORMED
 * with *ret empty. */
int resize_status_read(Str text, ResizeStatus *ret);

/* The size in force of a main container; NULL where the status does not name it. */
const ResizeInForce *resize_status_find(const ResizeStatus *s, uint32_t index);

/* Whether a container has another size than its limit. */
bool resize_status_differs(const ResizeStatus *s);

/* Whether the sizes that the pod's annotations ask for are in force; empty ones ask for the limits
 * of the status. False also where the agent refuses what they ask for. */
bool resize_status_fulfils(const ResizeStatus *s, Str mem, Str core);
