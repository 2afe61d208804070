/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pods with another size than their limits, or for which it was asked, for the page: what their
 * node's agent answered (share/resize_status.h). The ledger counts the limits. */

#include "base/hash.h"
#include "scheduler/view/view.h"

typedef struct PageResize {
        UT_hash_handle hh;
        bool open; /* not answered yet, refused, or waits for a file */
        uint16_t uid_len;
        Str text; /* for people; the agent's status in it is cut at PAGE_RESIZE_TEXT_MAX */
        char uid[];
} PageResize;

enum { PAGE_RESIZE_TEXT_MAX = 512 };

typedef struct PageResizes {
        PageResize *pods;
} PageResizes;

void page_resizes_done(PageResizes *r);

/* A pod came, changed or went; the view has it already. 0, or -ENOMEM: the page then does not tell
 * of its resize until it changes. */
int page_resizes_pod(PageResizes *r, const View *v, const Pod *pod);

/* Forgets pods that hold nothing any more. */
void page_resizes_sweep(PageResizes *r, const View *v);

/* NULL: the pod has the size of its limits. */
const PageResize *page_resizes_find(const PageResizes *r, Str uid);
