/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* AdmissionReview of admission.k8s.io/v1, from text to text. Nothing is kept between reviews and nothing is done besides
 * the answer, so that a dry run is like any other. What is not ours is let in untouched: deletions, subresources, kinds
 * without a pod in them, pods that ask for nothing. */

#include "base/buf.h"
#include "base/fault.h"

typedef enum ReviewTask {
        REVIEW_MUTATE,   /* gives the scheduler, refuses nothing */
        REVIEW_VALIDATE, /* refuses, changes nothing */
} ReviewTask;

typedef enum ReviewVerdict { REVIEW_ALLOWED, REVIEW_PATCHED, REVIEW_REFUSED, REVIEW_VERDICTS_ } ReviewVerdict;

enum { REVIEW_E_MALFORMED = 1 };

/* Appends the answer to *out. 0; REVIEW_E_MALFORMED when the text is no review (fault: why; *out as it was); -ENOMEM. An
 * object that we cannot read is refused when its text names our resources, and otherwise let in. */
int review_answer(ReviewTask task, Str body, Buf *out, ReviewVerdict *ret_verdict, Fault *fault);
