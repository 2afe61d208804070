/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gangs and their members, by what the pods say. A gang is the pods of one namespace that name the
 * same gang; it is there as long as a pod of it is. The states, with the one function that changes
 * them:
 *
 *     waiting    too few members exist, or they contradict each other
 *     ready      enough members exist: it waits for its turn
 *     repair     fewer members are bound than must be; the others go first in the queue
 *     assembling its members are being placed, and their Binds are held
 *     satisfied  enough members are bound, or their Bindings are under way
 *     backoff    an attempt has failed, and the next one waits */

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
        uint64_t *offered; /* hashes of the names of the nodes last offered to one of them, sorted */
        size_t n_offered;
        uint64_t attempt; /* of the gang, in which that was */
        bool known;
} GangKind;

enum { GANG_KINDS_MAX = 16 }; /* of further kinds it is not kept what was offered */

/* What the members say together. */
typedef struct GangCount {
        uint32_t min;  /* the largest */
        uint32_t done; /* ended, and were bound in this round */
        uint32_t living, ready, bound, ended, held, released, elsewhere, gated_else, impossible;
        uint32_t failed; /* ready ones that failed in the last attempt */
        bool min_wrong, min_differs;
        int64_t priority_low, priority_high;
} GangCount;

struct Gang {
        UT_hash_handle hh;
        GangMember *members, **members_end;
        GangState state;
        GangCount count;
        bool whole;        /* at least min members were bound at once */
        uint32_t round;    /* from 1; the next begins when no member of one is bound any more */
        bool too_large;    /* for the cluster without any pod */
        bool told_differs; /* that min-available differs */
        uint64_t judged;   /* the nodes by which that was judged; 0: not yet */
        uint64_t attempt;  /* number of attempts that were begun */
        unsigned failures; /* in a row; refused Bindings of an attempt count, too */
        uint64_t refused;  /* the last attempt of which a Binding was refused */
        usec_t since;      /* when it entered the state */
        usec_t until;      /* the end of the plan */
        usec_t retry;      /* the next attempt begins no earlier */
        usec_t told;       /* when it was last said that it waits; 0: not yet */
        uint64_t told_why; /* hash of the words */
        GangKind kinds[GANG_KINDS_MAX];
        size_t n_kinds;
        bool planned;                     /* the plan of this attempt is made */
        char why[REFUSAL_REASON_MAX + 1]; /* why it is not satisfied; empty: its state says it */
        char *namespace_, *name;
        char key[]; /* NAMESPACE/NAME */
};

typedef struct GangTable {
        Gang *gangs;
        GangMember *members;
        uint32_t generation; /* counts lists begun */
} GangTable;

const char *gang_table_state_name(GangState state);

/* The only place that changes a state. Logs the old and the new one. */
void gang_table_set_state(Gang *g, GangState state, usec_t now);

/* Takes over the pod, which names the same gang as before. *ret: its member, whose gang's count is
 * up to date. 0, or -ENOMEM: then what is left of the member must be removed. */
int gang_table_put(GangTable *t, const GangPod *pod, GangMember **ret);

/* Takes the member out, with its place. A gang without members is freed: true. */
bool gang_table_remove(GangTable *t, GangMember *m);
GangMember *gang_table_find(const GangTable *t, Str uid);
Gang *gang_table_find_gang(const GangTable *t, Str namespace_, Str name);
void gang_table_done(GangTable *t);

/* The member is bound, in this round of its gang. */
void gang_table_set_bound(GangMember *m);

/* After a change of the attempt's members of GangMember. */
void gang_table_count(Gang *g);

/* Members that are bound, and those with Bindings under way. Those of this round that have ended
 * count while others run. */
uint32_t gang_table_n_bound(const Gang *g);
bool gang_table_has_enough(const Gang *g);  /* members that could be bound now, with those */
bool gang_table_can_succeed(const Gang *g); /* the same, without those that failed in the attempt */

/* No member says how many there must be: each is a pod like any other. */
bool gang_table_is_free(const Gang *g);
bool gang_table_is_contradictory(const Gang *g);

/* Whether the member counts as one that could be bound now. */
bool gang_table_is_ready(const GangMember *m);
bool gang_table_has_failed(const GangMember *m);         /* in the gang's last attempt */
GangKind *gang_table_kind(Gang *g, const GangMember *m); /* NULL: too many kinds */
