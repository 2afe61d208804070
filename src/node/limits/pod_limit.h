/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The driver's memory limit on one pod's cgroup: what it should be by the pod's record, and what
 * was read back last. Pure but for the search of the cgroup. */

#include "base/hash.h"
#include "base/told.h"
#include "gpu/cards/card_limit.h"
#include "node/isolation/isolation.h"

enum { POD_LIMIT_CARDS = 32 };

/* How far the limit is for a container that is to start. */
typedef enum PodStart {
        POD_START_NONE,
        POD_START_ASKED,
        POD_START_DONE,
        POD_START_FAILED,
        POD_START_AGAIN, /* too many requests waited: it is asked again */
} PodStart;

typedef struct PodLimitCard {
        char uuid[64];
        uint64_t wanted; /* bytes; CARD_LIMIT_NONE: no limit */
        bool known;      /* `hard` and `used` are of this session and of the last call, which succeeded */
        uint64_t hard;   /* the limit in force, as it was read last; 0: never read */
        uint64_t used;
        uint64_t inherited; /* charged before the pod had a limit: not the pod's own */
} PodLimitCard;

typedef struct PodLimit {
        UT_hash_handle hh;
        char *uid;
        char path[CARD_LIMIT_PATH]; /* path of the cgroup as NVML sees it; "": not looked up */
        PodLimitCard cards[POD_LIMIT_CARDS];
        size_t n;
        size_t at;        /* the card that the request in flight is for; n: none */
        uint32_t request; /* number of the request to the driver in flight; 0: none */
        bool sets;        /* that request sets the limit; else it reads it */
        uint64_t asked;   /* what it sets */
        bool followed;    /* the limit of this card was lowered twice, because the use had fallen */
        bool gone;        /* its cgroup was not there at the last look */
        PodStart start;
        bool untaken;       /* the answer for a start was there at the last turn */
        Fault fault;        /* what failed in the last look; "": nothing */
        bool refused;       /* in this look the driver refused, no cgroup was found, or `ignored` */
        bool ignored;       /* in this look a limit was accepted, and another one is in force */
        unsigned refusals;  /* looks that ended so without another one between */
        Told told;          /* the last trouble that was told; hash 0: it has ended */
        unsigned restored;  /* limits that were set again */
        usec_t restored_at; /* when that was told last; 0: never */
        bool ends;          /* its limit is lifted, then it is forgotten */
        bool due;           /* the round looks at it */
        bool awaited;       /* a start waits for the end of a look of the round */
        bool busy;          /* the last look ended because too many requests waited */
        struct MemoryLimits *owner;
} PodLimit;

/* Sets `wanted` of each card of the record. lifted: no limit on any of them. Returns false where
 * the record has more cards than there is room for, or one that is not known. */
bool pod_limit_want(PodLimit *p, const Inventory *v, const Record *record, bool lifted);

/* What to set now on a card: the wanted limit, but not less than is used. The driver's own account
 * refuses less, and the kernel's controller ignores it. */
uint64_t pod_limit_next(const PodLimitCard *c);

bool pod_limit_is_met(const PodLimit *p); /* the wanted limit is in force on each card */

/* Whether a limit is wanted on a card, or one is in force there, or may be: it is being lifted, and
 * was never read. */
bool pod_limit_is_any(const PodLimit *p);

PodLimit *pod_limit_free(PodLimit *p);
