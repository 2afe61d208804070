/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gangs and their members, as the pods describe them. A gang is all pods of one namespace that name
 * the same gang; it exists as long as one such pod does. Its states, which only
 * gang_table_set_state() changes:
 *
 *     waiting    too few members exist, or they contradict each other
 *     ready      enough members exist: it waits for its turn
 *     repair     fewer members are bound than must be; the others go first in the queue
 *     assembling its members are being placed, and their Binds are held
 *     satisfied  enough members are bound, or their Bindings are under way
 *     backoff    an attempt has failed, and the next one waits */

#include "base/told.h"
#include "scheduler/gang/gang_member.h"
#include "share/refusal_reason.h"

typedef enum GangState {
        GANG_WAITING,
        GANG_READY,
        GANG_REPAIR,
        GANG_ASSEMBLING,
        GANG_SATISFIED,
        GANG_BACKOFF,
        GANG_STATES_,
} GangState;

typedef struct Gang Gang;

/* Members with equal constraints and requests: nodes that suit one suit all. */
typedef struct GangKind {
        uint64_t where, request;
        uint64_t *offered; /* sorted hashes of the names of the nodes that were last offered to a member */
        size_t n_offered;
        uint64_t attempt; /* the gang's attempt in which they were offered */
        bool known;
} GangKind;

enum { GANG_KINDS_MAX = 16 }; /* the nodes offered to further kinds are not kept */

/* Sums over the members. */
typedef struct GangCount {
        uint32_t min;  /* the largest min-available of a member */
        uint32_t done; /* members of this round that were bound and have ended */
        uint32_t living, ready, bound, ended, held, released, elsewhere, gated_else, impossible;
        uint32_t failed; /* ready members for which the last attempt found no node */
        uint64_t kinds;  /* sum over the members that are to be placed, by what they ask for */
        bool min_wrong, min_differs;
        int64_t priority_low, priority_high;
} GangCount;

struct Gang {
        UT_hash_handle hh;
        GangMember *members, **members_end;
        GangState state;
        GangCount count;
        bool whole;        /* at some time at least min members were bound at once */
        uint32_t round;    /* from 1; a round ends when no member of it is bound any more */
        bool too_large;    /* it does not fit the cluster even when no pod runs */
        bool told_differs; /* an Event has said that min-available differs between members */
        uint64_t judged;   /* hash of what too_large was computed from; 0: not yet */
        uint64_t attempt;  /* number of attempts that were begun */
        unsigned failures; /* failed attempts in a row; an attempt with refused Bindings counts, too */
        uint64_t refused;  /* the last attempt of which a Binding was refused */
        usec_t since;      /* when it entered the state */
        usec_t until;      /* when the current plan expires */
        usec_t retry;      /* the next attempt begins no earlier */
        Told told;         /* the last Event about why it waits */
        GangKind kinds[GANG_KINDS_MAX];
        size_t n_kinds;
        bool planned;                     /* gang_plan_make() has succeeded in this attempt */
        char why[REFUSAL_REASON_MAX + 1]; /* why it is not satisfied; empty: its state says it */
        char *namespace_, *name;
        char key[]; /* NAMESPACE/NAME */
};

typedef struct GangTable {
        Gang *gangs;
        GangMember *members;
        uint32_t generation; /* number of the last list that was begun */
} GangTable;

const char *gang_table_state_name(GangState state);

/* The only function that changes a state; logs the change. */
void gang_table_set_state(Gang *g, GangState state, usec_t now);

/* Adds or updates the member of this pod, which names the same gang as before. *ret: the member;
 * the count of its gang is up to date. Returns 0, or -ENOMEM: the caller then removes the member if
 * there is one. */
int gang_table_put(GangTable *t, const GangPod *pod, GangMember **ret);

/* Frees the member, with its place. True: it was the last one, and the gang is freed, too. */
bool gang_table_remove(GangTable *t, GangMember *m);
GangMember *gang_table_find(const GangTable *t, Str uid);
Gang *gang_table_find_gang(const GangTable *t, Str namespace_, Str name);
void gang_table_done(GangTable *t);

/* The member has been bound, in the current round of its gang. */
void gang_table_set_bound(GangMember *m);

/* Recounts g->count. To be called after each change of a member. */
void gang_table_count(Gang *g);

/* Counts the members that are bound or being bound. While one runs, members of this round that have
 * ended count, too. */
uint32_t gang_table_n_bound(const Gang *g);
bool gang_table_has_enough(const Gang *g);  /* those and the ready members are at least min */
bool gang_table_can_succeed(const Gang *g); /* the same without members that failed in this attempt */

/* Whether no member sets min-available: then each pod is placed by itself. */
bool gang_table_is_free(const Gang *g);
bool gang_table_is_contradictory(const Gang *g);

/* Whether the member could be bound now: not bound, ended, terminating or impossible, no foreign
 * gate, and its scheduler asks us. */
bool gang_table_is_ready(const GangMember *m);
bool gang_table_has_failed(const GangMember *m);         /* no node took it in the gang's last attempt */
GangKind *gang_table_kind(Gang *g, const GangMember *m); /* adds it if new; NULL: too many kinds */
