/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rooms of the engine: what has passed (pass.h) and whose the time was (split.h); the open
 * window's owner and the next one (owner.h), who is chosen by rank (choose.c); what becomes of a
 * window (window.h), and until when its work is on the card (until.h); work that others wait for no
 * longer (overdue.h), and kernels that hang (hung.h); and when it is time to look again (again.h).
 * engine.c goes through them once a step. */

#include "arbiter/engine.h"
#include "slice/schedule.h"

#define HOP      UINT64_C(50000) /* ns from one process that says something to another that does something */
#define LEAD     UINT64_C(70000) /* ns: so much before the end of a window the next one is opened */
#define GRACE    UINT64_C(5000000)    /* ns: who has work again so soon was not idle */
#define LONE     UINT64_C(20000000)   /* ns: windows of a conserving tenant that nobody waits for */
#define LAG      UINT64_C(2000000)    /* ns: who waits for a processor longer than that has lost it */
#define PATIENCE UINT64_C(1000000000) /* ns that others wait for work behind its window, at first */
#define PAUSE    UINT64_C(2000000)    /* ns: after a window that nothing was done with */
#define MERCY    UINT64_C(50000000)   /* ns of windows in which nothing was launched that are not charged */
#define GAP      UINT64_C(200000)     /* ns: a longer pause is a rest, and not the way to the next kernel */

/* Work that was launched may wait for a launch that is yet to come. So who is overdue and has one
 * that waits gets windows behind that work, in his turn, when nothing has moved for so long: soon
 * where his gate says that nothing has begun, and seldom where a kernel may just be long. */
#define TIED_FIRST UINT64_C(250000000) /* ns */
#define TIED_NEXT  UINT64_C(20000000)  /* ns */

static inline uint64_t min_u64(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b) {
        return a > b ? a : b;
}

static inline uint64_t since(uint64_t then, uint64_t now) {
        return now > then ? now - then : 0;
}

static inline bool wants(const EngineTenant *t) {
        return t->says.wants != 0;
}

/* Something was launched in its newest window, or may have been. */
static inline bool has_come(const EngineTenant *t) {
        return t->began != 0 || t->parts || t->says.launched != t->launched || t->says.busy != t->busy ||
               t->says.in_flight > 0;
}

/* Who comes first runs ahead of those who come after him: whoever begins or wakes begins where his
 * own kind is. */
static inline int64_t clock_of(const Engine *e, const Terms *terms) {
        return e->clocks[terms->high];
}

static inline void advance_clock(Engine *e, const EngineTenant *t) {
        if (t->terms.conserving && t->account.clock > clock_of(e, &t->terms))
                e->clocks[t->terms.high] = t->account.clock;
}

/* When it may be that its work waits for what it launches next; UINT64_MAX: nothing waits. */
uint64_t engine_behind_from(const EngineTenant *t);

/* Its work is late, and others wait no longer. */
static inline bool is_overdue(const EngineTenant *t) {
        return t->state == ENGINE_OVERDUE || t->turn.behind;
}

/* Its window is closed, and nothing of it is in flight. */
static inline bool is_over(const EngineTenant *t) {
        return t->says.drained && t->said >= t->turn.closes;
}

/* It has nothing to do in its window, nor had when that was closed: that is not charged, and
 * anybody else may have the card. */
static inline bool rests(const EngineTenant *t) {
        return (t->state == ENGINE_OPEN || (t->state == ENGINE_CLOSING && is_over(t))) &&
               t->idle_since != 0 && !t->turn.behind;
}

/* Who is let go has no window, only work. Who is held again may have work on the card that nobody
 * has counted: the others wait for it as for the end of a window. */
void engine_hold_or_let_go(Engine *e, uint32_t i);

bool engine_is_closing(const Engine *e); /* somebody's window is closed, and not over */

/* ns: so long nobody gets the card in a pause, because it may be the way to the next kernel. Whose
 * pauses are longer as a rule does not come back so soon: that time would be nobody's. Who comes
 * first keeps it all the same: another one's kernel may be what he waits for then. */
static inline uint64_t gap_of(const EngineTenant *t) {
        return t->pause > GAP * 7 / 8 && !t->terms.high ? 0 : GAP;
}

/* Whether those count as waiting whose windows are not over yet, too. */
typedef enum EngineAmong { AMONG_CLOSED, AMONG_CLOSING } EngineAmong;

/* Who of those that wait is next; -1: nobody may. */
int engine_choose(const Engine *e, EngineAmong among, uint64_t now);

/* Whether the owner keeps the card although this one waits, once it has been charged so much
 * more. */
bool engine_keeps(const Engine *e, const EngineTenant *owner, int waiting, uint64_t more);

/* Whether this conserving one has the card only as long as another one, which is before it by more
 * than a window, is at a pause; and whether one that waits is such another. */
bool engine_lends(const Engine *e, const EngineTenant *t);
bool engine_reclaims(const EngineTenant *waiting, const EngineTenant *owner);

/* When the next of those that have no tokens yet has them; UINT64_MAX: nobody waits for any. */
uint64_t engine_ripens(const Engine *e, EngineAmong among, uint64_t now);

/* So long before the end of a window the next one is opened, as that one's owner has been late. */
static inline uint64_t engine_lead(const EngineTenant *t) {
        return max_u64(LEAD, min_u64(HOP / 2 + t->lag * 3 / 2, LAG));
}
uint64_t engine_longest_lead(const Engine *e); /* of those that wait */
