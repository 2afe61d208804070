/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stands in for src/kube: calls are collected, and the test answers each as it likes, in any order.
 * The symbols are those of kube/api.h and kube/client.h that the binder and the evictor use. */

#include "kube/api.h"

typedef enum FakeKind { FAKE_GET, FAKE_BIND, FAKE_EVICT } FakeKind;

/* A call that waits for its answer; NULL when there is none of the kind. The oldest first. */
KubeCall *fake_call(FakeKind kind);
size_t fake_n_calls(void);
const char *fake_name(const KubeCall *call);
const char *fake_uid(const KubeCall *call);
const char *fake_node(const KubeCall *call);
const char *fake_annotations(const KubeCall *call);

/* Answers it; the call is gone then. */
void fake_reply(KubeCall *call, KubeOutcome outcome, unsigned status, const char *body);

KubeClient *fake_client(sd_event *event);
/* kube_backoff() grows from now on, for tests that pass the time in; otherwise it is 1 us, which
 * timers wait in truth. */
void fake_back_off(void);
unsigned fake_n_events(void); /* kube_event() so far */
const char *fake_last_note(void);
