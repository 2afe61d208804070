/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit.h"

#include <errno.h>
#include <signal.h>

#include "base/log.h"
#include "kubelet/cgroups.h"

#define MIB   (UINT64_C(1) << 20)
#define GRACE (64 * MIB)

enum { SAMPLES = 3, PIDS_MAX = 64, KEY_SIZE = POD_UID_SIZE + 16 };

typedef struct Seen {
        char uid[POD_UID_SIZE]; /* "": in no pod */
        uint32_t card, pid;
        uint64_t bytes;
} Seen;

/* What a pod holds of a card. */
typedef struct Holding {
        UT_hash_handle hh;
        char key[KEY_SIZE];
        char uid[POD_UID_SIZE];
        uint32_t card;
        uint64_t bytes;
        uint32_t pids[PIDS_MAX];
        size_t n_pids;
        unsigned over;  /* samples in a row */
        bool told, now; /* in this census */
} Holding;

struct Audit {
        AuditOptions o;
        Seen seen[CARD_USAGE_MAX];
        size_t n_seen;
        Holding *holdings;
        uint64_t excesses;
};

int audit_new(const AuditOptions *options, Audit **ret) {
        Audit *a = calloc(1, sizeof *a);

        if (!a)
                return -ENOMEM;
        a->o = *options;
        if (!a->o.proc)
                a->o.proc = "/proc";
        *ret = a;
        return 0;
}

static void drop(Audit *a, Holding *h) {
        HASH_DELETE(hh, a->holdings, h);
        free(h);
}

Audit *audit_free(Audit *a) {
        Holding *h, *next;

        if (!a)
                return NULL;
        HASH_ITER(hh, a->holdings, h, next)
        drop(a, h);
        free(a);
        return NULL;
}

/* ---- who holds what ---- */

static const MachineCard *card_of(const Inventory *v, const char *uuid) {
        for (size_t i = 0; i < v->cards.n; i++)
                if (strcmp(v->cards.cards[i].uuid, uuid) == 0)
                        return &v->cards.cards[i];
        return NULL;
}

static const MachineCard *card_at(const Inventory *v, uint32_t index) {
        for (size_t i = 0; i < v->cards.n; i++)
                if (v->cards.cards[i].index == index)
                        return &v->cards.cards[i];
        return NULL;
}

static Holding *holding_of(Audit *a, const char *uid, uint32_t card) {
        char key[KEY_SIZE] = "";
        Holding *h;

        (void) snprintf(key, sizeof key, "%u/%s", card, uid);
        HASH_FIND(hh, a->holdings, key, strlen(key), h);
        if (h)
                return h;
        h = calloc(1, sizeof *h);
        if (!h)
                return NULL;
        memcpy(h->key, key, sizeof key);
        (void) snprintf(h->uid, sizeof h->uid, "%s", uid);
        h->card = card;
        HASH_ADD_KEYPTR(hh, a->holdings, h->key, strlen(h->key), h);
        if (!hash_added(h, hh)) {
                free(h);
                return NULL;
        }
        return h;
}

static void add(Audit *a, const Seen *seen) {
        Holding *h = holding_of(a, seen->uid, seen->card);

        if (!h)
                return; /* out of memory: the next census may find some */
        if (!h->now) {
                h->now = true;
                h->bytes = 0;
                h->n_pids = 0;
        }
        h->bytes += seen->bytes;
        if (h->n_pids < PIDS_MAX)
                h->pids[h->n_pids++] = seen->pid;
}

static void read_census(Audit *a, const CardUsage *usage, size_t n) {
        a->n_seen = 0;
        for (size_t i = 0; i < n && a->n_seen < CARD_USAGE_MAX; i++) {
                const MachineCard *card = card_of(a->o.inventory, usage[i].uuid);
                Seen *seen = &a->seen[a->n_seen];

                if (!card || usage[i].bytes == UINT64_MAX)
                        continue;
                *seen = (Seen){.card = card->index, .pid = usage[i].pid, .bytes = usage[i].bytes};
                if (process_pod(a->o.proc, usage[i].pid, seen->uid))
                        add(a, seen);
                a->n_seen++;
        }
}

/* ---- what it may hold ---- */

static const RosterContainer *container_of(const RosterPod *pod, const char *name) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (strcmp(pod->containers[i].name, name) == 0)
                        return &pod->containers[i];
        return NULL;
}

static uint32_t units_on(const DeviceSet *set, uint32_t card) {
        uint32_t at_card, count;
        size_t at = 0;

        while (device_set_next_card(set, &at, &at_card, &count))
                if (at_card == card)
                        return count;
        return 0;
}

/* Of all containers that run beside each other; init containers run before. UINT64_MAX: without a limit, because one of them is not
 * isolated. */
static uint64_t limit_of(const Audit *a, const RosterPod *pod, const Record *record, uint32_t index) {
        const Inventory *v = a->o.inventory;
        const MachineCard *card = card_at(v, index);
        uint32_t dev = card ? card_units(card->mib, v->unit) : 0;
        uint64_t beside = 0, before = 0;

        for (size_t i = 0; dev > 0 && i < record->n_containers; i++) {
                const RecordContainer *given = &record->containers[i];
                const RosterContainer *c = container_of(pod, given->name);
                uint32_t units = units_on(&given->given[DEVICE_MEM], index);
                uint64_t visible = units <= dev ? MIB * visible_mib(card->mib, units, dev) : 0;

                if (c && c->not_isolated)
                        return UINT64_MAX;
                if (!given->init)
                        beside += visible;
                else if (visible > before)
                        before = visible;
        }
        return beside > before ? beside : before;
}

static void judge(Audit *a, Holding *h) {
        const RosterPod *pod = roster_find(a->o.roster, str_from(h->uid));
        const Record *record = records_find(a->o.records, str_from(h->uid));
        uint64_t limit;

        if (!pod || !record)
                return; /* of a pod that we gave nothing: it is in the metrics */
        limit = limit_of(a, pod, record, h->card);
        if (limit >= UINT64_MAX - GRACE || h->bytes <= limit + GRACE) {
                h->over = 0;
                h->told = false;
                return;
        }
        if (++h->over < SAMPLES || h->told)
                return;
        h->told = true;
        a->excesses++;
        a->o.on_excess(a->o.userdata, &(AuditExcess){.pod = pod,
                                                     .card = h->card,
                                                     .used = h->bytes,
                                                     .limit = limit,
                                                     .pids = h->pids,
                                                     .n_pids = h->n_pids});
}

void audit_take(Audit *a, const CardUsage *usage, size_t n) {
        Holding *h, *next;

        HASH_ITER(hh, a->holdings, h, next)
        h->now = false;
        read_census(a, usage, n);
        HASH_ITER(hh, a->holdings, h, next) {
                if (!h->now)
                        drop(a, h);
                else if (share_mode_is_isolated(a->o.inventory->mode))
                        judge(a, h);
        }
}

size_t audit_kill(const Audit *a, const AuditExcess *excess) {
        char uid[POD_UID_SIZE];
        size_t n = 0;

        for (size_t i = 0; i < excess->n_pids; i++)
                if (excess->pids[i] > 1 && process_pod(a->o.proc, excess->pids[i], uid) &&
                    strcmp(uid, excess->pod->uid) == 0)
                        n += kill((pid_t) excess->pids[i], SIGKILL) == 0;
        return n;
}

void audit_each(const Audit *a, void (*visit)(void *userdata, const AuditProcess *process), void *userdata) {
        for (size_t i = 0; i < a->n_seen; i++) {
                const Seen *seen = &a->seen[i];

                visit(userdata, &(AuditProcess){.pod = roster_find(a->o.roster, str_from(seen->uid)),
                                                .card = seen->card,
                                                .pid = seen->pid,
                                                .bytes = seen->bytes});
        }
}

uint64_t audit_excesses(const Audit *a) {
        return a->excesses;
}
