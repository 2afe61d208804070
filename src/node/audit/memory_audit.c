/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/memory_audit.h"

#include <errno.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/process_stat.h"
#include "node/audit/at_one_time.h"
#include "node/audit/container_processes.h"
#include "node/audit/hysteresis.h"
#include "node/audit/pid_owner_cache.h"
#include "node/audit/unaccounted.h"
#include "node/kubelet/process_state.h"
#include "node/records/process_lookup.h"
#include "slice/visible.h"

#define MIB (UINT64_C(1) << 20)

enum { KEY_SIZE = POD_UID_SIZE + PROCESS_LOOKUP_NAME_SIZE + 16, PATH_SIZE = 512 };

typedef struct Seen {
        ProcessOwner owner; /* uid "": in no pod */
        uint32_t card, pid;
        bool ended;
        bool left; /* it has ended, and its owner was never seen */
        uint64_t bytes;
} Seen;

/* What a container, or a whole pod, holds of a card. */
typedef struct Holding {
        UT_hash_handle hh;
        char key[KEY_SIZE];
        char uid[POD_UID_SIZE];
        char container[PROCESS_LOOKUP_NAME_SIZE]; /* "": the pod */
        uint32_t card;
        uint64_t bytes, limit;
        ExcessPid *pids; /* owned */
        size_t n_pids, room, n_ended;
        Hysteresis found;
        bool in_census;
        bool over;           /* it is to be forgotten */
        bool has_unknown;    /* of a pod: a process of it has no known container */
        bool container_over; /* of a pod: a container of it has more than its slice */
} Holding;

struct MemoryAudit {
        MemoryAuditOptions o;
        Seen seen[CARD_USAGE_MAX];
        size_t n_seen;
        Holding *holdings;
        Unaccounted unaccounted;
        PidOwnerCache owners;
        LeftMemory left;
        /* by index of the card: processes that may hold what is left there */
        LeftHolders holders[CARDS_MAX];
        CardFiles files;
        uint64_t excesses, n_unaccounted;
};

int memory_audit_new(const MemoryAuditOptions *options, MemoryAudit **ret) {
        MemoryAudit *a = calloc(1, sizeof *a);

        if (!a)
                return -ENOMEM;
        a->o = *options;
        if (!a->o.proc)
                a->o.proc = "/proc";
        a->owners.proc = a->o.proc;
        *ret = a;
        return 0;
}

static void drop_holding(MemoryAudit *a, Holding *h) {
        HASH_DELETE(hh, a->holdings, h);
        free(h->pids);
        free(h);
}

static void forget_holders(MemoryAudit *a) {
        for (size_t i = 0; i < CARDS_MAX; i++)
                left_memory_done_holders(&a->holders[i]);
}

MemoryAudit *memory_audit_free(MemoryAudit *a) {
        if (!a)
                return NULL;
        while (a->holdings)
                drop_holding(a, a->holdings);
        pid_owner_cache_done(&a->owners);
        left_memory_done(&a->left);
        forget_holders(a);
        free(a);
        return NULL;
}

/* ---- what each container holds ---- */

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

static void begin_census(Holding *h) {
        h->in_census = false;
        h->has_unknown = h->container_over = false;
        h->bytes = 0;
        h->n_pids = h->n_ended = 0;
}

/* Out of memory, the process is counted but not named. */
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

static Holding *add_memory(MemoryAudit *a, const Seen *seen, const char *container) {
        Holding *h = holding_of(a, seen->owner.uid, container, seen->card);

        if (!h)
                return NULL; /* out of memory: the next census may find some */
        h->in_census = true;
        h->bytes += seen->bytes;
        add_pid(h, seen);
        return h;
}

static void add_to_both(MemoryAudit *a, const Seen *seen) {
        const RosterPod *pod = roster_find(a->o.roster, str_from(seen->owner.uid));
        const char *container = process_lookup_container(pod, &seen->owner);
        Holding *whole = add_memory(a, seen, "");

        if (container)
                (void) add_memory(a, seen, container);
        else if (whole)
                whole->has_unknown = true;
}

/* Whether the process has ended. True also where it has no driver file open: then another process
 * has the pid. */
static bool has_ended(const MemoryAudit *a, uint32_t pid) {
        char path[PATH_SIZE];

        (void) snprintf(path, sizeof path, "%s/%u", a->o.proc, pid);
        return access(path, F_OK) != 0 || card_files_of(a->o.proc, pid, &a->files) == CARD_FILES_NONE;
}

/* Whether the process has ended although it still has its cgroup: a zombie, and none of its threads
 * has a driver file open. */
static bool is_zombie(const MemoryAudit *a, uint32_t pid) {
        return process_stat_first_thread_has_ended(a->o.proc, pid) &&
               card_files_of(a->o.proc, pid, &a->files) != CARD_FILES_SOME;
}

/* Whether its pod was given slices, or asks for some. Memory of any other pod is taken from slices
 * that were promised, as that of a process outside of pods. */
static bool has_slices(const MemoryAudit *a, const ProcessOwner *owner) {
        const RosterPod *pod = roster_find(a->o.roster, str_from(owner->uid));

        return (pod && pod->n_containers > 0) || records_find(a->o.records, str_from(owner->uid));
}

static void read_usage(MemoryAudit *a, const CardUsage *usage, uint32_t card, Seen *ret) {
        ProcessKind kind = PROCESS_OUTSIDE;
        PidOwnerState word;

        *ret = (Seen){.card = card, .pid = usage->pid, .bytes = usage->bytes};
        word = pid_owner_cache_find(&a->owners, usage->pid, &ret->owner);
        ret->ended = word == PID_OWNER_ENDED || (word == PID_OWNER_LIVES && is_zombie(a, usage->pid));
        ret->left = word == PID_OWNER_NONE && usage->bytes != UINT64_MAX && has_ended(a, usage->pid);
        if (ret->left)
                return;
        if (word != PID_OWNER_NONE && has_slices(a, &ret->owner))
                kind = ret->ended ? PROCESS_ENDED : PROCESS_LIVES;
        unaccounted_process(&a->unaccounted, card, usage->pid, kind, usage->bytes);
}

/* Out of memory none is found, and the memory is reported for the card. */
static void find_holders(MemoryAudit *a, uint32_t card) {
        _cleanup_free_ uint32_t *named = calloc(a->n_seen + 1, sizeof *named);
        LeftSearch search = {a->o.proc, a->o.records, &a->files, card, named, 0};

        for (size_t i = 0; named && i < a->n_seen; i++)
                if (a->seen[i].card == card && !a->seen[i].left)
                        named[search.n_named++] = a->seen[i].pid;
        if (named)
                left_memory_find_holders(&search, &a->holders[card]);
}

static bool is_alive_there(const MemoryAudit *a, const Seen *dead) {
        for (size_t i = 0; i < a->n_seen; i++) {
                const Seen *seen = &a->seen[i];

                if (!seen->ended && seen->card == dead->card &&
                    strcmp(seen->owner.uid, dead->owner.uid) == 0 &&
                    strcmp(seen->owner.container, dead->owner.container) == 0)
                        return true;
        }
        return false;
}

/* Charges the memory of an ended process to its known container, or to the one of its pod to which
 * its driver file was passed. */
static void charge_ended(MemoryAudit *a, Seen *seen) {
        const LeftHolders *holders = &a->holders[seen->card];
        const ProcessOwner *heir = left_memory_heir(holders, &seen->owner);

        if (heir && !left_memory_has_holder(holders, &seen->owner) && !is_alive_there(a, seen))
                seen->owner = *heir;
        add_to_both(a, seen);
}

/* Attributes the memory of ended processes to containers. Holders are searched only where it
 * exceeds the card's tolerance. */
static void charge_left(MemoryAudit *a, const CardCensus *census) {
        uint64_t left[CARDS_MAX] = {0}, ended[CARDS_MAX] = {0};

        forget_holders(a);
        left_memory_begin(&a->left, census->asked, census->came);
        for (size_t i = 0; i < a->n_seen; i++) {
                left[a->seen[i].card] += a->seen[i].left ? a->seen[i].bytes : 0;
                ended[a->seen[i].card] += a->seen[i].ended ? a->seen[i].bytes : 0;
        }
        for (uint32_t card = 0; card < CARDS_MAX; card++)
                if (left[card] > UNACCOUNTED_BASE || ended[card] > UNACCOUNTED_BASE)
                        find_holders(a, card);
        for (size_t i = 0; i < a->n_seen; i++) {
                Seen *seen = &a->seen[i];
                const ProcessOwner *owner;

                if (!seen->left && seen->ended)
                        charge_ended(a, seen);
                if (!seen->left)
                        continue;
                owner = left_memory_judge(&a->left, seen->card, seen->pid, &a->holders[seen->card]);
                unaccounted_process(&a->unaccounted, seen->card, seen->pid,
                                    owner ? PROCESS_ENDED : PROCESS_OUTSIDE, seen->bytes);
                if (!owner)
                        continue;
                seen->owner = *owner;
                seen->ended = true;
                add_to_both(a, seen);
        }
        left_memory_end(&a->left);
        for (uint32_t card = 0; card < CARDS_MAX; card++)
                if (left[card] <= UNACCOUNTED_BASE)
                        /* these holders are not reported */
                        left_memory_done_holders(&a->holders[card]);
}

static void read_census(MemoryAudit *a, const CardCensus *census) {
        a->n_seen = 0;
        a->files = card_files_find(a->o.simulated);
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
                if (seen->owner.uid[0] != '\0' && !seen->ended)
                        add_to_both(a, seen);
                a->n_seen++;
        }
        pid_owner_cache_end(&a->owners);
        charge_left(a, census);
        for (size_t i = 0; i < census->n_totals; i++) {
                const MachineCard *card = inventory_card_by_uuid(a->o.inventory, census->totals[i].uuid);

                if (card)
                        unaccounted_total(&a->unaccounted, card->index, census->totals[i].used);
        }
}

/* ---- what it may hold ---- */

/* Units above the limit. They stand in the Node's annotation, which can be lost, and in the record.
 * Negative: what the container has given up, so that other slices may have it. */
static int32_t growth_of(const MemoryAudit *a, const RosterPod *pod, const RecordContainer *given,
                         uint32_t index) {
        int32_t growth = roster_growth(a->o.roster, pod, given->name, index);
        int32_t above = (int32_t) record_mem_above(given, index);

        return above > 0 && above > growth ? above : growth;
}

/* Bytes of one container; 0 where it was given nothing of the card; UINT64_MAX: no limit. */
static uint64_t slice_of(const MemoryAudit *a, const RosterPod *pod, const RecordContainer *given,
                         uint32_t index) {
        const Inventory *v = a->o.inventory;
        const MachineCard *card = inventory_machine_card(v, index);
        const CardInfo *info = inventory_card(v, index);
        uint32_t dev = info ? info->units : 0;
        uint32_t units = given ? device_set_count(&given->given[DEVICE_MEM], index) : 0;
        int32_t growth;

        if (given && !a->o.ignores_disable && roster_is_not_isolated(pod, given->name))
                return UINT64_MAX;
        if (units == 0 || units > dev)
                return 0;
        growth = growth_of(a, pod, given, index);
        units = growth < 0 ? above_u32(units, (uint32_t) -growth) : units + (uint32_t) growth;
        return MIB * visible_mib(card->mib, units < dev ? units : dev, dev);
}

static uint64_t sum_of(const MemoryAudit *a, const RosterPod *pod, const Record *record, uint32_t index) {
        AtOneTime bytes = {0};

        for (size_t i = 0; i < record->n_containers; i++) {
                const RecordContainer *given = &record->containers[i];
                uint64_t slice = slice_of(a, pod, given, index);

                if (slice == UINT64_MAX)
                        return UINT64_MAX;
                at_one_time_add(&bytes, pod, given, slice);
        }
        return at_one_time_sum(&bytes);
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

/* Returns whether it has too much in this census. Reports it where that has lasted. */
static bool check_holding(MemoryAudit *a, Holding *h) {
        const RosterPod *pod = roster_find(a->o.roster, str_from(h->uid));
        const Record *record = records_find(a->o.records, str_from(h->uid));
        MemoryExcess excess;
        bool first;

        if (!pod || !record)
                return false; /* a pod that was given nothing: it is unaccounted */
        h->limit = h->container[0] == '\0'
                           ? sum_of(a, pod, record, h->card)
                           : slice_of(a, pod, record_container(record, str_from(h->container)), h->card);
        if (h->limit >= UINT64_MAX - MEMORY_AUDIT_GRACE || h->bytes <= h->limit + MEMORY_AUDIT_GRACE) {
                hysteresis_lower(&h->found);
                return false;
        }
        first = hysteresis_raise_slow(&h->found);
        if (!h->found.reported)
                return true;
        a->excesses += first;
        excess = excess_of(a, h);
        excess.again = !first;
        a->o.on_excess(a->o.userdata, &excess);
        return true;
}

/* Containers are checked first: the excess of a known container is not reported of its pod as
 * well. */
static void check_all(MemoryAudit *a) {
        Holding *h, *next, *whole;

        HASH_ITER(hh, a->holdings, h, next) {
                if (h->container[0] == '\0' || !check_holding(a, h))
                        continue;
                whole = holding_of(a, h->uid, "", h->card);
                if (whole)
                        whole->container_over = true;
        }
        HASH_ITER(hh, a->holdings, h, next) {
                if (h->container[0] != '\0')
                        continue;
                if (h->has_unknown && !h->container_over)
                        (void) check_holding(a, h);
                else
                        h->found = (Hysteresis){0};
        }
}

static void check_card(MemoryAudit *a, uint32_t card) {
        const UnaccountedCard *c = &a->unaccounted.cards[card];
        UnaccountedMemory found = {.card = card,
                                   .used = c->used,
                                   .pid = c->pid,
                                   .pid_bytes = c->largest,
                                   .holders = &a->holders[card]};
        UnaccountedReport report = unaccounted_check(&a->unaccounted, card, found.holders->n > 0);

        if (report == UNACCOUNTED_NOTHING || !unaccounted_bytes(&a->unaccounted, card, &found.bytes))
                return;
        for (size_t i = 0; i < a->n_seen; i++)
                found.pid_ended |= a->seen[i].left && a->seen[i].card == card && a->seen[i].pid == c->pid;
        a->n_unaccounted += report == UNACCOUNTED_FOUND;
        a->o.on_unaccounted(a->o.userdata, &found);
}

/* Whether a holding without processes can be forgotten. It is kept while it has a score, so that a
 * container cannot evade the report by ending its processes now and then. */
static bool is_over(const MemoryAudit *a, const Holding *h) {
        Str uid = str_from(h->uid);

        if (h->in_census)
                return false;
        return hysteresis_is_over(&h->found) || !roster_find(a->o.roster, uid) ||
               !records_find(a->o.records, uid);
}

static void drop_over(MemoryAudit *a) {
        Holding *h, *next;

        for (h = a->holdings; h; h = h->hh.next)
                h->over = is_over(a, h);
        HASH_ITER(hh, a->holdings, h, next)
        if (h->over)
                drop_holding(a, h);
}

void memory_audit_take(MemoryAudit *a, const CardCensus *census) {
        for (Holding *h = a->holdings; h; h = h->hh.next)
                begin_census(h);
        read_census(a, census);
        drop_over(a);
        if (!share_mode_is_isolated(a->o.inventory->mode))
                return;
        check_all(a);
        for (size_t i = 0; a->o.roster->synced && i < a->o.inventory->cards.n; i++)
                check_card(a, a->o.inventory->cards.cards[i].index);
}

/* ---- paused processes ---- */

typedef struct PausedCount {
        const MemoryAudit *audit;
        uint32_t card;
        bool (*works)(void *userdata, uint32_t card, uint32_t pid);
        void *userdata;
        PausedProcesses ret;
} PausedCount;

static void count_paused(void *userdata, uint32_t pid) {
        PausedCount *c = userdata;

        if (process_state_is_paused(c->audit->o.proc, c->audit->o.cgroups, pid))
                c->ret.n_paused++;
        else
                c->ret.n_work += c->works(c->userdata, c->card, pid);
}

PausedProcesses memory_audit_paused(const MemoryAudit *a, const RosterPod *pod, const char *container,
                                    uint32_t card, bool (*works)(void *userdata, uint32_t card, uint32_t pid),
                                    void *userdata) {
        const ContainerProcesses processes = {a->o.proc, pod, container};
        PausedCount count = {.audit = a, .card = card, .works = works, .userdata = userdata};
        bool any = false;

        for (size_t i = 0; i < a->n_seen; i++) {
                const Seen *seen = &a->seen[i];

                if (seen->card != card || seen->ended || !container_processes_has(&processes, seen->pid))
                        continue;
                any = true;
                count_paused(&count, seen->pid);
        }
        if (!any)
                container_processes_each(&processes, count_paused, &count);
        return count.ret;
}

/* ---- for the metrics ---- */

void memory_audit_each(const MemoryAudit *a, void (*visit)(void *userdata, const ProcessMemory *process),
                       void *userdata) {
        for (size_t i = 0; i < a->n_seen; i++) {
                const Seen *seen = &a->seen[i];
                const RosterPod *pod = roster_find(a->o.roster, str_from(seen->owner.uid));

                visit(userdata, &(ProcessMemory){.pod = pod,
                                                 .uid = seen->owner.uid,
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

                if (h->found.reported && excess.pod && excess.used > excess.limit)
                        visit(userdata, &excess);
        }
}

bool memory_audit_card_used(const MemoryAudit *a, uint32_t card, uint64_t *ret_bytes) {
        if (card >= CARDS_MAX || !a->unaccounted.cards[card].total)
                return false;
        *ret_bytes = a->unaccounted.cards[card].used;
        return true;
}

bool memory_audit_unaccounted(const MemoryAudit *a, uint32_t card, uint64_t *ret_bytes) {
        return unaccounted_bytes(&a->unaccounted, card, ret_bytes);
}

bool memory_audit_unaccounted_lasts(const MemoryAudit *a, uint32_t card) {
        return card < CARDS_MAX && a->unaccounted.cards[card].found.reported;
}

uint64_t memory_audit_excesses(const MemoryAudit *a) {
        return a->excesses;
}

uint64_t memory_audit_unaccounted_count(const MemoryAudit *a) {
        return a->n_unaccounted;
}
