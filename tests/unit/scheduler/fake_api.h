/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Replaces src/kube: calls are collected, and the test answers each as it likes, in any order. The
 * symbols are those of kube/api.h and kube/client.h that the binder, the evictor and
 * the assembler use. */

#include "kube/api.h"

typedef enum FakeKind { FAKE_GET, FAKE_BIND, FAKE_EVICT, FAKE_PATCH } FakeKind;

/* The oldest call of the kind that waits for its answer; NULL when there is none. */
KubeCall *fake_call(FakeKind kind);
size_t fake_n_calls(void);
const char *fake_name(const KubeCall *call); /* of a patch: the path */
const char *fake_uid(const KubeCall *call);
const char *fake_node(const KubeCall *call);
const char *fake_annotations(const KubeCall *call); /* of a patch: its text */
const char *fake_labels(const KubeCall *call);

/* Answers the call, which is freed then. */
void fake_reply(KubeCall *call, KubeOutcome outcome, unsigned status, const char *body);

KubeClient *fake_client(sd_event *event);
/* From now on kube_backoff() grows, for tests that pass the time in. Otherwise it is 1 us, which
 * real timers wait. */
void fake_back_off(void);
unsigned fake_n_events(void); /* kube_event() so far */
const char *fake_last_note(void);
