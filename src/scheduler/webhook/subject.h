/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The object of a review: a pod, or the pod template inside a workload. A template has the shape of
 * a pod, so that one decoder and one set of rules serve both. The path in front of the template
 * makes the names of its fields right. */

#include "wire/pod.h"

typedef struct SubjectKind SubjectKind;

typedef struct Subject {
        Pod pod;  /* of the template when it is one; empty when the workload has none */
        Str text; /* of `pod` */
        bool is_pod;
        bool terminating; /* the object itself: only finalizers hold it */
        bool is_mirror;   /* the mirror of a static pod, which runs even if it is refused */
} Subject;

enum { SUBJECT_E_MALFORMED = 1 };

/* NULL when it is no kind with a pod in it. The version is not looked at, because the path is the
 * same in all. */
const SubjectKind *subject_kind_find(Str group, Str kind);
bool subject_kind_is_pod(const SubjectKind *k);
const char *subject_kind_path(const SubjectKind *k); /* "", "spec.template." or longer */

/* Views of json and arena. 0, SUBJECT_E_MALFORMED with a fault, or -ENOMEM. */
int subject_decode(const SubjectKind *k, Str json, Arena *arena, Subject *ret, Fault *fault);

/* Whether it asks for gpu-mem or for whole cards, and is not the mirror of a static pod. The other
 * resources of ours come together with gpu-mem. */
bool subject_asks_for_cards(const Subject *s);

/* Whether the text names one of our resources at all, for objects that cannot be decoded. */
bool subject_is_ours(Str json);
