/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One pod of a gang: what its object says, and what the attempt holds for it. gang_table.c makes
 * and frees members. */

#include "base/clock.h"
#include "base/hash.h"
#include "share/ledger.h"
#include "share/request.h"

/* A pod as the watch has it. The texts and the request are copied. */
typedef struct GangPod {
        Str namespace_, name, uid, gang;
        Str min;                /* text of min-available; empty: absent */
        Str created;            /* creationTimestamp (RFC 3339), which sorts as text */
        Str message;            /* of PodScheduled=False with reason Unschedulable; empty: none */
        const Request *request; /* NULL: it asks for none of our resources */
        int64_t priority;
        bool gated, gated_else; /* has our scheduling gate; has another one */
        Str scheduler;
        uint64_t where;  /* hash of its constraints on nodes, as in PodGang */
        bool impossible; /* no node can ever take it */
        bool bound, ended, terminating;
} GangPod;

typedef struct GangMember {
        UT_hash_handle hh; /* by uid */
        struct Gang *gang;
        struct GangMember *next, **link; /* in the gang, in the order in which they were added */
        Request *request;
        char *name, *uid; /* in one allocation with the member */
        char created[32];
        int64_t priority;
        uint32_t min; /* min-available; 0: absent or malformed */
        bool min_wrong;
        bool gated, gated_else, impossible, bound, ended, terminating;
        bool elsewhere;       /* its scheduler has not asked us; set by gangs.c */
        uint64_t scheduler;   /* hash of that name */
        uint64_t where, kind; /* as in GangKind; kind 0: it asks for no cards */
        uint64_t message;     /* hash of the condition's message; 0: none */
        uint32_t generation;  /* GangTable.generation of the last list that had the pod */
        uint32_t round;       /* the gang's round when this member was bound; 0: not bound yet */

        /* State of the placement attempt. */
        Grant *place;    /* the planned grant; charged until the pod's own grant is made */
        bool answered;   /* filter has named the node of its place, which stays with it */
        bool held;       /* its Bind is held */
        bool released;   /* its Binding is under way */
        bool refused;    /* filter refused it since it was last woken, or the waking patch failed */
        uint64_t failed; /* the attempt in which no node could take it; 0: none, or cleared */
        /* kube-scheduler wrote its own Unschedulable condition since filter last found a place or a
         * Bind was held: the next plan serves this member last. */
        bool doubtful;
        bool waking; /* the patch that wakes it is under way */
        usec_t held_at;
        usec_t woken; /* when it was last patched so that kube-scheduler tries it; 0: not yet */
        /* Patches sent in a row without success, since the attempt began: under way, refused, or
         * with the gate still there. Sets the pause before the next one. */
        unsigned wakes;
} GangMember;
