/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resizes that the page shows: pods with another size than that of their limits, or that ask
 * for another size, with the answer of their node's agent (share/resize_status.h). The ledger
 * counts the limits. */

#include "base/hash.h"
#include "scheduler/view/view.h"

typedef struct PageResize {
        UT_hash_handle hh;
        bool open; /* not answered yet, refused, or waits for a file */
        uint16_t uid_len;
        Str text; /* for people; at most PAGE_RESIZE_TEXT_MAX bytes are the agent's status */
        char uid[];
} PageResize;

enum { PAGE_RESIZE_TEXT_MAX = 512 };

typedef struct PageResizes {
        PageResize *pods;
} PageResizes;

void page_resizes_done(PageResizes *r);

/* A pod came, changed or went, and the view has taken it over. Returns 0, or -ENOMEM: its resize is
 * not shown until it changes again. */
int page_resizes_pod(PageResizes *r, const View *v, const Pod *pod);

/* Forgets pods without a grant. */
void page_resizes_sweep(PageResizes *r, const View *v);

/* The resize of a pod; NULL: it has the size of its limits. */
const PageResize *page_resizes_find(const PageResizes *r, Str uid);
