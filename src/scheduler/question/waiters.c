/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/waiters.h"

#include "base/cleanup.h"

static void waiter_end(Waiter *w) {
        buf_done(&w->nodes);
        w->due = 0;
        w->attempt = 0;
}

Waiter *waiters_find(Waiters *w, Str uid) {
        for (size_t i = 0; i < WAITERS_MAX; i++)
                if (w->slots[i].due > 0 && str_eq(str_from(w->slots[i].uid), uid))
                        return &w->slots[i];
        return NULL;
}

void waiters_drop(Waiters *w, Str uid) {
        Waiter *found = waiters_find(w, uid);

        if (found)
                waiter_end(found);
}

void waiters_rest(Waiters *w, Str uid) {
        Waiter *found = waiters_find(w, uid);

        if (found)
                buf_clear(&found->nodes);
}

void waiters_clear(Waiters *w) {
        for (size_t i = 0; i < WAITERS_MAX; i++)
                waiter_end(&w->slots[i]);
}

static bool rests(const Waiter *w) {
        return w->nodes.len == 0;
}

bool waiters_any(const Waiters *w) {
        for (size_t i = 0; i < WAITERS_MAX; i++)
                if (w->slots[i].due > 0 && !rests(&w->slots[i]))
                        return true;
        return false;
}

static bool gives_way_before(const Waiter *a, const Waiter *b) {
        return rests(a) != rests(b) ? rests(a) : a->priority < b->priority;
}

/* A free slot, else that of a waiter that rests, else that of the lowest priority, if it is lower
 * than this one. */
static Waiter *slot_for(Waiters *w, int64_t priority) {
        Waiter *lowest = NULL;

        for (size_t i = 0; i < WAITERS_MAX; i++) {
                if (w->slots[i].due == 0)
                        return &w->slots[i];
                if (!lowest || gives_way_before(&w->slots[i], lowest))
                        lowest = &w->slots[i];
        }
        if (!rests(lowest) && lowest->priority >= priority)
                return NULL;
        waiter_end(lowest);
        return lowest;
}

static void put_text(char into[static WAITER_TEXT_MAX + 1], Str text) {
        memcpy(into, text.data, text.len);
        into[text.len] = '\0';
}

static bool has_bad_text(Str text) {
        return str_is_empty(text) || text.len > WAITER_TEXT_MAX || memchr(text.data, '\0', text.len);
}

static void put_nodes(Waiter *w, const FilterResult *result) {
        buf_clear(&w->nodes);
        for (size_t i = 0; i < result->n_for_cards; i++)
                buf_appendf(&w->nodes, STR_FMT "\n", STR_ARG(result->for_cards[i]));
}

static void note(Waiters *w, const FilterResult *result, int64_t priority, usec_t now) {
        Waiter *waiter = waiters_find(w, result->uid);

        if (has_bad_text(result->uid) || has_bad_text(result->namespace_) || has_bad_text(result->name))
                return;
        if (!waiter) {
                waiter = slot_for(w, priority);
                if (!waiter)
                        return;
                put_text(waiter->uid, result->uid);
                put_text(waiter->namespace_, result->namespace_);
                put_text(waiter->name, result->name);
        }
        if (rests(waiter) && waiter->due < now + WAITER_DELAY)
                waiter->due = now + WAITER_DELAY;
        waiter->seen = now;
        waiter->priority = priority;
        put_nodes(waiter, result);
        if (buf_result(&waiter->nodes) < 0)
                waiter_end(waiter);
        else if (w->on_news)
                w->on_news(w->userdata);
}

void waiters_filtered(Waiters *w, const View *v, const FilterResult *result, usec_t now) {
        const ViewPod *known = view_pod_find(v, result->uid);

        if (result->fits || result->n_for_cards == 0 || !known || !known->request ||
            known->priority == INT64_MIN || known->never_preempts)
                waiters_rest(w, result->uid);
        else
                note(w, result, known->priority, now);
}

static bool goes_before(const Waiter *a, const Waiter *b) {
        return a->priority != b->priority ? a->priority > b->priority : a->due < b->due;
}

static void age(Waiter *w, usec_t now, usec_t since) {
        if (w->attempt == 0 && w->seen + WAITER_STALE <= now)
                waiter_end(w);
        else if (w->seen + WAITER_FRESH <= now && w->seen <= since)
                buf_clear(&w->nodes);
}

Waiter *waiters_next(Waiters *w, usec_t now, usec_t since) {
        Waiter *next = NULL;

        for (size_t i = 0; i < WAITERS_MAX; i++) {
                Waiter *waiter = &w->slots[i];

                if (waiter->due == 0)
                        continue;
                age(waiter, now, since);
                if (!rests(waiter) && waiter->due <= now && (!next || goes_before(waiter, next)))
                        next = waiter;
        }
        return next;
}
