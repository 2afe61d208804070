/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gangs: all members of one are placed, or none (docs/use/gangs.md). Pure: the time is an argument.
 * Only the leader uses it, because one process must hold all Binds and give the turns.
 *
 * One gang assembles at a time. Its members are woken; the first filter call about one makes the
 * plan; each Bind is held until min members are held or bound. Then all are posted. The attempt is
 * given up, and every held Bind answered, when
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
#define GANGS_BUSY        (5 * USEC_PER_SEC) /* kube-scheduler asks about other pods alone */
#define GANGS_BACKOFF     (5 * USEC_PER_SEC)
#define GANGS_BACKOFF_CAP (300 * USEC_PER_SEC)
#define GANGS_WAKE_AGAIN  (1 * USEC_PER_SEC) /* the gate is still there; doubled each time, up to the cap */

enum { GANGS_SCHEDULERS_MAX = 8, GANGS_STRANGERS_MAX = 64, GANGS_WHY_MAX = GANG_WORDS_MAX };

/* No hook may remove a pod; release and give_back may call gangs_bind_ended(). */
typedef struct GangsHooks {
        void (*release)(void *userdata, Str uid);                    /* post the held Bind */
        void (*give_back)(void *userdata, Str uid, const char *why); /* answer it with an error */
        /* Take the gate off, or make kube-scheduler try the pod again. gangs_woken() follows,
         * during this call or later. */
        void (*wake)(void *userdata, const GangMember *m);
        void (*tell)(void *userdata, const GangMember *m, const char *reason, const char *note);
        void (*on_room)(void *userdata, Str node); /* a planned place there is given back; may be NULL */
        void (*on_settled)(void *userdata);        /* an attempt without places has ended; may be NULL */
        void *userdata;
} GangsHooks;

typedef struct Gangs {
        GangTable table;
        Ledger *ledger; /* outlives the gangs */
        GangsHooks hooks;
        Gang *assembling;     /* NULL: none */
        uint64_t nodes;       /* version of the cluster's nodes, counted from 1 */
        size_t n_nodes;       /* number of nodes at gangs_nodes_changed() */
        usec_t active, asked; /* when kube-scheduler last asked; asked: about the gang that assembles */
        uint64_t schedulers[GANGS_SCHEDULERS_MAX];
        size_t n_schedulers;
        uint64_t strangers[GANGS_STRANGERS_MAX]; /* UIDs (hashed) of pods that filter met before the watch */
        size_t next_stranger;
        bool leading, listed; /* listed: a first list of pods is complete */
        bool inside;          /* a hook is being called: gangs_settle() does nothing meanwhile */
        uint64_t attempts_satisfied, attempts_failed;
        uint64_t held_usec; /* total time for which Binds were held */
} Gangs;

void gangs_init(Gangs *gs, Ledger *ledger, const GangsHooks *hooks);
void gangs_done(Gangs *gs);

/* What the watch says. gangs_pod(): 0 or -ENOMEM. gangs_list_end() drops members that the list did
 * not have. The first list counts a gang with bound members and too few others as once complete. */
int gangs_pod(Gangs *gs, const GangPod *pod, usec_t now);
void gangs_pod_gone(Gangs *gs, Str uid, usec_t now);
void gangs_list_begin(Gangs *gs);
void gangs_list_end(Gangs *gs, usec_t now);
void gangs_nodes_changed(Gangs *gs); /* call after the ledger has changed */

/* When leadership ends, all held Binds and places are given back. */
void gangs_set_leading(Gangs *gs, bool leading, usec_t now);

/* kube-scheduler has asked about any pod. */
void gangs_active(Gangs *gs, usec_t now);

/* The patch that wakes the member has ended; good: it succeeded. Otherwise it is woken again, so
 * call gangs_step(). */
void gangs_woken(Gangs *gs, Str uid, bool good, usec_t now);
void gangs_know_scheduler(Gangs *gs, Str name, usec_t now);

/* Does what is due at this time. True while there is more to do: then call it again soon. */
bool gangs_step(Gangs *gs, usec_t now);

typedef enum GangsVerdict {
        GANGS_FREE,   /* as a pod without a gang */
        GANGS_TAKE,   /* filter: the marked nodes; bind: with its planned grant */
        GANGS_HOLD,   /* bind: hold the Bind, then call gangs_held() */
        GANGS_REFUSE, /* for all nodes, with the reason in *why */
} GangsVerdict;

/* A node that kube-scheduler offers to filter. */
typedef struct GangsNode {
        const LedgerNode *node; /* NULL: the ledger has no such node */
        bool barred;            /* closed to this member now; the plan may use it for other members */
        bool take;
} GangsNode;

typedef struct GangsPod {
        Str uid, namespace_, gang, min; /* as the request has them: the watch may be behind */
} GangsPod;

/* Answer filter and bind. why has GANGS_WHY_MAX bytes, and is set for GANGS_REFUSE. */
GangsVerdict gangs_filter(Gangs *gs, const GangsPod *pod, GangsNode *nodes, size_t n, usec_t now, char *why);
GangsVerdict gangs_bind(Gangs *gs, Str uid, Str node, usec_t now, char *why);

/* held: the Bind is held; it may be released before this returns. bind_ended: it has ended. */
void gangs_held(Gangs *gs, Str uid, usec_t now);
void gangs_bind_ended(Gangs *gs, Str uid, bool bound, usec_t now);

/* The member's planned grant, or NULL. drop_place ends it: the pod's own grant is made instead. */
const Grant *gangs_place(const Gangs *gs, Str uid);
void gangs_drop_place(Gangs *gs, Str uid);
/* A planned grant on the node that counts as room for the member: its own, or one that it may
 * exchange for its own. NULL: none, or the gang is not being placed. */
const Grant *gangs_place_on(const Gangs *gs, Str uid, const LedgerNode *node);

/* A member that is not bound, of a gang that is not satisfied: it is no victim (preempt.c). */
bool gangs_is_unbound(const Gangs *gs, Str uid);
bool gangs_waits(const Gangs *gs, Str uid); /* a member of a gang that is not satisfied */
