/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The scheduling gate of a gang's members at admission (docs/use/gangs.md). It keeps kube-scheduler
 * away until all members exist and it is the gang's turn. The leader takes it off. Pure. */

#include "base/buf.h"
#include "wire/pod.h"
#include "wire/pod_gang.h"

/* Whether a new pod with this gang gets the gate, when our scheduler places it. */
bool gang_gate_is_wanted(const PodGang *gang, const Pod *pod);

/* Appends the operation of a JSON patch that puts the gate on. has_gates: the pod has a list of
 * gates. */
void gang_gate_write(bool has_gates, Buf *out);

enum { GANG_GATE_E_REFUSED = 1 };

/* Whether the pod says of its gang what can be. Returns 0; GANG_GATE_E_REFUSED, with one sentence
 * appended to *why that names the field; or -ENOMEM. path: as in verdict_on_subject(). */
int gang_gate_check(const PodGang *gang, const Pod *pod, const char *path, Buf *why);

/* Appends a sentence, and a newline, when a pod of a job (LABEL_TOPOLOGY_JOB) is placed by itself,
 * because it has no number. share/unserved_key.h has the other kinds. 0 or -ENOMEM. */
int gang_gate_warn(const PodGang *gang, Buf *out);
