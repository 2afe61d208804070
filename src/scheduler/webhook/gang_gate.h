/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The scheduling gate that members of a gang get at admission (docs/use/gangs.md). It keeps
 * kube-scheduler from the pod until all members exist and it is the gang's turn; then the leader
 * removes it. Pure. */

#include "base/buf.h"
#include "wire/pod.h"
#include "wire/pod_gang.h"

/* Whether a new pod with this gang gets the gate, provided that our scheduler places it. */
bool gang_gate_is_wanted(const PodGang *gang, const Pod *pod);

/* Appends the operation of a JSON patch that puts the gate on. has_gates: the pod has a list of
 * gates. */
void gang_gate_write(bool has_gates, Buf *out);

enum { GANG_GATE_E_REFUSED = 1 };

/* Checks what the pod says of its gang. path: as in verdict_on_subject(). Returns 0;
 * GANG_GATE_E_REFUSED, with a sentence in *why that names the wrong field; or -ENOMEM. */
int gang_gate_check(const PodGang *gang, const Pod *pod, const char *path, Buf *why);

/* Appends a sentence and a newline if a pod of a job (LABEL_TOPOLOGY_JOB) is placed by itself,
 * because the number of replicas is missing. Other warnings are in share/unserved_key.h. Returns 0
 * or -ENOMEM. */
int gang_gate_warn(const PodGang *gang, Buf *out);
