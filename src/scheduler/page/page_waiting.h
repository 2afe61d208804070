/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pods that wait for a card, and why, for the page. The view keeps their requests but not their
 * names, so these are kept here. To judge a pod takes a look at every node. A round judges few
 * pods, those first that were judged longest ago. */

#include "base/hash.h"
#include "scheduler/gang/gangs.h"
#include "scheduler/view/view.h"

enum {
        PAGE_WAITING_SHOWN = 100, /* the pods that the page names; it counts all */
        PAGE_WAITING_JUDGED = 16, /* pods that one round judges */
};

typedef struct PageWaiting {
        struct PageWaitingPod *pods; /* by UID, the pod that came first is first */
        size_t n_waiting, n_shown;   /* of the round under way */
        unsigned left;               /* pods that it still judges */
        uint64_t order;              /* counts judgements */
} PageWaiting;

void page_waiting_done(PageWaiting *w);
size_t page_waiting_size(const PageWaiting *w); /* the pods that are kept */

/* A pod came, changed or went; the view has it already. 0, or -ENOMEM: the page then does not name
 * it until it changes. */
int page_waiting_pod(PageWaiting *w, const View *v, const Pod *object);

/* Forgets pods that are bound, deleted or do not ask any more. One of which a Binding is under way
 * stays, because it waits again when that is refused. */
void page_waiting_sweep(PageWaiting *w, const View *v);

/* A round: page_waiting_begin() sweeps; then page_waiting_step() judges one pod, and
 * returns false when the round has no more to judge. */
void page_waiting_begin(PageWaiting *w, const View *v);
bool page_waiting_step(PageWaiting *w, const View *v);

/* Appends what the page says about them:
 *     {"total":N,"pods":[{"uid","namespace","name","since":TIME,"mem","core","cards","whole":1,
 *      "gang":WORDS,"fit":N,"of":N,"why":[[REASON,NODES],...]}]}
 * "of" counts the GPU nodes; it and what follows are absent until the pod was judged. The reasons
 * are those of the most nodes. "gang" says why the gang of the pod waits (gang_words.h). gangs:
 * NULL where they are off, or another replica places them. */
void page_waiting_write(const PageWaiting *w, const View *v, const Gangs *gangs, Buf *out);
