/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* AdmissionReview of admission.k8s.io/v1, from text to text. Nothing is kept between reviews and
 * the answer is the only effect, so a dry run is like any other. kubectl prints an answer's
 * warnings: about system keys that were removed, and about a request that no card of the cluster
 * can hold today. As a larger card may come, that is no refusal.
 *
 * Deletions are allowed untouched, and so are subresources other than pods/status and kinds without
 * a pod in them. So are pods that ask for no share, if their system keys do not change. */

#include "base/buf.h"
#include "base/fault.h"
#include "share/ledger.h"

typedef enum ReviewTask {
        /* Gives new pods scheduler and toleration, removes their system keys; refuses nothing. */
        REVIEW_MUTATE,
        REVIEW_VALIDATE, /* refuses, changes nothing */
} ReviewTask;

/* The service account of the scheduler, in the namespace of most installations. */
#define REVIEW_ACCOUNT_SCHEDULER "system:serviceaccount:kube-system:aliquot-scheduler"

typedef struct ReviewRules {
        /* User names, commas between them. They may change system keys, as may system:masters and
         * the service accounts aliquot-scheduler and aliquot-node of our namespace. */
        Str accounts;
        Str namespace_; /* our namespace; empty: kube-system */
        /* The agents run with --device-access=runtime (NVIDIA_VISIBLE_DEVICES). */
        bool runtime_devices;
        /* Whether the API server has scheduling gates; gangs are on. NULL: gangs are off. */
        const bool *has_gates;
        /* Pods with a share get the annotation that keeps the cluster autoscaler from evicting them
         * (scale_down.h). */
        bool keeps_nodes;
        /* The cluster's cards, for warnings and for the unit in a refusal. Empty until the nodes
         * are listed; NULL: none. */
        const Ledger *ledger;
} ReviewRules;

typedef enum ReviewVerdict { REVIEW_ALLOWED, REVIEW_PATCHED, REVIEW_REFUSED, REVIEW_VERDICTS_ } ReviewVerdict;

enum { REVIEW_E_MALFORMED = 1 };

/* Appends the answer to *out. Returns 0; REVIEW_E_MALFORMED with a fault when the text is no
 * review; or -ENOMEM. On errors *out is unchanged. An object that cannot be read is refused if its
 * text names our resources, and otherwise allowed. */
int review_answer(ReviewTask task, const ReviewRules *rules, Str body, Buf *out, ReviewVerdict *ret_verdict,
                  Fault *fault);
