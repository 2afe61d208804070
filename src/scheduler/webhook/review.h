/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* AdmissionReview of admission.k8s.io/v1, from text to text. Nothing is kept between reviews and
 * nothing is done besides the answer, so that a dry run is like any other. Let in untouched are
 * deletions, subresources other than pods/status, kinds without a pod in them, and pods that ask
 * for no share and whose system keys do not change. */

#include "base/buf.h"
#include "base/fault.h"

typedef enum ReviewTask {
        REVIEW_MUTATE,   /* gives the scheduler, removes system keys from new pods; refuses nothing */
        REVIEW_VALIDATE, /* refuses, changes nothing */
} ReviewTask;

/* Service accounts of aliquot, in the namespace that every installation uses. */
#define REVIEW_ACCOUNT_SCHEDULER "system:serviceaccount:kube-system:aliquot-scheduler"
#define REVIEW_ACCOUNT_NODE      "system:serviceaccount:kube-system:aliquot-node"

typedef struct ReviewRules {
        Str accounts; /* user names, commas between them: they change system keys, as the two above and system:masters do */
        bool runtime_devices; /* agents give cards by NVIDIA_VISIBLE_DEVICES (--device-access=runtime) */
} ReviewRules;

typedef enum ReviewVerdict { REVIEW_ALLOWED, REVIEW_PATCHED, REVIEW_REFUSED, REVIEW_VERDICTS_ } ReviewVerdict;

enum { REVIEW_E_MALFORMED = 1 };

/* Appends the answer to *out. 0; REVIEW_E_MALFORMED when the text is no review (fault: why; *out as
 * it was); -ENOMEM. An object that we cannot read is refused when its text names our resources, and
 * otherwise let in. */
int review_answer(ReviewTask task, const ReviewRules *rules, Str body, Buf *out, ReviewVerdict *ret_verdict,
                  Fault *fault);
