/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why no node took a pod, in kube-scheduler's form: "0/3 nodes are available: 1 ..., 2 ...". */

#include "base/buf.h"
#include "local/tree.h"

typedef struct Reasons {
        json_t *counts; /* sentence -> nodes */
        char *nearest;  /* the sentence of the nearest node, which is shown first; NULL: none is nearer */
} Reasons;

#define REASONS_NULL ((Reasons){0})

/* Sentences that are printed. Further ones are only counted, because people read this line. */
enum { REASONS_MAX_SHOWN = 8 };

int reasons_add(Reasons *r, Str sentence); /* 0 or -ENOMEM */
/* Marks the sentence of the nearest node, which was or will be added. 0 or -ENOMEM. */
int reasons_set_nearest(Reasons *r, Str sentence);
void reasons_format(const Reasons *r, size_t n_nodes, Buf *out);
void reasons_done(Reasons *r);
