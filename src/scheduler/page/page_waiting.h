/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pods that wait for a card, and why, for the page. The view keeps their requests but not their
 * names, so the names are kept here. Judging a pod takes a look at every node. So a round judges
 * few pods, first those that were judged longest ago. */

#include "base/hash.h"
#include "scheduler/gang/gangs.h"
#include "scheduler/view/view.h"

enum {
        PAGE_WAITING_SHOWN = 100, /* pods that the page lists; it counts all of them */
        PAGE_WAITING_JUDGED = 16, /* pods that one round judges */
};

typedef struct PageWaiting {
        struct PageWaitingPod *pods; /* hashed by UID; iterated in the order of their coming */
        size_t n_waiting, n_shown;   /* of the round under way */
        unsigned left;               /* pods that the round may still judge */
        uint64_t order;              /* number of judgements so far */
} PageWaiting;

void page_waiting_done(PageWaiting *w);

/* A pod came, changed or went, and the view has taken it over. Returns 0, or -ENOMEM: the page does
 * not name the pod until it changes again. */
int page_waiting_pod(PageWaiting *w, const View *v, const Pod *object);

/* Forgets pods that are bound, deleted or ask for no card any more. A pod that is being bound
 * stays, because it waits again if that is refused. */
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
