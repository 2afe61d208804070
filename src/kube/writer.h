/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps one object of the API server as its owner wants it. The owner knows what it observed of the
 * object and what it desires, and pokes the writer when either changes. Its reconcile() compares
 * the two and sends one write, or none.
 *
 *     poke -> reconcile() -- sends --> in flight -> on_answer(): WRITER_RECONCILE: reconcile()
 *                  | agrees, or                                  WRITER_PAUSE: pause, reconcile()
 *                  v may not write                               WRITER_REST: until a poke
 *             until a poke
 *
 * The rule is the same for every owner:
 *   - One write is in flight. While it is, and in a pause, nothing else is sent. What changes
 *     meanwhile is compared afterwards, so no change is lost and no write is sent out of date.
 *   - 409, 429, 5xx, any other refusal and a missing answer are handled alike: a pause, then
 *     reconcile(). The watch brings another writer's object during the pause. A write that was
 *     carried out without an answer may be sent again, because it says what is desired.
 *   - Pauses grow up to `cap` until a write succeeds (kube_backoff()). No poke shortens a pause, so
 *     writers that undo each other's writes do not load the API server.
 *   - A deletion is an observed change: reconcile() then sends nothing.
 *   - reconcile() asks before each write whether this process may write, such as a leader. The
 *     owner pokes when that becomes true. */

#include "kube/client.h"

typedef enum WriterNext { WRITER_RECONCILE, WRITER_PAUSE, WRITER_REST } WriterNext;

typedef struct WriterRule {
        usec_t base, cap; /* the first pause, and the longest */

        /* Sends what differs by a function of kube/api.h or kube/client.h, with writer_answer as
         * `done`, the writer as its userdata and &writer->call as `ret`. 0, also when nothing is
         * sent; it may have freed the writer then. Negative: nothing could be sent, and a pause
         * begins. */
        int (*reconcile)(void *userdata);

        /* The write has ended; written: with 2xx. WRITER_REST where the owner learns the outcome
         * from its watch; a poke since the write was sent still leads to reconcile(). Does not free
         * the writer. */
        WriterNext (*on_answer)(void *userdata, const KubeReply *reply, bool written);
} WriterRule;

/* Begins as {.rule = , .client = , .userdata = }; rule and client outlive it. */
typedef struct Writer {
        const WriterRule *rule;
        KubeClient *client;
        void *userdata; /* of the rule's functions */
        KubeCall *call; /* NULL: none is in flight */
        sd_event_source *timer;
        unsigned attempt;
        bool paused;
        bool poked; /* since the last reconcile */
} Writer;

/* Cancels the write or the pause. The writer is then as at its beginning. */
void writer_done(Writer *w);

/* Something was observed, or is desired now: calls reconcile(), unless a write is in flight or in a
 * pause. */
void writer_poke(Writer *w);

/* Pokes the writer after this time, in place of an earlier wake. In a pause it does nothing,
 * because the end of the pause is a poke. 0 or -ENOMEM; never fails after a first success. */
int writer_wake(Writer *w, usec_t delay);

/* Begins a pause of this length. Only reconcile() calls it, in place of a write. */
void writer_pause(Writer *w, usec_t delay);

void writer_answer(void *userdata, const KubeReply *reply); /* the KubeDone of writes */
