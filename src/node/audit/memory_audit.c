/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/memory_audit.h"

#include <dirent.h>
#include <errno.h>

#include "node/audit/pid_owner_cache.h"
#include "node/audit/process_killer.h"
#include "node/audit/unaccounted.h"
#include "node/kubelet/process_state.h"
#include "node/records/process_lookup.h"
#include "slice/visible.h"

#define MIB   (UINT64_C(1) << 20)
#define GRACE (64 * MIB)

enum { KEY_SIZE = POD_UID_SIZE + PROCESS_LOOKUP_NAME_SIZE + 16 };
enum { SWEEPS = 16 }; /* of one container's processes */

typedef struct Seen {
        ProcessOwner owner; /* uid "": in no pod */
        uint32_t card, pid;
        bool ended;
        uint64_t bytes;
} Seen;

/* What a container holds of a card, or a pod altogether. */
typedef struct Holding {
        UT_hash_handle hh;
        char key[KEY_SIZE];
        char uid[POD_UID_SIZE];
        char container[PROCESS_LOOKUP_NAME_SIZE]; /* "": the pod */
        uint32_t card;
        uint64_t bytes, limit;
        ExcessPid *pids; /* owned, as long as the longest list yet */
        size_t n_pids, room, n_ended;
        Hysteresis found;
        bool now;    /* in this census */
        bool over;   /* to be forgotten */
        bool untold; /* of a pod: not all of its processes are known as some container's */
        bool blamed; /* of a pod: a container of it has more than its slice */
} Holding;

struct MemoryAudit {
        MemoryAuditOptions o;
        Seen seen[CARD_USAGE_MAX];
        size_t n_seen;
        Holding *holdings;
        Unaccounted unaccounted;
        PidOwnerCache owners;
        ProcessKiller killer;
        uint64_t excesses, strays;
};

int memory_audit_new(const MemoryAuditOptions *options, MemoryAudit **ret) {
        MemoryAudit *a = calloc(1, sizeof *a);

        if (!a)
                return -ENOMEM;
        a->o = *options;
        if (!a->o.proc)
                a->o.proc = "/proc";
        a->owners.proc = a->killer.proc = a->o.proc;
        *ret = a;
        return 0;
}

static void drop(MemoryAudit *a, Holding *h) {
        HASH_DELETE(hh, a->holdings, h);
        free(h->pids);
        free(h);
}

MemoryAudit *memory_audit_free(MemoryAudit *a) {
        Holding *h, *next;

        if (!a)
                return NULL;
        HASH_ITER(hh, a->holdings, h, next)
        drop(a, h);
        pid_owner_cache_done(&a->owners);
        process_killer_done(&a->killer);
        free(a);
        return NULL;
}

/* ---- who holds what ---- */

static Holding *holding_of(MemoryAudit *a, const char *uid, const char *container, uint32_t card) {
        char key[KEY_SIZE] = "";
        Holding *h;

        (void) snprintf(key, sizeof key, "%u/%s/%s", card, uid, container);
        HASH_FIND(hh, a->holdings, key, strlen(key), h);
        if (h)
                return h;
        h = calloc(1, sizeof *h);
        if (!h)
                return NULL;
        memcpy(h->key, key, sizeof key);
        (void) snprintf(h->uid, sizeof h->uid, "%s", uid);
        (void) snprintf(h->container, sizeof h->container, "%s", container);
        h->card = card;
        HASH_ADD_KEYPTR(hh, a->holdings, h->key, strlen(h->key), h);
        if (!hash_added(h, hh)) {
                free(h);
                return NULL;
        }
        return h;
}

static void begin(Holding *h) {
        h->now = false;
        h->untold = h->blamed = false;
        h->bytes = 0;
        h->n_pids = h->n_ended = 0;
}

/* Without memory for it, it is counted and not named. */
static void add_pid(Holding *h, const Seen *seen) {
        if (h->n_pids == h->room) {
                size_t room = h->room > 0 ? 2 * h->room : 8;
                ExcessPid *more = realloc(h->pids, room * sizeof *more);

                if (!more)
                        return;
                h->pids = more;
                h->room = room;
        }
        h->pids[h->n_pids++] = (ExcessPid){seen->pid, seen->ended};
        h->n_ended += seen->ended;
}

static Holding *add(MemoryAudit *a, const Seen *seen, const char *container) {
        Holding *h = holding_of(a, seen->owner.uid, container, seen->card);

        if (!h)
                return NULL; /* out of memory: the next census may find some */
        h->now = true;
        h->bytes += seen->bytes;
        add_pid(h, seen);
        return h;
}

static void add_to_both(MemoryAudit *a, const Seen *seen) {
        const RosterPod *pod = roster_find(a->o.roster, str_from(seen->owner.uid));
        const char *container = process_lookup_container(pod, &seen->owner);
        Holding *whole = add(a, seen, "");

        if (container)
                (void) add(a, seen, container);
        else if (whole)
                whole->untold = true;
}

static void read_usage(MemoryAudit *a, const CardUsage *usage, uint32_t card, Seen *ret) {
        ProcessKind kind = PROCESS_OUTSIDE;
        PidOwnerState word;

        *ret = (Seen){.card = card, .pid = usage->pid, .bytes = usage->bytes};
        word = pid_owner_cache_find(&a->owners, usage->pid, &ret->owner);
        ret->ended = word == PID_OWNER_ENDED;
        if (word != PID_OWNER_NONE && process_lookup_is_ours(a->o.roster, a->o.records, &ret->owner))
                kind = ret->ended ? PROCESS_ENDED : PROCESS_LIVES;
        unaccounted_process(&a->unaccounted, card, usage->pid, kind, usage->bytes);
}

static void read_census(MemoryAudit *a, const CardCensus *census) {
        a->n_seen = 0;
        unaccounted_begin(&a->unaccounted);
        pid_owner_cache_begin(&a->owners);
        for (size_t i = 0; i < census->n && a->n_seen < CARD_USAGE_MAX; i++) {
                const CardUsage *usage = &census->usage[i];
                const MachineCard *card = inventory_card_by_uuid(a->o.inventory, usage->uuid);
                Seen *seen = &a->seen[a->n_seen];

                if (!card)
                        continue;
                read_usage(a, usage, card->index, seen);
                if (usage->bytes == UINT64_MAX)
                        continue;
                if (seen->owner.uid[0] != '\0')
                        add_to_both(a, seen);
                a->n_seen++;
        }
        pid_owner_cache_end(&a->owners);
        for (size_t i = 0; i < census->n_totals; i++) {
                const MachineCard *card = inventory_card_by_uuid(a->o.inventory, census->totals[i].uuid);

                if (card)
                        unaccounted_total(&a->unaccounted, card->index, census->totals[i].used);
        }
}

/* ---- what it may hold ---- */

/* Of one container: bytes; 0 for one that was given nothing of the card. UINT64_MAX: without a
 * limit. */
static uint64_t slice_of(const MemoryAudit *a, const RosterPod *pod, const RecordContainer *given,
                         uint32_t index) {
        const Inventory *v = a->o.inventory;
        const MachineCard *card = inventory_machine_card(v, index);
        uint32_t dev = card ? memory_unit_count(card->mib, v->unit) : 0;
        uint32_t units = given ? device_set_count(&given->given[DEVICE_MEM], index) : 0;

        if (given && !a->o.ignores_disable && roster_is_not_isolated(pod, given->name))
                return UINT64_MAX;
        return dev > 0 && units <= dev ? MIB * visible_mib(card->mib, units, dev) : 0;
}

/* Of all containers that run beside each other; init containers run before. */
static uint64_t sum_of(const MemoryAudit *a, const RosterPod *pod, const Record *record, uint32_t index) {
        uint64_t beside = 0, before = 0;

        for (size_t i = 0; i < record->n_containers; i++) {
                const RecordContainer *given = &record->containers[i];
                uint64_t slice = slice_of(a, pod, given, index);

                if (slice == UINT64_MAX)
                        return UINT64_MAX;
                if (!given->init)
                        beside += slice;
                else if (slice > before)
                        before = slice;
        }
        return beside > before ? beside : before;
}

static MemoryExcess excess_of(const MemoryAudit *a, const Holding *h) {
        return (MemoryExcess){.pod = roster_find(a->o.roster, str_from(h->uid)),
                              .container = h->container[0] != '\0' ? h->container : NULL,
                              .card = h->card,
                              .used = h->bytes,
                              .limit = h->limit,
                              .pids = h->pids,
                              .n_pids = h->n_pids,
                              .n_ended = h->n_ended};
}

/* Returns whether it has too much, be it the first time. */
static bool judge(MemoryAudit *a, Holding *h) {
        const RosterPod *pod = roster_find(a->o.roster, str_from(h->uid));
        const Record *record = records_find(a->o.records, str_from(h->uid));
        MemoryExcess excess;
        bool first;

        if (!pod || !record)
                return false; /* of a pod that we gave nothing: it is in the metrics */
        h->limit = h->container[0] == '\0'
                           ? sum_of(a, pod, record, h->card)
                           : slice_of(a, pod, record_container(record, str_from(h->container)), h->card);
        if (h->limit >= UINT64_MAX - GRACE || h->bytes <= h->limit + GRACE) {
                hysteresis_lower(&h->found);
                return false;
        }
        first = hysteresis_raise(&h->found);
        if (!h->found.told)
                return true;
        a->excesses += first;
        excess = excess_of(a, h);
        excess.again = !first;
        a->o.on_excess(a->o.userdata, &excess);
        return true;
}

/* Containers first: who is known to have too much answers for it alone, and not with his pod. */
static void judge_all(MemoryAudit *a) {
        Holding *h, *next, *whole;

        HASH_ITER(hh, a->holdings, h, next) {
                if (h->container[0] == '\0' || !judge(a, h))
                        continue;
                whole = holding_of(a, h->uid, "", h->card);
                if (whole)
                        whole->blamed = true;
        }
        HASH_ITER(hh, a->holdings, h, next) {
                if (h->container[0] != '\0')
                        continue;
                if (h->untold && !h->blamed)
                        (void) judge(a, h);
                else
                        h->found = (Hysteresis){0};
        }
}

static void judge_card(MemoryAudit *a, uint32_t card) {
        const UnaccountedCard *c = &a->unaccounted.cards[card];
        UnaccountedMemory found = {.card = card, .used = c->used, .pid = c->pid, .pid_bytes = c->largest};

        if (!unaccounted_judge(&a->unaccounted, card) ||
            !unaccounted_bytes(&a->unaccounted, card, &found.bytes))
                return;
        a->strays++;
        a->o.on_stray(a->o.userdata, &found);
}

/* Of one that no process holds anything for now: it is judged on until nothing is held against it,
 * so that who ends his processes now and then is not a new one each time. */
static bool is_over(const MemoryAudit *a, const Holding *h) {
        Str uid = str_from(h->uid);

        if (h->now)
                return false;
        return h->found.score == 0 || !roster_find(a->o.roster, uid) || !records_find(a->o.records, uid);
}

static void drop_over(MemoryAudit *a) {
        Holding *h, *next;

        for (h = a->holdings; h; h = h->hh.next)
                h->over = is_over(a, h);
        HASH_ITER(hh, a->holdings, h, next)
        if (h->over)
                drop(a, h);
}

void memory_audit_take(MemoryAudit *a, const CardCensus *census) {
        for (Holding *h = a->holdings; h; h = h->hh.next)
                begin(h);
        read_census(a, census);
        drop_over(a);
        if (!share_mode_is_isolated(a->o.inventory->mode))
                return;
        judge_all(a);
        for (size_t i = 0; a->o.roster->synced && i < a->o.inventory->cards.n; i++)
                judge_card(a, a->o.inventory->cards.cards[i].index);
}

/* ---- what comes of it ---- */

typedef struct Target {
        const MemoryAudit *audit;
        const RosterPod *pod;
        const char *container; /* NULL: any of the pod's */
} Target;

/* Asked anew: a pid may be somebody else's by now. */
static bool is_still(const void *userdata, uint32_t pid) {
        const Target *t = userdata;
        ProcessOwner owner;
        const char *name;

        if (!process_owner_of(t->audit->o.proc, pid, &owner) || strcmp(owner.uid, t->pod->uid) != 0)
                return false;
        name = process_lookup_container(t->pod, &owner);
        return !t->container || (name && strcmp(name, t->container) == 0);
}

/* Each process of the container, whatever it holds. */
static void each_process(const Target *t, void (*visit)(void *userdata, uint32_t pid), void *userdata) {
        DIR *processes = opendir(t->audit->o.proc);
        const struct dirent *entry;
        uint64_t pid;

        while (processes && (entry = readdir(processes)))
                if (str_to_u64(str_from(entry->d_name), &pid) && pid <= UINT32_MAX &&
                    is_still(t, (uint32_t) pid))
                        visit(userdata, (uint32_t) pid);
        if (processes)
                (void) closedir(processes);
}

static void kill_one(MemoryAudit *a, uint32_t pid, const Target *target, KilledProcesses *ret) {
        int r = process_killer_kill(&a->killer, pid, is_still, target);

        ret->killed += r > 0;
        ret->failed += r < 0;
}

typedef struct Killing {
        MemoryAudit *audit;
        const Target *target;
        KilledProcesses *ret;
} Killing;

static void kill_visited(void *userdata, uint32_t pid) {
        const Killing *k = userdata;

        kill_one(k->audit, pid, k->target, k->ret);
}

static void kill_container(MemoryAudit *a, const Target *target, KilledProcesses *ret) {
        each_process(target, kill_visited, &(Killing){a, target, ret});
        ret->all = true;
}

KilledProcesses memory_audit_kill(MemoryAudit *a, const MemoryExcess *excess) {
        const Target target = {a, excess->pod, excess->container};
        KilledProcesses ret = {0};

        for (size_t i = 0; i < excess->n_pids; i++)
                if (!excess->pids[i].ended)
                        kill_one(a, excess->pids[i].pid, &target, &ret);
        if (excess->n_ended > 0 && excess->container)
                kill_container(a, &target, &ret);
        return ret;
}

/* Until a sweep finds nobody new: who was begun meanwhile is found by the next one. */
KilledProcesses memory_audit_end_container(MemoryAudit *a, const RosterPod *pod, const char *container) {
        const Target target = {a, pod, container};
        KilledProcesses ret = {0};
        size_t before;

        for (int i = 0; i < SWEEPS; i++) {
                before = ret.killed;
                kill_container(a, &target, &ret);
                if (ret.killed == before)
                        break;
                ret.failed = 0; /* they are tried again */
        }
        return ret;
}

typedef struct Looking {
        const MemoryAudit *audit;
        uint32_t card;
        bool (*works)(void *userdata, uint32_t card, uint32_t pid);
        void *userdata;
        PausedProcesses ret;
} Looking;

static void look_at(void *userdata, uint32_t pid) {
        Looking *l = userdata;

        if (process_state_is_paused(l->audit->o.proc, l->audit->o.cgroups, pid))
                l->ret.n_paused++;
        else
                l->ret.n_work += l->works(l->userdata, l->card, pid);
}

PausedProcesses memory_audit_paused(const MemoryAudit *a, const RosterPod *pod, const char *container,
                                    uint32_t card, bool (*works)(void *userdata, uint32_t card, uint32_t pid),
                                    void *userdata) {
        const Target target = {a, pod, container};
        Looking l = {.audit = a, .card = card, .works = works, .userdata = userdata};
        bool any = false;

        for (size_t i = 0; i < a->n_seen; i++) {
                const Seen *seen = &a->seen[i];

                if (seen->card != card || seen->ended || !is_still(&target, seen->pid))
                        continue;
                any = true;
                look_at(&l, seen->pid);
        }
        if (!any)
                each_process(&target, look_at, &l);
        return l.ret;
}

void memory_audit_each(const MemoryAudit *a, void (*visit)(void *userdata, const ProcessMemory *process),
                       void *userdata) {
        for (size_t i = 0; i < a->n_seen; i++) {
                const Seen *seen = &a->seen[i];
                const RosterPod *pod = roster_find(a->o.roster, str_from(seen->owner.uid));

                visit(userdata, &(ProcessMemory){.pod = pod,
                                                 .container = process_lookup_container(pod, &seen->owner),
                                                 .card = seen->card,
                                                 .pid = seen->pid,
                                                 .bytes = seen->bytes});
        }
}

void memory_audit_each_excess(const MemoryAudit *a, void (*visit)(void *userdata, const MemoryExcess *excess),
                              void *userdata) {
        for (const Holding *h = a->holdings; h; h = h->hh.next) {
                MemoryExcess excess = excess_of(a, h);

                if (h->found.told && excess.pod && excess.used > excess.limit)
                        visit(userdata, &excess);
        }
}

bool memory_audit_unaccounted(const MemoryAudit *a, uint32_t card, uint64_t *ret_bytes) {
        return unaccounted_bytes(&a->unaccounted, card, ret_bytes);
}

uint64_t memory_audit_excesses(const MemoryAudit *a) {
        return a->excesses;
}

uint64_t memory_audit_unaccounted_count(const MemoryAudit *a) {
        return a->strays;
}
