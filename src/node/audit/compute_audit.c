/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/compute_audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter/tenant_policy.h"
#include "base/clock.h"
#include "node/audit/compute_share.h"
#include "node/audit/overuse.h"
#include "node/audit/pid_owner_cache.h"
#include "node/audit/window_totals.h"
#include "node/isolation/isolation.h"
#include "node/records/process_lookup.h"

enum { KEY_SIZE = POD_UID_SIZE + PROCESS_LOOKUP_NAME_SIZE + 16, PERCENT = POLICY_PPM / 100 };
enum { CONTAINERS_MAX = 32 }; /* of a pod that is checked as a whole */

typedef struct Seen {
        ProcessOwner owner; /* uid "": in no pod */
        uint32_t card, pid;
        uint64_t nsec, span;
} Seen;

/* The time of a card that a container, or a whole pod, has used. */
typedef struct Usage {
        UT_hash_handle hh;
        char key[KEY_SIZE];
        char uid[POD_UID_SIZE];
        char container[PROCESS_LOOKUP_NAME_SIZE]; /* "": the pod */
        uint32_t card;
        uint32_t cap;  /* ppm, at the last check; POLICY_PPM: none */
        uint64_t used; /* ns of this window */
        uint32_t pid;  /* the process that used most in one census of the window */
        uint64_t most;
        bool several;
        bool checked;        /* its share was checked at least once */
        bool has_unknown;    /* of a pod: a process of this window has no known container */
        bool container_over; /* of a pod: a container of it had more than its share */
        Overuse overuse;
} Usage;

typedef struct AuditedCard {
        char uuid[64];
        uint32_t index;
        uint64_t span;   /* ns of this window */
        bool known;      /* the census has the card */
        uint64_t census; /* ns of this census */
} AuditedCard;

struct ComputeAudit {
        ComputeAuditOptions o;
        ComputeShare share;
        Seen seen[CARD_USAGE_MAX];
        size_t n_seen;
        Usage *usages;
        AuditedCard cards[CARDS_MAX];
        size_t n_cards;
        PidOwnerCache owners;
        WindowTotals windows;
        bool shares; /* a container without a cap is limited to windows */
        uint64_t excesses;
};

int compute_audit_new(const ComputeAuditOptions *options, ComputeAudit **ret) {
        ComputeAudit *m = calloc(1, sizeof *m);

        if (!m)
                return -ENOMEM;
        m->o = *options;
        m->share = (ComputeShare){options->inventory, options->compute, options->ignores_disable};
        m->owners.proc = options->proc ? options->proc : "/proc";
        *ret = m;
        return 0;
}

static void drop_usage(ComputeAudit *m, Usage *t) {
        HASH_DELETE(hh, m->usages, t);
        free(t);
}

ComputeAudit *compute_audit_free(ComputeAudit *m) {
        if (!m)
                return NULL;
        while (m->usages)
                drop_usage(m, m->usages);
        pid_owner_cache_done(&m->owners);
        window_totals_done(&m->windows);
        free(m);
        return NULL;
}

bool compute_audit_wants(const ComputeAudit *m) {
        return compute_share_is_cap(&m->share) || m->shares;
}

/* ---- what each container uses ---- */

static AuditedCard *card_named(ComputeAudit *m, const char *uuid) {
        for (size_t i = 0; i < m->n_cards; i++)
                if (strcmp(m->cards[i].uuid, uuid) == 0)
                        return &m->cards[i];
        return NULL;
}

static void take_span(ComputeAudit *m, const CardSpan *span) {
        const MachineCard *known = inventory_card_by_uuid(m->o.inventory, span->uuid);
        AuditedCard *card = card_named(m, span->uuid);

        if (!known || span->nsec == 0)
                return;
        if (!card && m->n_cards < CARDS_MAX) {
                card = &m->cards[m->n_cards++];
                *card = (AuditedCard){.index = known->index};
                memcpy(card->uuid, span->uuid, sizeof card->uuid);
        }
        if (!card)
                return;
        card->index = known->index;
        card->known = true;
        card->census = span->nsec;
        card->span += span->nsec;
}

static Usage *usage_of(ComputeAudit *m, const char *uid, const char *container, uint32_t card) {
        char key[KEY_SIZE] = "";
        Usage *t;

        (void) snprintf(key, sizeof key, "%u/%s/%s", card, uid, container);
        HASH_FIND(hh, m->usages, key, strlen(key), t);
        if (t)
                return t;
        t = calloc(1, sizeof *t);
        if (!t)
                return NULL; /* out of memory: the next census may find some */
        memcpy(t->key, key, sizeof key);
        (void) snprintf(t->uid, sizeof t->uid, "%s", uid);
        (void) snprintf(t->container, sizeof t->container, "%s", container);
        t->card = card;
        t->cap = POLICY_PPM;
        HASH_ADD_KEYPTR(hh, m->usages, t->key, strlen(t->key), t);
        if (!hash_added(t, hh)) {
                free(t);
                return NULL;
        }
        return t;
}

static Usage *add_use(ComputeAudit *m, const Seen *seen, const char *container) {
        Usage *t = usage_of(m, seen->owner.uid, container, seen->card);

        if (!t)
                return NULL;
        t->used += seen->nsec;
        t->several |= t->pid != 0 && t->pid != seen->pid;
        if (seen->nsec > t->most) {
                t->most = seen->nsec;
                t->pid = seen->pid;
        }
        return t;
}

static void add_to_both(ComputeAudit *m, const Seen *seen) {
        const RosterPod *pod = roster_find(m->o.roster, str_from(seen->owner.uid));
        const char *container = process_lookup_container(pod, &seen->owner);
        Usage *whole = add_use(m, seen, "");

        if (container)
                (void) add_use(m, seen, container);
        else if (whole)
                whole->has_unknown = true;
}

static void read_use(ComputeAudit *m, const CardUse *use) {
        const AuditedCard *card = card_named(m, use->uuid);
        Seen *seen = &m->seen[m->n_seen];
        PidOwnerState word;

        if (!card || !card->known || m->n_seen == CARD_USAGE_MAX)
                return;
        *seen = (Seen){.card = card->index, .pid = use->pid, .nsec = use->nsec, .span = card->census};
        word = pid_owner_cache_find(&m->owners, use->pid, &seen->owner);
        if (word != PID_OWNER_NONE && process_lookup_is_ours(m->o.roster, m->o.records, &seen->owner))
                add_to_both(m, seen);
        m->n_seen++;
}

static void read_census(ComputeAudit *m, const CardCensus *census) {
        m->n_seen = 0;
        for (size_t i = 0; i < m->n_cards; i++)
                m->cards[i].known = false;
        for (size_t i = 0; i < census->n_spans; i++)
                take_span(m, &census->spans[i]);
        pid_owner_cache_begin(&m->owners);
        for (size_t i = 0; i < census->n_uses; i++)
                read_use(m, &census->uses[i]);
        pid_owner_cache_end(&m->owners);
}

/* ---- the end of a window ---- */

static ComputeExcess excess_of(const ComputeAudit *m, const Usage *t) {
        return (ComputeExcess){.pod = roster_find(m->o.roster, str_from(t->uid)),
                               .container = t->container[0] != '\0' ? t->container : NULL,
                               .card = t->card,
                               .used = overuse_ppm(&t->overuse),
                               .share = overuse_due_ppm(&t->overuse),
                               .shared = t->cap >= POLICY_PPM,
                               .nsec = t->overuse.span,
                               .pid = t->pid,
                               .several = t->several};
}

static uint32_t cap_now(const ComputeAudit *m, const Usage *t) {
        const RosterPod *pod = roster_find(m->o.roster, str_from(t->uid));
        const Record *record = records_find(m->o.records, str_from(t->uid));

        if (!pod || !record || !compute_audit_wants(m))
                return POLICY_PPM; /* no pod of ours, or no cap */
        return t->container[0] == '\0'
                       ? compute_share_of_pod(&m->share, pod, record, t->card)
                       : compute_share_of_container(
                                 &m->share, pod, record_container(record, str_from(t->container)), t->card);
}

/* Sums up the windows of the container, or of all containers of the pod. False: not known. */
static bool granted_to(ComputeAudit *m, const Usage *t, const char *uuid, WindowSum *ret) {
        const Record *record = records_find(m->o.records, str_from(t->uid));
        char ids[CONTAINERS_MAX][SLICEDIR_ID_SIZE];
        size_t n = 0;

        for (size_t i = 0; record && i < record->n_containers; i++) {
                const RecordContainer *given = &record->containers[i];

                if (device_set_count(&given->given[DEVICE_MEM], t->card) == 0 ||
                    (t->container[0] != '\0' && strcmp(given->name, t->container) != 0))
                        continue;
                if (n == CONTAINERS_MAX)
                        return false;
                isolation_slice_name(given, ids[n++]);
        }
        return n > 0 && window_totals_of(&m->windows, uuid, (const char(*)[SLICEDIR_ID_SIZE]) ids, n, ret);
}

/* The part of the window that it was allowed, in ppm. False: not known. */
static bool due_of(ComputeAudit *m, const Usage *t, const AuditedCard *card, uint32_t *ret) {
        WindowSum sum;
        uint64_t due;

        if (!m->shares || !granted_to(m, t, card->uuid, &sum))
                return false;
        due = overuse_due(card->span, sum.own, sum.others, sum.floor) / (card->span / POLICY_PPM);
        *ret = due < POLICY_PPM ? (uint32_t) due : POLICY_PPM;
        return true;
}

/* Whether the share changed in this window, which then shows nothing. */
static bool has_changed(const Usage *t, uint32_t cap) {
        return t->checked && cap != t->cap;
}

/* Returns whether it had too much in this window. Reports it where that has lasted. */
static bool check_usage(ComputeAudit *m, Usage *t, const AuditedCard *card) {
        uint32_t cap = cap_now(m, t), share = cap;
        bool shared = cap >= POLICY_PPM, changed = has_changed(t, cap), first;
        ComputeExcess excess;

        t->cap = cap;
        t->checked = true;
        if (changed || (shared && !due_of(m, t, card, &share))) {
                t->overuse = (Overuse){0};
                return false;
        }
        first = overuse_window(&t->overuse, m->o.window, card->span, t->used, share);
        if (!overuse_lasts(&t->overuse))
                return t->overuse.row > 0;
        m->excesses += first;
        excess = excess_of(m, t);
        excess.again = !first;
        m->o.on_excess(m->o.userdata, &excess);
        return true;
}

/* Containers are checked first: the excess of a known container is not reported of its pod as
 * well. */
static void check_all(ComputeAudit *m, const AuditedCard *card) {
        Usage *t, *next, *whole;

        HASH_ITER(hh, m->usages, t, next) {
                if (t->card != card->index || t->container[0] == '\0' || !check_usage(m, t, card))
                        continue;
                whole = usage_of(m, t->uid, "", t->card);
                if (whole)
                        whole->container_over = true;
        }
        HASH_ITER(hh, m->usages, t, next) {
                if (t->card != card->index || t->container[0] != '\0')
                        continue;
                if (t->has_unknown && !t->container_over)
                        (void) check_usage(m, t, card);
                else
                        t->overuse = (Overuse){0};
        }
}

/* Begins the next window. A container that used nothing and owes nothing is forgotten. */
static void begin_window(ComputeAudit *m, AuditedCard *card) {
        Usage *t, *next;

        HASH_ITER(hh, m->usages, t, next) {
                if (t->card != card->index)
                        continue;
                if (t->used == 0 && t->overuse.owed == 0) {
                        drop_usage(m, t);
                        continue;
                }
                t->used = t->most = 0;
                t->pid = 0;
                t->several = t->has_unknown = t->container_over = false;
        }
        window_totals_begin(&m->windows, card->uuid);
        card->span = 0;
}

static void read_windows(ComputeAudit *m) {
        m->shares = false;
        if (!m->o.slicedir || compute_share_is_cap(&m->share) ||
            !share_mode_is_isolated(m->o.inventory->mode))
                return;
        window_totals_read(&m->windows, m->o.slicedir, clock_nsec(CLOCK_MONOTONIC));
        m->shares = window_totals_has_shared(&m->windows);
}

void compute_audit_take(ComputeAudit *m, const CardCensus *census) {
        read_census(m, census);
        read_windows(m);
        for (size_t i = 0; i < m->n_cards; i++) {
                if (m->cards[i].span < m->o.window)
                        continue;
                check_all(m, &m->cards[i]);
                begin_window(m, &m->cards[i]);
        }
}

/* ---- for the metrics ---- */

bool compute_audit_had(const ComputeAudit *m, uint32_t card, uint32_t pid) {
        for (size_t i = 0; i < m->n_seen; i++)
                if (m->seen[i].card == card && m->seen[i].pid == pid && m->seen[i].nsec > 0)
                        return true;
        return false;
}

void compute_audit_each(const ComputeAudit *m, void (*visit)(void *userdata, const ProcessCompute *process),
                        void *userdata) {
        for (size_t i = 0; i < m->n_seen; i++) {
                const Seen *seen = &m->seen[i];
                const RosterPod *pod = roster_find(m->o.roster, str_from(seen->owner.uid));
                uint64_t percent = seen->span > 100 ? seen->nsec / (seen->span / 100) : 0;

                visit(userdata, &(ProcessCompute){.pod = pod,
                                                  .container = process_lookup_container(pod, &seen->owner),
                                                  .card = seen->card,
                                                  .pid = seen->pid,
                                                  .percent = (uint32_t) (percent < 100 ? percent : 100)});
        }
}

void compute_audit_each_excess(const ComputeAudit *m,
                               void (*visit)(void *userdata, const ComputeExcess *excess), void *userdata) {
        for (const Usage *t = m->usages; t; t = t->hh.next) {
                ComputeExcess excess = excess_of(m, t);

                if (overuse_lasts(&t->overuse) && excess.pod)
                        visit(userdata, &excess);
        }
}

uint64_t compute_audit_excesses(const ComputeAudit *m) {
        return m->excesses;
}
