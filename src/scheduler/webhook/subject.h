/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The object under review: a pod, or the pod template in a workload. A template has the shape of a
 * pod, so one decoder and one set of rules serve both. The template's path is put in front of field
 * names. */

#include "wire/pod.h"

typedef struct SubjectKind SubjectKind;

typedef struct Subject {
        Pod pod;  /* the pod, or what the template describes; empty: the workload has no template */
        Str text; /* text of `pod` */
        /* Of a workload: the text of its own metadata, and of those of a CronJob's jobTemplate;
         * empty: absent. */
        Str outer[2];
        const char *path; /* of the template, as subject_kind_path() */
        bool is_pod;
        bool terminating; /* the object has a deletionTimestamp */
        bool is_mirror;   /* mirror pod of a static pod, which runs even if the mirror is refused */
} Subject;

enum { SUBJECT_E_MALFORMED = 1 };

/* Returns NULL for a kind without a pod in it. The version does not matter, because the path is the
 * same in all. */
const SubjectKind *subject_kind_find(Str group, Str kind);
bool subject_kind_is_pod(const SubjectKind *k);
/* path of the template: "" (a pod), "spec.template." or longer */
const char *subject_kind_path(const SubjectKind *k);

/* *ret points into json and arena. Returns 0, SUBJECT_E_MALFORMED with a fault, or -ENOMEM. */
int subject_decode(const SubjectKind *k, Str json, Arena *arena, Subject *ret, Fault *fault);

/* Whether the pod asks for gpu-mem or whole cards, and is no mirror pod. Our other resources are
 * valid only beside gpu-mem. */
bool subject_asks_for_cards(const Subject *s);

/* Whether the text names a resource of ours; for objects that cannot be decoded. */
bool subject_is_ours(Str json);
