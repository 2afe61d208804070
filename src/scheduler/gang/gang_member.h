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
        Str min;                /* min-available as it is written; empty: absent */
        Str created;            /* creationTimestamp, which sorts as text */
        Str message;            /* of its condition Unschedulable; empty: it has none */
        const Request *request; /* NULL: it asks for none of our resources */
        int64_t priority;
        bool gated, gated_else; /* our gate; another one */
        Str scheduler;
        uint64_t where;  /* as in PodGang */
        bool impossible; /* no node can ever take it */
        bool bound, ended, terminating;
} GangPod;

typedef struct GangMember {
        UT_hash_handle hh; /* by uid */
        struct Gang *gang;
        struct GangMember *next, **link; /* in the gang, in the order of their coming */
        Request *request;
        char *name, *uid; /* in one allocation with the member */
        char created[32];
        int64_t priority;
        uint32_t min; /* 0: it says none */
        bool min_wrong;
        bool gated, gated_else, impossible, bound, ended, terminating;
        bool elsewhere;       /* it names a scheduler that has not asked us; set by gangs.c */
        uint64_t scheduler;   /* hash of that name */
        uint64_t where, kind; /* of GangKind; kind 0: it asks for no cards */
        uint64_t message;     /* hash of the condition's message; 0: none */
        uint32_t generation;  /* of the list that last had the pod */
        uint32_t round;       /* of the gang when it became bound; 0: not seen */

        /* Of the attempt. */
        Grant *place;    /* the planned grant; charged until the pod's own grant is made */
        bool answered;   /* filter has named the node of its place, which stays with it */
        bool held;       /* its Bind is held */
        bool released;   /* its Binding is under way */
        bool refused;    /* filter refused it since it was last woken, or that patch failed */
        uint64_t failed; /* the last attempt in which no node could take it; 0: a node can */
        /* kube-scheduler said so in its own words, since filter last found a place or a Bind was
         * held. */
        bool doubtful;
        bool waking; /* the patch that wakes it is under way */
        usec_t held_at;
        usec_t woken; /* when it was last patched so that kube-scheduler tries it; 0: not yet */
        /* Patches in a row that are under way, were refused, or left the gate; since the attempt
         * began. */
        unsigned wakes;
} GangMember;
