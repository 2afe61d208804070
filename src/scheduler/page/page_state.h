/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the page's viewers were told last, and how the cluster differs from it now.
 *
 * A round reads the view in small steps, so that a call of kube-scheduler waits for one step at
 * most. Each row is right by itself; rows of one round may be some milliseconds apart, and the next
 * round tells what that one missed. */

#include "scheduler/page/page_resizes.h"
#include "scheduler/page/page_waiting.h"

typedef struct PageState {
        const View *view;    /* these outlive it */
        const bool *leading; /* whether this replica binds */
        const Gangs *gangs;  /* NULL: gangs are off */
        const char *cluster; /* its name; NULL: none is shown */
        PageWaiting waiting;
        PageResizes resizes;

        struct PageNode *nodes; /* the rows that were told, by name */
        Buf cluster_text, waiting_text;
        uint64_t seq; /* counts what was told */

        /* The round that is under way. */
        uint32_t round;
        size_t next;       /* of the ledger's nodes */
        bool nodes_read;   /* all of them; then pods are judged */
        Buf changed, gone; /* rows, and names, with commas between them */
        Buf cluster_now, waiting_now;
} PageState;

void page_state_done(PageState *s);

/* There is no viewer: forgets what was told. The pods that wait, or have another size, stay
 * known. */
void page_state_clear(PageState *s);

/* A round: begin, then step until it returns false; then the difference. */
void page_state_begin(PageState *s);
bool page_state_step(PageState *s);

/* Ends the round: takes over what it found, and appends it as the event `change` of a stream of
 * server-sent events:
 *     {"seq","cluster":{..},"waiting":{..},"nodes":[ROW,..],"gone":[NAME,..]}
 * with only the members that changed. Appends nothing when nothing did. */
void page_state_difference(PageState *s, Buf *out);

/* Appends all that was told, as the event `state`: the same members, without "gone". */
void page_state_whole(const PageState *s, Buf *out);
