/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the view (view.h) share. view.c has the lists and passes each object on.
 * view_node.c has the nodes and their reports. view_pod.c has the entries of pods, and
 * view_pod_object.c updates them from the pods' objects. */

#include "scheduler/view/view.h"

enum { VIEW_NAME_MAX = 253 }; /* the longest name in Kubernetes (RFC 1123); UIDs are shorter */

/* Counts an object that has changed the view. If a list brought it after the first complete list,
 * the watch had missed the change. */
void view_count_difference(View *v, ViewKind kind, ReflectorEvent event);

void view_report(const View *v, const char *kind, const ObjectMeta *about, const char *reason,
                 const char *note);

/* Whether the text is to be told: it is not empty, and another one than the last. Keeps its hash in
 * *told, 0 for an empty text. */
bool view_is_news(uint64_t *told, const char *text);

/* ---- objects: 0, -ENOMEM, or OBJECT_E_MALFORMED with a fault ---- */

int view_node_object(View *v, ReflectorEvent event, Str object, Fault *fault);
int view_pod_object(View *v, ReflectorEvent event, Str object, Fault *fault);

/* At the end of a complete list: drops what the list did not have, and returns the number. The
 * entry of a pod that is being bound stays, marked as gone, until its bind has ended. */
size_t view_node_sweep(View *v);
size_t view_pod_sweep(View *v);

/* Parts of view_forget_reports(). */
void view_node_forget_reports(View *v);
void view_pod_forget_reports(View *v);

/* ---- entries of pods ---- */

/* Frees the entry and gives back all that it holds. */
void view_pod_free(View *v, ViewPod *pod);

/* Give back one thing that the entry holds; do nothing if it has none. */
void view_pod_drop_request(ViewPod *pod);
void view_pod_drop_cpu(ViewPod *pod);
void view_pod_drop_grant(View *v, ViewPod *pod);
