/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gangs: all members of one are placed, or none (docs/use/gangs.md). Pure: the time is an argument.
 * Only the leader uses it, because one program must hold the Binds and know the turns.
 *
 * One gang assembles at a time. Its members are woken; the first filter call about one makes the
 * plan; each Bind is held until so many are held or bound as must be. Then all are posted. The
 * attempt is given up, and every held Bind answered, when
 *   - GANGS_ATTEMPT has passed, or less for a large gang;
 *   - kube-scheduler has asked nothing for GANGS_IDLE, or nothing about the gang for GANGS_BUSY;
 *   - too few members are left besides those that no node can take (cpu, memory);
 *   - a place's card goes out of service, or the leadership ends.
 *
 * So no gang holds anything while it waits for another, and no longer than one attempt. */

#include "scheduler/gang/gang_words.h"

/* 10 s less than the httpTimeout of our kube-scheduler's configuration. */
#define GANGS_ATTEMPT     (30 * USEC_PER_SEC)
#define GANGS_IDLE        (2 * USEC_PER_SEC)
#define GANGS_BUSY        (5 * USEC_PER_SEC) /* nothing about the gang, while it asks about others */
#define GANGS_BACKOFF     (5 * USEC_PER_SEC)
#define GANGS_BACKOFF_CAP (300 * USEC_PER_SEC)
#define GANGS_WAKE_AGAIN  (1 * USEC_PER_SEC) /* a gate did not go; doubled each time, up to the cap */

enum { GANGS_SCHEDULERS_MAX = 8, GANGS_STRANGERS_MAX = 64, GANGS_WHY_MAX = GANG_WORDS_MAX };

/* No hook may remove a pod; release and give_back may call gangs_bind_ended(). */
typedef struct GangsHooks {
        void (*release)(void *userdata, Str uid);                    /* post the held Bind */
        void (*give_back)(void *userdata, Str uid, const char *why); /* answer it with an error */
        /* Take the gate off, or make kube-scheduler try the pod again. gangs_woken() follows,
         * during this call or later. */
        void (*wake)(void *userdata, const GangMember *m);
        void (*tell)(void *userdata, const GangMember *m, const char *reason, const char *note);
        void (*on_room)(void *userdata, Str node); /* a planned place is given back; may be NULL */
        void (*on_settled)(void *userdata);        /* an attempt without places has ended; may be NULL */
        void *userdata;
} GangsHooks;

typedef struct Gangs {
        GangTable table;
        Ledger *ledger; /* outlives the gangs */
        GangsHooks hooks;
        Gang *assembling;     /* NULL: none */
        uint64_t nodes;       /* counts changes of nodes; from 1 */
        size_t n_nodes;       /* at the last of them */
        usec_t active, asked; /* last signs of life of kube-scheduler; asked: about the assembling gang */
        uint64_t schedulers[GANGS_SCHEDULERS_MAX];
        size_t n_schedulers;
        uint64_t strangers[GANGS_STRANGERS_MAX]; /* hashes of UIDs: asked about before the watch had them */
        size_t next_stranger;
        bool leading, listed; /* listed: after the first complete list */
        bool inside;          /* a hook is being called: states change afterwards */
        uint64_t attempts_satisfied, attempts_failed;
        uint64_t held_usec; /* of all Binds that were held */
} Gangs;

void gangs_init(Gangs *gs, Ledger *ledger, const GangsHooks *hooks);
void gangs_done(Gangs *gs);

/* The watch. pod: 0 or -ENOMEM. list_end drops what the list did not have; the first one counts
 * gangs with bound members and too few others as whole before the process began. */
int gangs_pod(Gangs *gs, const GangPod *pod, usec_t now);
void gangs_pod_gone(Gangs *gs, Str uid, usec_t now);
void gangs_list_begin(Gangs *gs);
void gangs_list_end(Gangs *gs, usec_t now);
void gangs_nodes_changed(Gangs *gs); /* after the change of the ledger */

/* When it ends, all that is held is given back. */
void gangs_set_leading(Gangs *gs, bool leading, usec_t now);

/* kube-scheduler has asked about any pod. */
void gangs_active(Gangs *gs, usec_t now);

/* The patch that wakes the member is over. After one that was not good the member is woken again,
 * so call gangs_step(). */
void gangs_woken(Gangs *gs, Str uid, bool good, usec_t now);
void gangs_know_scheduler(Gangs *gs, Str name, usec_t now);

/* What must be done by this time. Whether there is more to do: then call it again soon. */
bool gangs_step(Gangs *gs, usec_t now);

typedef enum GangsVerdict {
        GANGS_FREE,   /* as a pod without a gang */
        GANGS_TAKE,   /* filter: the nodes marked; bind: at its place */
        GANGS_HOLD,   /* bind: gangs_held() is called once it is held */
        GANGS_REFUSE, /* with the reason, for all nodes */
} GangsVerdict;

/* A node that kube-scheduler offers. */
typedef struct GangsNode {
        const LedgerNode *node; /* NULL: not known */
        bool barred;            /* not for this member now; the plan may use it for others */
        bool take;
} GangsNode;

typedef struct GangsPod {
        Str uid, namespace_, gang, min; /* as the pod in the question says: the watch may come later */
} GangsPod;

/* *why has GANGS_WHY_MAX bytes. */
GangsVerdict gangs_filter(Gangs *gs, const GangsPod *pod, GangsNode *nodes, size_t n, usec_t now, char *why);
GangsVerdict gangs_bind(Gangs *gs, Str uid, Str node, usec_t now, char *why);

/* held: it may be released before this returns. bind_ended: held or posted, and bound or not. */
void gangs_held(Gangs *gs, Str uid, usec_t now);
void gangs_bind_ended(Gangs *gs, Str uid, bool bound, usec_t now);

/* The member's planned grant; NULL: none. drop: its own grant is made instead. */
const Grant *gangs_place(const Gangs *gs, Str uid);
void gangs_drop_place(Gangs *gs, Str uid);
/* A planned grant on the node that counts as room for the member: its own, or one that it may
 * exchange for its own. NULL: none, or the gang is not being placed. */
const Grant *gangs_place_on(const Gangs *gs, Str uid, const LedgerNode *node);

/* A member that is not bound, of a gang that is not satisfied: it is no victim (preempt.c). */
bool gangs_is_unbound(const Gangs *gs, Str uid);
bool gangs_waits(const Gangs *gs, Str uid); /* a member of a gang that is not satisfied */
