/* SPDX-License-Identifier: Apache-2.0 */
#include "node/limits/memory_limits.h"

#include <errno.h>

#include "base/log.h"
#include "gpu/cards/nvml.h"
#include "node/kubelet/pod_processes.h"
#include "node/limits/cgroup_mount.h"
#include "node/limits/limit_trial.h"
#include "node/limits/pod_limit.h"

#define TURN       USEC_PER_SEC
#define TELL_EVERY (60 * USEC_PER_SEC)

enum {
        TURNS_OF_ROUND = 3,  /* all limits are read once in a round */
        TURNS_TO_TRIAL = 30, /* a trial that failed is repeated */
        /* Looks of a round in flight. A start's request waits behind these in the child, and the
         * queue of requests has room for starts. */
        LOOKS_AT_ONCE = 8,
        LIMIT_TEXT = 32,
        LIFT_TRIES = 30, /* looks until a limit that cannot be lifted is forgotten */
        /* Looks until a missing cgroup, or a limit without effect, is told. At each pod's end the
         * cgroup goes first, and the use may grow while a limit follows it down. */
        PATIENT_LOOKS = 10,
};

struct MemoryLimits {
        MemoryLimitsOptions o;
        CardSource *source;
        sd_event_source *timer;
        PodLimit *pods; /* by uid */
        PodLimit *next; /* the pod that the round looks at next; NULL: it is at its end */
        size_t looking; /* looks of the round in flight */
        bool in_round;  /* continue_round() runs */
        LimitTrial *trial;
        MemoryMechanism mechanism;
        bool dmem;
        Fault why;
        unsigned turn;
        bool in_start; /* memory_limits_start() runs, and takes the answer itself */
        MemoryLimitsCounters counters;
};

static void ask_next(MemoryLimits *m, PodLimit *p);
static void continue_round(MemoryLimits *m);
static void try_driver(MemoryLimits *m);

static bool is_ready(const MemoryLimits *m) {
        return m->source && card_source_is_ready(m->source);
}

/* ---- one pod ---- */

static PodLimit *find_pod(const MemoryLimits *m, const char *uid) {
        PodLimit *p;

        HASH_FIND_STR(m->pods, uid, p);
        return p;
}

static PodLimit *add_pod(MemoryLimits *m, const char *uid) {
        PodLimit *p = find_pod(m, uid);

        if (p)
                return p;
        p = calloc(1, sizeof *p);
        if (!p)
                return NULL;
        p->uid = str_dup(str_from(uid));
        p->owner = m;
        if (!p->uid)
                return pod_limit_free(p);
        HASH_ADD_KEYPTR(hh, m->pods, p->uid, strlen(p->uid), p);
        return hash_added(p, hh) ? p : pod_limit_free(p);
}

static void forget_pod(MemoryLimits *m, PodLimit *p) {
        if (p->request > 0)
                card_source_cancel_limit(m->source, p->request);
        if (m->next == p)
                m->next = p->hh.next;
        HASH_DEL(m->pods, p);
        pod_limit_free(p);
}

static void next_card(PodLimit *p) {
        p->at++;
        p->followed = false;
}

static void set_fault(PodLimit *p, const char *text) {
        if (p->fault.text[0] == '\0') /* the first one is the cause */
                (void) fault_set(&p->fault, 0, "%s", text);
}

static const char *limit_text(uint64_t hard, char ret[static LIMIT_TEXT]) {
        (void) snprintf(ret, LIMIT_TEXT, "%llu MiB", (unsigned long long) (hard >> 20)); /* it fits */
        return hard == CARD_LIMIT_NONE ? "none" : ret;
}

/* said: the driver's error; "": none */
static void explain_charge(PodLimit *p, const PodLimitCard *c, const char *said) {
        char wanted[LIMIT_TEXT], used[LIMIT_TEXT], inherited[LIMIT_TEXT];
        Fault fault = FAULT_NULL;

        (void) fault_set(&fault, 0,
                         "no limit of %s on %s: %s are charged there, %s of them from a removed cgroup, and "
                         "the driver takes none below that%s%s",
                         limit_text(c->wanted, wanted), c->uuid, limit_text(c->used, used),
                         limit_text(c->inherited, inherited), said[0] != '\0' ? ": " : "", said);
        set_fault(p, fault.text);
}

/* Ends the look of a start, and tells of it. */
static void end_start(MemoryLimits *m, PodLimit *p) {
        for (size_t i = 0; i < p->n; i++)
                if (!p->cards[i].known || p->cards[i].hard != p->cards[i].wanted)
                        explain_charge(p, &p->cards[i], "");
        p->start = p->busy ? POD_START_AGAIN : p->fault.text[0] != '\0' ? POD_START_FAILED : POD_START_DONE;
        if (!m->in_start)
                m->o.on_start(m->o.userdata, p->uid);
}

/* Tells that the limit of a running pod cannot be read or set, and when it can be again. */
static void tell_refusal(MemoryLimits *m, PodLimit *p) {
        usec_t now = clock_monotonic_usec();
        Fault note = FAULT_NULL;

        if (!p->refused) {
                if (p->told.hash != 0)
                        m->o.on_failed(m->o.userdata, str_from(p->uid), NULL);
                p->told.hash = 0;
        } else if (p->refusals > (p->gone || p->ignored ? PATIENT_LOOKS : 0) &&
                   (p->told.at == 0 || now >= p->told.at + TELL_EVERY) &&
                   told_is_news(&p->told, str_from(p->fault.text), now, 0)) {
                (void) fault_set(&note, 0, "its limit of the driver is not kept: %s", p->fault.text);
                m->o.on_failed(m->o.userdata, str_from(p->uid), &note);
        }
}

/* A limit that is being lifted. Gives up where the cgroup stays and the driver refuses for long. */
static void end_lift(MemoryLimits *m, PodLimit *p) {
        if (!p->gone && !pod_limit_is_met(p)) {
                if (p->refusals < LIFT_TRIES)
                        return;
                log_warning("uid=%s the pod's limit of the driver is not lifted: %s", p->uid, p->fault.text);
        }
        forget_pod(m, p);
}

/* The end of one look at the pod's cards. */
static void end_look(MemoryLimits *m, PodLimit *p) {
        bool awaited = p->awaited, asked = p->refused || p->fault.text[0] == '\0';

        p->at = p->n;
        if (p->start == POD_START_ASKED) {
                end_start(m, p);
                return;
        }
        m->looking--;
        p->awaited = false;
        if (asked)
                p->refusals = p->refused ? p->refusals + 1 : 0;
        if (awaited)
                m->o.on_start(m->o.userdata, p->uid);
        else if (p->ends)
                end_lift(m, p);
        else if (asked)
                tell_refusal(m, p);
        continue_round(m);
}

/* Whether the wanted limit was in force by the last answer and is not any more. */
static bool has_vanished(const PodLimitCard *c, const CardLimitAnswer *a) {
        return c->hard != 0 && c->hard == c->wanted && a->hard != c->wanted;
}

/* Another writer may change limits all the time: told once a minute. */
static void tell_restored(MemoryLimits *m, PodLimit *p, const PodLimitCard *c, const CardLimitAnswer *a) {
        usec_t now = clock_monotonic_usec();
        char was[LIMIT_TEXT], is[LIMIT_TEXT];
        Fault note = FAULT_NULL;

        m->counters.restored++;
        p->restored++;
        if (p->restored_at > 0 && now < p->restored_at + TELL_EVERY)
                return;
        p->restored_at = now;
        (void) fault_set(&note, 0,
                         "the driver's limit on memory of %s was %s, and is set again to %s; limits of the "
                         "pod were set again %u times so far",
                         c->uuid, limit_text(a->hard, was), limit_text(c->wanted, is), p->restored);
        m->o.on_restored(m->o.userdata, str_from(p->uid), &note);
}

/* The driver accepted the limit, and another one is in force. */
static void take_ignored(MemoryLimits *m, PodLimit *p, const PodLimitCard *c) {
        char asked[LIMIT_TEXT], is[LIMIT_TEXT];
        Fault fault = FAULT_NULL;

        m->counters.failed++;
        p->refused = p->ignored = true;
        (void) fault_set(&fault, 0, "the driver accepted the limit %s on %s, and another one is in force: %s",
                         limit_text(p->asked, asked), c->uuid, limit_text(c->hard, is));
        set_fault(p, fault.text);
        next_card(p);
}

static void take_failure(MemoryLimits *m, PodLimit *p, const CardLimitAnswer *a) {
        m->counters.failed++;
        p->refused = true;
        if (p->sets && a->code == NVML_ERROR_INVALID_ARGUMENT)
                explain_charge(p, &p->cards[p->at], a->text);
        set_fault(p, a->text);
        p->cards[p->at].known = false; /* it is read before it is set again */
        if (p->sets)
                p->cards[p->at].hard = 0; /* and may be in force all the same */
        if (a->code == NVML_ERROR_OPERATING_SYSTEM) {
                p->path[0] = '\0'; /* the cgroup is searched again */
                p->gone = true;
                end_look(m, p);
                return;
        }
        next_card(p); /* one card does not keep the others from their limits */
        ask_next(m, p);
}

/* Whether the start is of a new pod, which has nothing yet, in the driver's own account. There a
 * pod can have the entry of a removed cgroup at the same address. The kernel's controller begins
 * at zero. */
static bool can_inherit(const MemoryLimits *m, const PodLimit *p, const PodLimitCard *c) {
        const Record *record = records_find(m->o.records, str_from(p->uid));

        return !m->dmem && p->start == POD_START_ASKED && c->wanted != CARD_LIMIT_NONE && c->inherited == 0 &&
               record && !record_has_started(record);
}

/* Whether what is charged is not the pod's own. Before an entry was set, what is read may be that
 * of a cgroup above. */
static bool inherits_limit(const MemoryLimits *m, const PodLimit *p, const PodLimitCard *c) {
        return p->sets && c->used > 0 && can_inherit(m, p, c) && c->used < CARD_LIMIT_NONE - c->wanted;
}

/* Whether the limit just set allows for more use than was read now, so that a lower one can be set.
 * True once a look at the card. */
static bool can_follow(PodLimit *p, const PodLimitCard *c) {
        if (!p->sets || p->followed || pod_limit_next(c) >= c->hard)
                return false;
        p->followed = true;
        return true;
}

/* Whether the limit is as low as the use permits, or as wanted, whatever is used. Or the use has
 * fallen twice in this look, and the next turn follows it. */
static bool is_done(const PodLimit *p, const PodLimitCard *c) {
        return c->hard == pod_limit_next(c) || (!p->sets && c->hard == c->wanted) ||
               (p->sets && p->followed && c->hard == p->asked);
}

static void on_answer(void *userdata, const CardLimitAnswer *a) {
        PodLimit *p = userdata;
        MemoryLimits *m = p->owner;
        PodLimitCard *c = &p->cards[p->at];

        CardLimitAnswer none = {.hard = CARD_LIMIT_NONE};

        p->request = 0;
        if ((a->code == NVML_ERROR_NOT_SUPPORTED || a->code == CARD_LIMIT_NO_CALLS) && !p->sets)
                a = &none; /* the driver's own account has no entry on the way up, or there are no limits */
        if (a->code != 0) {
                take_failure(m, p, a);
                return;
        }
        if (!p->ends && has_vanished(c, a))
                tell_restored(m, p, c, a);
        c->known = true;
        c->hard = a->hard;
        c->used = a->used;
        if (inherits_limit(m, p, c)) {
                c->inherited = c->used;
                c->wanted += c->used;
        } else if (is_done(p, c))
                next_card(p);
        else if (p->sets && !can_follow(p, c))
                take_ignored(m, p, c); /* it is tried again with the next turn */
        ask_next(m, p);
}

/* Reads a limit that is not known, and sets one that differs, or for a start. The kernel's
 * controller has nothing that a new pod could inherit, and so is not read before. In the driver's
 * own account a new pod is first set to no limit. Less than is charged would be refused, and
 * reading alone may show the entry of a cgroup above. */
static void ask_next(MemoryLimits *m, PodLimit *p) {
        CardLimit l = {.path = ""};
        PodLimitCard *c;

        if (p->at >= p->n) {
                end_look(m, p);
                return;
        }
        c = &p->cards[p->at];
        l.set = c->known ? p->start == POD_START_ASKED || c->hard != c->wanted
                         : p->start == POD_START_ASKED && m->dmem;
        l.hard = pod_limit_next(c);
        if (!c->known && can_inherit(m, p, c)) {
                l.set = 1;
                l.hard = CARD_LIMIT_NONE;
                c->hard = 0; /* that it is none then is no loss */
        }
        p->sets = l.set;
        p->asked = l.hard;
        memcpy(l.uuid, c->uuid, sizeof l.uuid);
        memcpy(l.path, p->path, sizeof l.path);
        if (card_source_limit(m->source, &l, on_answer, p, &p->request) < 0) {
                p->busy = is_ready(m);
                set_fault(p, "the driver's library cannot be asked now");
                end_look(m, p);
        }
}

static bool find_path(const MemoryLimits *m, PodLimit *p) {
        char below[CARD_LIMIT_PATH - sizeof CGROUP_MOUNT];
        int r = pod_processes_path(m->o.cgroup_root, str_from(p->uid), below, sizeof below);

        p->gone = r == -ENOENT;
        p->refused |= r < 0;
        if (r < 0)
                (void) fault_set(&p->fault, 0, "the pod's cgroup is not found: %s", strerror(-r));
        else
                (void) snprintf(p->path, sizeof p->path, CGROUP_MOUNT "%s", below); /* it fits */
        return r == 0;
}

/* Looks at all cards of the pod, one after the other. */
static void look_at_pod(MemoryLimits *m, PodLimit *p) {
        p->fault = FAULT_NULL;
        p->busy = p->refused = p->ignored = false;
        /* a limit that was not lifted may have gone with its cgroup */
        if ((p->path[0] == '\0' || (p->ends && p->refusals > 0)) && !find_path(m, p)) {
                end_look(m, p);
                return;
        }
        p->at = 0;
        p->followed = false;
        ask_next(m, p);
}

/* ---- all pods ---- */

/* Looks at the pods that are due, a few at a time. */
static void continue_round(MemoryLimits *m) {
        if (m->in_round)
                return; /* a look that ended at once; the loop goes on */
        m->in_round = true;
        while (m->next && m->looking < LOOKS_AT_ONCE) {
                PodLimit *p = m->next;

                m->next = p->hh.next;
                if (!p->due || p->request > 0 || p->start != POD_START_NONE)
                        continue;
                p->due = false;
                m->looking++;
                look_at_pod(m, p);
        }
        m->in_round = false;
}

/* An honoured CGPU_DISABLE of one container lifts the limit of the pod: the others keep theirs by
 * the library. */
static bool is_lifted(const MemoryLimits *m, const RosterPod *pod) {
        for (size_t i = 0; i < pod->n_containers && !m->o.ignores_disable; i++)
                if (pod->containers[i].not_isolated)
                        return true;
        return false;
}

static bool has_memory(const Record *record) {
        for (size_t i = 0; i < record->n_containers; i++)
                if (record->containers[i].given[DEVICE_MEM].n > 0)
                        return true;
        return false;
}

/* Drops the answer for a start that no call has taken for a turn: the kubelet gave up that call,
 * and may never start the container. */
static void drop_untaken(PodLimit *p) {
        bool answered = p->start > POD_START_ASKED;

        if (answered && p->untaken)
                p->start = POD_START_NONE;
        p->untaken = answered && !p->untaken;
}

/* Of a pod that has a record again. A static pod that was made again may have another cgroup, of
 * which nothing is known. */
static void take_back_lift(PodLimit *p, const Record *record) {
        if (!p->ends)
                return;
        p->ends = false;
        p->path[0] = '\0';
        for (size_t i = 0; i < p->n; i++) {
                PodLimitCard *c = &p->cards[i];

                c->known = false;
                c->hard = 0;
                if (!record_has_started(record))
                        c->inherited = 0;
        }
}

/* PreStart saves the record before it has the limit set, and may fail after that. */
static bool is_recorded(const Record *record) {
        return (record->saved || record_has_started(record)) && has_memory(record);
}

static void mark_record(MemoryLimits *m, const Record *record, bool round) {
        const RosterPod *pod = roster_find(m->o.roster, str_from(record->uid));
        PodLimit *p;

        if (!is_recorded(record))
                return;
        p = pod ? add_pod(m, record->uid) : find_pod(m, record->uid);
        if (!p || p->request > 0 || p->start != POD_START_NONE)
                return; /* the next turn looks again */
        if (pod)
                take_back_lift(p, record);
        /* While processes of a pod that is gone run, it has the limit that it had. */
        if (pod ? !pod_limit_want(p, m->o.inventory, record, is_lifted(m, pod)) : p->ends)
                return;
        p->due |= round || !pod_limit_is_met(p);
}

/* Has the pod's limit lifted when the round comes to it. No request of the pod is in flight. */
static void lift_limit(PodLimit *p) {
        if (!p->ends)
                p->refusals = 0;
        p->ends = true;
        p->start = POD_START_NONE;
        for (size_t i = 0; i < p->n; i++)
                p->cards[i].wanted = CARD_LIMIT_NONE;
        p->due = true;
}

/* Lifts the limits of pods without a record, or of all where the library isolates alone. */
static void lift_ended(MemoryLimits *m) {
        PodLimit *p, *next;

        HASH_ITER(hh, m->pods, p, next) {
                drop_untaken(p);
                if (p->request == 0 &&
                    (m->mechanism == MEMORY_PRELOAD || !records_find(m->o.records, str_from(p->uid))))
                        lift_limit(p);
        }
}

/* The child takes requests in their order: a limit that it sets now is lifted after that. */
void memory_limits_end(MemoryLimits *m, const char *uid) {
        PodLimit *p = find_pod(m, uid);

        if (!p)
                return;
        if (p->request > 0) {
                card_source_cancel_limit(m->source, p->request);
                if (p->sets) /* whether it was is not known any more */
                        p->cards[p->at].hard = 0;
                p->request = 0;
                m->looking -= p->start != POD_START_ASKED;
                p->awaited = false; /* a start that waits asks again by itself */
        }
        lift_limit(p);
        m->next = m->pods; /* pods that are not due are passed over */
        continue_round(m);
}

static void look_at_all(MemoryLimits *m, bool round) {
        lift_ended(m);
        if (m->mechanism == MEMORY_BOTH && share_mode_is_isolated(m->o.inventory->mode))
                for (const Record *r = m->o.records->by_uid; r; r = r->hh.next)
                        mark_record(m, r, round);
        if (!m->next)
                m->next = m->pods;
        continue_round(m);
}

static void set_timer(MemoryLimits *m) {
        bool on = m->mechanism != MEMORY_PRELOAD || m->pods;

        /* both fail only for a source that does not exist */
        (void) sd_event_source_set_time_relative(m->timer, TURN);
        (void) sd_event_source_set_enabled(m->timer, on ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_turn(sd_event_source *source, uint64_t usec, void *userdata) {
        MemoryLimits *m = userdata;

        m->turn = (m->turn + 1) % TURNS_TO_TRIAL;
        look_at_all(m, m->turn % TURNS_OF_ROUND == 0);
        if (m->turn == 0 && m->mechanism == MEMORY_UNAVAILABLE && !m->trial && is_ready(m))
                try_driver(m);
        set_timer(m);
        return 0;
}

/* ---- the mechanism ---- */

static void set_mechanism(MemoryLimits *m, MemoryMechanism mechanism) {
        m->mechanism = mechanism;
        if (mechanism != MEMORY_UNAVAILABLE)
                m->why = FAULT_NULL;
        set_timer(m);
        m->o.on_change(m->o.userdata);
}

static void on_tried(void *userdata, bool dmem, const Fault *fault) {
        MemoryLimits *m = userdata;
        Fault why = FAULT_NULL;

        m->trial = limit_trial_free(m->trial);
        m->dmem = dmem;
        if (fault)
                (void) fault_set(&why, 0, "the driver does not limit memory here: %.160s", fault->text);
        else
                log_info("memory is limited by the driver, too, backend=%s", dmem ? "dmem" : "driver");
        if (strcmp(why.text, m->why.text) != 0 && fault)
                log_warning("%s", why.text); /* once for trials that fail alike */
        m->why = why;
        set_mechanism(m, fault ? MEMORY_UNAVAILABLE : MEMORY_BOTH);
        look_at_all(m, true);
}

static void try_driver(MemoryLimits *m) {
        m->trial = limit_trial_free(m->trial);
        if (limit_trial_new(m->source, m->o.cards, m->o.cgroup_root, on_tried, m, &m->trial) < 0)
                log_error("out of memory: the driver is tried with its next session");
}

void memory_limits_session(MemoryLimits *m) {
        PodLimit *p, *next;

        HASH_ITER(hh, m->pods, p, next) {
                for (size_t i = 0; i < p->n; i++)
                        p->cards[i].known = false;
                if (p->start > POD_START_ASKED)
                        p->start = POD_START_NONE; /* no start takes an answer of before */
        }
        if (m->mechanism != MEMORY_PRELOAD)
                try_driver(m);
}

/* Before the driver has been tried. */
static MemoryMechanism wanted_mechanism(MemoryLimits *m, bool both) {
        if (both && m->o.no_driver)
                (void) fault_set(&m->why, 0, "the driver does not limit memory here: there is none");
        return !both ? MEMORY_PRELOAD : m->o.no_driver ? MEMORY_UNAVAILABLE : MEMORY_UNTRIED;
}

/* The node's word may have changed while no agent ran, so that limits of an earlier one are lifted
 * by an agent that has set none. */
static void add_recorded(MemoryLimits *m) {
        for (const Record *r = m->o.records->by_uid; r; r = r->hh.next) {
                PodLimit *p = is_recorded(r) ? add_pod(m, r->uid) : NULL;

                if (p && p->n == 0) /* where a card is not known, no more can be lifted */
                        (void) pod_limit_want(p, m->o.inventory, r, true);
        }
}

void memory_limits_want(MemoryLimits *m, bool both) {
        if (both == (m->mechanism != MEMORY_PRELOAD))
                return;
        if (!both && m->mechanism != MEMORY_UNAVAILABLE)
                add_recorded(m);
        m->trial = limit_trial_free(m->trial);
        set_mechanism(m, wanted_mechanism(m, both));
        if (both && is_ready(m))
                try_driver(m);
}

MemoryMechanism memory_limits_mechanism(const MemoryLimits *m, const char **ret_backend,
                                        const Fault **ret_why) {
        *ret_backend = m->mechanism != MEMORY_BOTH ? "" : m->dmem ? "dmem" : "driver";
        *ret_why = &m->why;
        return m->mechanism;
}

bool memory_limits_charged(const MemoryLimits *m, const char *uid, const char *uuid, uint64_t *ret_bytes) {
        const PodLimit *p = find_pod(m, uid);

        for (size_t i = 0; p && i < p->n; i++) {
                const PodLimitCard *c = &p->cards[i];

                if (strcmp(c->uuid, uuid) != 0 || !c->known || c->hard == CARD_LIMIT_NONE)
                        continue;
                *ret_bytes = c->used > c->inherited ? c->used - c->inherited : 0;
                return true;
        }
        return false;
}

MemoryLimitsCounters memory_limits_counters(const MemoryLimits *m) {
        MemoryLimitsCounters counters = m->counters;

        for (const PodLimit *p = m->pods; p; p = p->hh.next)
                counters.pods += pod_limit_is_any(p);
        return counters;
}

/* ---- the start of a container ---- */

static int check_mechanism(const MemoryLimits *m, Fault *fault) {
        if (m->mechanism == MEMORY_UNTRIED)
                return fault_set(fault, MEMORY_LIMITS_E_LATER, "the driver's limits have not been tried yet");
        if (m->mechanism == MEMORY_UNAVAILABLE)
                return fault_set(fault, MEMORY_LIMITS_E_REFUSED, "%s", m->why.text);
        return 0;
}

/* Takes the answer of an earlier call, which counts once. */
static int take_start(PodLimit *p, Fault *fault) {
        PodStart start = p->start;

        if (start == POD_START_ASKED)
                return fault_set(fault, MEMORY_LIMITS_E_ASKED, "waits for the driver's limit");
        p->start = POD_START_NONE;
        if (start == POD_START_AGAIN)
                return fault_set(fault, MEMORY_LIMITS_E_LATER, "waits to ask the driver for its limit");
        return start == POD_START_DONE ? 0 : fault_set(fault, MEMORY_LIMITS_E_REFUSED, "%s", p->fault.text);
}

/* lifted: the limit that is set is none */
static int start_with(MemoryLimits *m, const Record *record, bool lifted, Fault *fault) {
        PodLimit *p = add_pod(m, record->uid);

        if (!p)
                return -ENOMEM;
        if (p->start == POD_START_NONE && p->request > 0) {
                p->awaited = true;
                return fault_set(fault, MEMORY_LIMITS_E_ASKED, "waits for the driver's limit");
        }
        take_back_lift(p, record);
        if (p->start != POD_START_ASKED && !pod_limit_want(p, m->o.inventory, record, lifted))
                return fault_set(fault, MEMORY_LIMITS_E_REFUSED, "a card of the pod is not known");
        if (p->start == POD_START_DONE && !pod_limit_is_met(p))
                p->start = POD_START_NONE; /* the record has changed since that answer */
        if (p->start != POD_START_NONE)
                return take_start(p, fault);
        p->start = POD_START_ASKED;
        m->in_start = true;
        look_at_pod(m, p);
        m->in_start = false;
        return p->start == POD_START_ASKED
                       ? fault_set(fault, MEMORY_LIMITS_E_ASKED, "waits for the driver's limit")
                       : take_start(p, fault);
}

int memory_limits_start(MemoryLimits *m, const Record *record, Fault *fault) {
        const RosterPod *pod = roster_find(m->o.roster, str_from(record->uid));
        bool isolated = share_mode_is_isolated(m->o.inventory->mode);
        int r;

        if (m->mechanism == MEMORY_PRELOAD || !has_memory(record) || (!isolated && m->dmem))
                return 0;
        r = check_mechanism(m, fault);
        if (r == 0)
                r = start_with(m, record, !isolated || (pod && is_lifted(m, pod)), fault);
        /* without isolation, what a removed cgroup left stays, and the container starts */
        return r == MEMORY_LIMITS_E_REFUSED && !isolated ? 0 : r;
}

/* ---- creation and end ---- */

int memory_limits_new(const MemoryLimitsOptions *options, MemoryLimits **ret) {
        _cleanup_(memory_limits_freep) MemoryLimits *m = calloc(1, sizeof *m);
        int r;

        if (!m)
                return -ENOMEM;
        m->o = *options;
        m->mechanism = wanted_mechanism(m, options->both);
        r = sd_event_add_time(options->event, &m->timer, CLOCK_MONOTONIC, 0, USEC_PER_MSEC, on_turn, m);
        if (r >= 0)
                r = sd_event_source_set_enabled(m->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

void memory_limits_set_source(MemoryLimits *m, CardSource *source) {
        m->source = source;
}

MemoryLimits *memory_limits_free(MemoryLimits *m) {
        if (!m)
                return NULL;
        m->trial = limit_trial_free(m->trial);
        while (m->pods)
                forget_pod(m, m->pods);
        sd_event_source_disable_unref(m->timer);
        free(m);
        return NULL;
}
