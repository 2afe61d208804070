/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the page's viewers were last told, and the difference to the cluster now.
 *
 * A round reads the view in small steps, so that a call of kube-scheduler waits for one step at
 * most. Each row is right by itself. Rows of one round may be some milliseconds apart, and the next
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
        /* Rows and texts that the viewers were told. */
        Buf cluster_text, waiting_text;
        uint64_t seq; /* the number of events so far */

        /* State of the round. */
        uint32_t round;
        size_t next;       /* index of the next node in the ledger */
        bool nodes_read;   /* all nodes are read; then waiting pods are judged */
        Buf changed, gone; /* JSON of rows and of names, separated by commas */
        Buf cluster_now, waiting_now;
} PageState;

void page_state_done(PageState *s);

/* Forgets what was told, because the last viewer has left. Waiting pods and resizes stay known. */
void page_state_clear(PageState *s);

/* One round: page_state_begin(), then page_state_step() until it returns false, then
 * page_state_difference(). */
void page_state_begin(PageState *s);
bool page_state_step(PageState *s);

/* Ends the round: takes over what it found, and appends it as the event `change` of a stream of
 * server-sent events:
 *     {"seq","cluster":{..},"waiting":{..},"nodes":[ROW,..],"gone":[NAME,..]}
 * with only the members that changed. Appends nothing when nothing did. */
void page_state_difference(PageState *s, Buf *out);

/* Appends all that was told, as the event `state`: the same members, without "gone". */
void page_state_whole(const PageState *s, Buf *out);
