/* SPDX-License-Identifier: Apache-2.0 */

/* Memory that ended processes left: which container it is charged to, and that none is charged
 * without having it. Pods a, b and c have a slice of 2154 MiB of card 0 each, d has one of card 1.
 * a has a second container without a slice. Processes are a proc of the test's own; the driver's
 * files are those on its file system. */

#include "gpu/cards/simulated_cards.h"
#include "node/audit/memory_audit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "random.h"
#include "scratch.h"
#include "thorough.h"

#define MIB    (UINT64_C(1) << 20)
#define UID(x) "0a0a0a0a-0000-0000-0000-00000000000" x

enum { A, SIDE, B, C, D, CONTAINERS, NO_POD = CONTAINERS };
enum { SECOND = 100, SLICE = 2154, PROCESSES = 64 };

static const struct {
        const char *pod, *uid, *name, *id;
        int card; /* of its slice; -1: none */
} containers[] = {
        [A] = {"a", UID("1"), "main", "aaa", 0}, [SIDE] = {"a", UID("1"), "side", "sss", -1},
        [B] = {"b", UID("2"), "main", "bbb", 0}, [C] = {"c", UID("3"), "main", "ccc", 0},
        [D] = {"d", UID("4"), "main", "ddd", 1},
};

static char home[64], proc[96];
static Roster roster;
static Records records;
static Inventory inventory;
static MemoryAudit *audit;
static uint64_t now; /* ticks since boot */
static CardUsage usage[PROCESSES];
static size_t n_usage;
static unsigned excesses[CONTAINERS]; /* calls in the last census */
static uint64_t used[CONTAINERS];
static size_t n_ended[CONTAINERS];
static unsigned unaccounted;
static bool told[CONTAINERS], told_ended;

static int container_of(const char *uid, const char *id) {
        for (int c = 0; c < CONTAINERS; c++)
                if (strcmp(containers[c].uid, uid) == 0 && strcmp(containers[c].id, id) == 0)
                        return c;
        ASSERT_TRUE(false);
        return -1;
}

static void on_excess(void *userdata, const MemoryExcess *excess) {
        for (int c = 0; c < CONTAINERS; c++)
                if (strcmp(containers[c].uid, excess->pod->uid) == 0 && excess->container &&
                    strcmp(containers[c].name, excess->container) == 0) {
                        excesses[c]++;
                        used[c] = excess->used;
                        n_ended[c] = excess->n_ended;
                        return;
                }
        ASSERT_TRUE(false);
}

static void on_unaccounted(void *userdata, const UnaccountedMemory *found) {
        unaccounted++;
        told_ended = found->pid_ended;
        memset(told, 0, sizeof told);
        for (size_t i = 0; i < found->holders->n; i++)
                if (left_memory_is_told(found->holders, i)) {
                        const ProcessOwner *owner = &found->holders->list[i].owner;
                        bool *t = &told[container_of(owner->uid, owner->container)];

                        ASSERT_FALSE(*t);
                        *t = true;
                }
}

/* ---- pods ---- */

static void add_pod(int c, int beside) {
        char text[1024], status[512];
        DeviceId ids[2];
        int n;

        n = snprintf(status, sizeof status, "{\"name\":\"%s\",\"containerID\":\"containerd://%s\"}",
                     containers[c].name, containers[c].id);
        if (beside >= 0)
                (void) snprintf(status + n, sizeof status - (size_t) n,
                                ",{\"name\":\"%s\",\"containerID\":\"containerd://%s\"}",
                                containers[beside].name, containers[beside].id);
        (void) snprintf(text, sizeof text,
                        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"%s\"},\"spec\":{"
                        "\"nodeName\":\"n\",\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"
                        "\"aliyun.com/gpu-mem\":\"2\"}}}]},\"status\":{\"containerStatuses\":[%s]}}",
                        containers[c].pod, containers[c].uid, status);
        ASSERT_OK(roster_pod(&roster, REFLECTOR_ADDED, str_from(text)));
        for (uint32_t i = 0; i < 2; i++)
                ids[i] = device_id((uint32_t) containers[c].card, (uint32_t) c * 2 + i);
        ASSERT_OK(records_give(&records, str_from(containers[c].uid), STR("d"), str_from(containers[c].pod),
                               STR("main"), false, DEVICE_MEM, &(DeviceSet){ids, 2}));
}

static void remove_pod(int c) {
        records_drop(&records, records_find(&records, str_from(containers[c].uid)));
}

static void begin(void) {
        Fault fault = FAULT_NULL;
        CardList cards = {0};
        char path[96];

        (void) snprintf(home, sizeof home, "/tmp/aliquot-left-XXXXXX");
        scratch_make(home);
        (void) snprintf(proc, sizeof proc, "%s/proc", home);
        (void) snprintf(path, sizeof path, "%s/pods", home);
        ASSERT_OK(mkdir(proc, 0755));
        ASSERT_OK(roster_init(&roster, "n"));
        roster.synced = true;
        ASSERT_OK(records_open(&records, path, &fault));
        add_pod(A, SIDE);
        add_pod(B, -1);
        add_pod(C, -1);
        add_pod(D, -1);
        ASSERT_OK(cards_simulate(STR("2xTesla-V100-SXM2-16GB:16160MiB"), STR("n"), &cards, &fault));
        ASSERT_OK(inventory_set(&inventory, &cards, SHARE_MODE_CORE_MEM, MEMORY_UNIT_GIB));
        card_list_done(&cards);
        ASSERT_OK(memory_audit_new(&(MemoryAuditOptions){.roster = &roster,
                                                         .records = &records,
                                                         .inventory = &inventory,
                                                         .proc = proc,
                                                         .simulated = home,
                                                         .on_excess = on_excess,
                                                         .on_unaccounted = on_unaccounted},
                                   &audit));
        now = 1000 * SECOND;
        n_usage = unaccounted = 0;
        memset(told, 0, sizeof told);
        told_ended = false;
}

static void end(void) {
        audit = memory_audit_free(audit);
        inventory_done(&inventory);
        records_done(&records);
        roster_done(&roster);
        scratch_remove(home);
}

/* ---- processes ---- */

static void write_text(const char *path, const char *text) {
        FILE *file = fopen(path, "we");

        ASSERT_TRUE(file && fputs(text, file) >= 0);
        ASSERT_OK(fclose(file));
}

static void set_stat(unsigned pid, char state, unsigned parent, uint64_t start) {
        char path[160], text[256];

        (void) snprintf(path, sizeof path, "%s/%u/stat", proc, pid);
        (void) snprintf(text, sizeof text, "%u (a) b) %c %u 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %llu 0\n", pid,
                        state, parent, (unsigned long long) start);
        write_text(path, text);
}

static void set_parent(unsigned pid, unsigned parent, uint64_t start) {
        set_stat(pid, 'S', parent, start);
}

/* A thread with its descriptors. opens: a file of the driver, too. */
static void add_thread(unsigned pid, unsigned thread, bool opens) {
        char path[160], link[192];

        (void) snprintf(path, sizeof path, "%s/%u/task", proc, pid);
        (void) mkdir(path, 0755);
        (void) snprintf(path, sizeof path, "%s/%u/task/%u", proc, pid, thread);
        ASSERT_OK(mkdir(path, 0755));
        (void) snprintf(path, sizeof path, "%s/%u/task/%u/fd", proc, pid, thread);
        ASSERT_OK(mkdir(path, 0755));
        (void) snprintf(link, sizeof link, "%s/0", path);
        ASSERT_OK(symlink("/dev/null", link));
        (void) snprintf(link, sizeof link, "%s/7", path);
        if (opens)
                ASSERT_OK(symlink(home, link));
}

static void add_process(unsigned pid, int c, uint64_t start, bool opens) {
        char path[160];

        if (c == NO_POD) {
                (void) snprintf(path, sizeof path, "%s/%u", proc, pid);
                ASSERT_OK(mkdir(path, 0755));
                (void) snprintf(path, sizeof path, "%s/%u/cgroup", proc, pid);
                write_text(path, "0::/system.slice/x.service\n");
        } else
                scratch_process(proc, pid, containers[c].uid, containers[c].id);
        set_parent(pid, 1, start);
        add_thread(pid, pid, opens);
}

static void remove_process(unsigned pid) {
        char path[128];

        (void) snprintf(path, sizeof path, "%s/%u", proc, pid);
        scratch_remove(path);
}

/* ---- the driver ---- */

static void names(unsigned pid, uint64_t mib) {
        ASSERT_TRUE(n_usage < PROCESSES);
        usage[n_usage] = (CardUsage){.pid = pid, .bytes = mib * MIB};
        (void) snprintf(usage[n_usage].uuid, sizeof usage[n_usage].uuid, "%s", inventory.cards.cards[0].uuid);
        n_usage++;
}

/* One second passes, and then the driver says this. */
static void census(void) {
        CardTotal total = {.used = 0};

        now += SECOND;
        (void) snprintf(total.uuid, sizeof total.uuid, "%s", inventory.cards.cards[0].uuid);
        for (size_t i = 0; i < n_usage; i++)
                total.used += usage[i].bytes;
        memset(excesses, 0, sizeof excesses);
        memory_audit_take(audit, &(CardCensus){.usage = usage,
                                               .n = n_usage,
                                               .totals = &total,
                                               .n_totals = 1,
                                               .asked = now * (USEC_PER_SEC / SECOND),
                                               .came = now * (USEC_PER_SEC / SECOND),
                                               .untold = ""});
}

static void censuses(unsigned n) {
        while (n-- > 0)
                census();
}

static unsigned all_excesses(void) {
        unsigned n = 0;

        for (int c = 0; c < CONTAINERS; c++)
                n += excesses[c];
        return n;
}

/* ---- one after the other ---- */

enum { DEAD = 500, HEIR = 501, OTHER = 502 };

static void expect_charged(int c) {
        censuses(3);
        ASSERT_INT(excesses[c], 1);
        ASSERT_INT(all_excesses(), 1);
        ASSERT_INT(used[c] / MIB, 4000);
        ASSERT_INT(n_ended[c], 1);
        ASSERT_INT(unaccounted, 0);
}

static void expect_told(unsigned mask) {
        censuses(4);
        ASSERT_INT(all_excesses(), 0);
        ASSERT_INT(unaccounted, 1);
        ASSERT_TRUE(told_ended);
        for (int c = 0; c < CONTAINERS; c++)
                ASSERT_INT(told[c], (mask >> c & 1) != 0);
}

static void the_child_is_charged(void) {
        begin();
        census();
        add_process(HEIR, A, now + SECOND / 2, true);
        names(DEAD, 4000);
        expect_charged(A);
        census();
        ASSERT_INT(excesses[A], 1); /* and while it lasts */
        end();
}

/* The descriptors of a first thread that has ended are gone, and another one has them. */
static void a_thread_is_a_holder(void) {
        begin();
        census();
        add_process(HEIR, A, now + SECOND / 2, false);
        add_thread(HEIR, HEIR + 1, true);
        names(DEAD, 4000);
        expect_charged(A);
        end();
}

static void a_container_without_a_slice_is_charged(void) {
        begin();
        census();
        add_process(HEIR, SIDE, now + SECOND / 2, true);
        names(DEAD, 4000);
        expect_charged(SIDE);
        end();
}

static void several_are_told(void) {
        begin();
        census();
        add_process(HEIR, A, now + SECOND / 2, true);
        add_process(OTHER, B, now + SECOND / 2, true);
        add_process(503, C, now + SECOND / 2, false);
        add_process(504, D, now + SECOND / 2, true);
        add_process(505, NO_POD, now + SECOND / 2, true);
        names(DEAD, 4000);
        expect_told(1 << A | 1 << B);
        end();
}

static void none_is_told(void) {
        begin();
        census();
        add_process(OTHER, D, now + SECOND / 2, true);
        names(DEAD, 4000);
        expect_told(0);
        end();
}

/* It began before the memory did, so it may be another container's. */
static void an_older_process_is_told(void) {
        begin();
        add_process(HEIR, A, 900 * SECOND, true);
        census();
        census();
        names(DEAD, 4000);
        expect_told(1 << A);
        end();
}

/* The agent has just started, and does not know when the memory did. */
static void after_a_restart_it_is_told(void) {
        begin();
        add_process(HEIR, A, now + SECOND / 2, true);
        names(DEAD, 4000);
        expect_told(1 << A);
        end();
}

static void on_a_card_of_its_own_it_is_charged(void) {
        begin();
        remove_pod(B);
        remove_pod(C);
        add_process(HEIR, SIDE, 900 * SECOND, true);
        names(DEAD, 4000);
        expect_charged(SIDE);
        end();
}

/* Workers have the files of the process that made them, which the driver names. */
static void workers_are_no_holders(void) {
        begin();
        add_process(600, B, 900 * SECOND, true);
        add_process(601, B, 900 * SECOND, false);
        add_process(602, B, 900 * SECOND, true);
        set_parent(601, 600, 900 * SECOND);
        set_parent(602, 601, now + SECOND / 2);
        census();
        add_process(HEIR, A, now + SECOND / 2, true);
        names(600, 2000);
        names(DEAD, 4000);
        expect_charged(A);
        end();
        begin();
        add_process(600, B, 900 * SECOND, true);
        add_process(602, B, 900 * SECOND, true);
        census();
        set_parent(602, 600, now + SECOND / 2);
        names(600, 2000);
        names(DEAD, 4000);
        expect_told(1 << B); /* without others they are told, and not charged */
        end();
}

/* Each holder makes the next one and ends. */
static void passing_it_on_ends_no_charge(void) {
        begin();
        census();
        for (unsigned i = 0; i < 6; i++) {
                add_process(HEIR + i, A, now + SECOND / 2, true);
                n_usage = 0;
                names(DEAD, 4000);
                census();
                ASSERT_INT(excesses[A], i >= 2);
                remove_process(HEIR + i);
        }
        add_process(700, B, now + SECOND / 2, true);
        census();
        ASSERT_INT(all_excesses(), 0); /* now another one may have it */
        end();
}

/* Makers that allocate a part each, and end: all of it is one container's. */
static void a_relay_of_makers_is_charged(void) {
        begin();
        census();
        for (unsigned i = 0; i < 8; i++) {
                add_process(HEIR + i, A, now + SECOND / 2, true);
                names(400 + i, 600);
                census();
                remove_process(HEIR + i);
        }
        ASSERT_INT(excesses[A], 1);
        ASSERT_INT(used[A] / MIB, 8 * 600);
        ASSERT_INT(n_ended[A], 8);
        ASSERT_INT(unaccounted, 0);
        end();
}

/* A process takes another container's file, allocates, is seen, and ends. */
static void taken_and_ended(int c) {
        begin();
        add_process(OTHER, B, 900 * SECOND, true); /* another pod's monitor */
        add_process(HEIR, A, 900 * SECOND, true);
        add_process(DEAD, c, 900 * SECOND, true);
        names(DEAD, 4000);
        census();
        remove_process(DEAD);
}

static void the_container_that_gave_its_file_is_charged(void) {
        taken_and_ended(SIDE);
        expect_charged(A);
        end();
        taken_and_ended(SIDE);
        n_usage = 0; /* also where a process of the pod is named by the driver, but not that one */
        names(DEAD, 4000);
        add_process(600, A, 900 * SECOND, true);
        names(600, 100);
        censuses(3);
        ASSERT_INT(excesses[A], 1);
        ASSERT_INT(used[A] / MIB, 4100);
        end();
}

/* It has ended, and its parent does not wait for it: its cgroup is still there. */
static void a_process_that_is_not_waited_for_has_ended(void) {
        begin();
        add_process(OTHER, B, 900 * SECOND, true);
        add_process(DEAD, A, 900 * SECOND, false);
        set_stat(DEAD, 'Z', 1, 900 * SECOND);
        names(DEAD, 4000);
        expect_charged(A);
        add_thread(DEAD, DEAD + 1, true); /* a thread of it goes on */
        census();
        ASSERT_INT(excesses[A], 1);
        ASSERT_INT(n_ended[A], 0);
        end();
}

static void others_of_the_pod_are_not_charged(void) {
        taken_and_ended(SIDE);
        add_process(600, SIDE, 900 * SECOND, true); /* it may have the file itself */
        expect_charged(SIDE);
        end();
        taken_and_ended(SIDE);
        remove_process(HEIR); /* it is with none of the pod that can be seen */
        expect_charged(SIDE);
        end();
        taken_and_ended(C);
        expect_charged(C); /* never another pod */
        end();
        taken_and_ended(SIDE);
        names(HEIR, 100); /* the driver names it: it may have a file of its own alone */
        censuses(3);
        ASSERT_INT(excesses[SIDE], 1);
        ASSERT_INT(all_excesses(), 1);
        end();
}

static void a_reused_pid_has_ended(void) {
        begin();
        census();
        add_process(DEAD, NO_POD, now + SECOND, false);
        add_process(HEIR, A, now + SECOND / 2, true);
        names(DEAD, 4000);
        expect_charged(A);
        end();
        begin(); /* but not where that process has files of the driver */
        census();
        add_process(DEAD, NO_POD, now + SECOND, true);
        add_process(HEIR, A, now + SECOND / 2, true);
        names(DEAD, 4000);
        censuses(4);
        ASSERT_INT(all_excesses(), 0);
        ASSERT_INT(unaccounted, 1);
        ASSERT_FALSE(told_ended);
        end();
}

/* Within its slice the container may have it. */
static void what_fits_is_no_excess(void) {
        begin();
        census();
        add_process(HEIR, A, now + SECOND / 2, true);
        names(DEAD, SLICE);
        censuses(5);
        ASSERT_INT(all_excesses(), 0);
        ASSERT_INT(unaccounted, 0);
        end();
}

/* ---- random ---- */

static Random random_;

static unsigned below(size_t n) {
        return random_below(&random_, n);
}

typedef enum Way {
        WAY_CHILD,  /* a child has the memory's file */
        WAY_PASSED, /* a process that was there before */
        WAY_HIDDEN, /* none that can be seen */
        WAY_NAMED,  /* one that the driver names */
        WAYS_,
} Way;

typedef struct Process {
        unsigned pid;
        int container;
        bool opens;
        bool worker;    /* of a process that the driver names */
        uint64_t named; /* MiB; 0: not by the driver */
        unsigned holds; /* the ended process whose memory it has; 0: none */
} Process;

typedef struct Run {
        Process list[PROCESSES];
        size_t n;
        unsigned next_pid;
        unsigned dead[8]; /* that the driver names; 0: none */
        uint64_t mib[8];
        int maker[8];    /* the container that has it */
        bool hidden;     /* of some the holder cannot be told from a process without */
        unsigned opened; /* how many censuses ago a process with the driver's files began */
        unsigned n_killed, n_made;
} Run;

static Process *start(Run *r, int c, bool opens, uint64_t named) {
        Process *p;

        if (r->n == PROCESSES / 2)
                return NULL;
        p = &r->list[r->n++];
        *p = (Process){.pid = r->next_pid++, .container = c, .opens = opens, .named = named};
        if (opens)
                r->opened = 0;
        add_process(p->pid, c, now + 1 + below(SECOND - 1), opens);
        return p;
}

/* Memory is gone with its last holder. */
static void stop(Run *r, size_t i) {
        unsigned holds = r->list[i].holds;

        remove_process(r->list[i].pid);
        r->list[i] = r->list[--r->n];
        for (size_t k = 0; k < r->n; k++)
                if (holds == 0 || r->list[k].holds == holds)
                        return;
        for (size_t k = 0; k < ELEMENTSOF(r->dead); k++)
                if (r->dead[k] == holds)
                        r->dead[k] = 0;
}

/* A maker allocates and ends between two censuses. */
static void make(Run *r) {
        Way way = (Way) below(WAYS_);
        int c = (int) below(D);
        size_t slot = below(ELEMENTSOF(r->dead));
        Process *p = NULL;

        if (r->dead[slot] != 0 || (way != WAY_CHILD && r->opened < 2))
                return;
        if (way == WAY_PASSED || way == WAY_NAMED)
                for (size_t i = 0; i < r->n; i++)
                        if (r->list[i].container == c && r->list[i].holds == 0 &&
                            (r->list[i].named > 0) == (way == WAY_NAMED) && r->list[i].opens)
                                p = &r->list[i];
        if (way == WAY_CHILD)
                p = start(r, c, true, 0);
        if (way == WAY_HIDDEN)
                p = start(r, c, false, 0);
        if (!p)
                return;
        r->dead[slot] = p->holds = r->next_pid++;
        r->mib[slot] = 500 + below(4000);
        r->maker[slot] = c;
        r->hidden |= way == WAY_HIDDEN || way == WAY_NAMED || p->worker;
        r->n_made++;
}

/* A process of another kind: idle, a monitor, a program, a worker of a program. One that opens the
 * driver's files in the second in which memory with a hidden holder was made cannot be told from
 * that holder, so none does (node/audit/left_memory.h). */
static void start_any(Run *r) {
        int c = (int) below(CONTAINERS + 1);
        size_t i = r->n > 0 ? below(r->n) : 0;
        Process parent = r->n > 0 ? r->list[i] : (Process){0}, *p;

        switch (below(4)) {
        case 0:
                (void) start(r, c, false, 0);
                return;
        case 1:
                if (!r->hidden)
                        (void) start(r, c, true, 0);
                return;
        case 2:
                if (!r->hidden)
                        (void) start(r, c, true, 1 + below(SLICE / 4));
                return;
        default:
                if (parent.named == 0)
                        return;
                p = start(r, parent.container, true, 0);
                if (!p)
                        return;
                p->worker = true;
                set_parent(p->pid, parent.pid, now + SECOND / 2);
        }
}

/* Whether the container has memory of an ended process, or too much of its own. */
static bool is_guilty(const Run *r, int c) {
        uint64_t own = 0;

        for (size_t i = 0; i < ELEMENTSOF(r->dead); i++)
                if (r->dead[i] != 0 && r->maker[i] == c)
                        return true;
        for (size_t i = 0; i < r->n; i++)
                own += r->list[i].container == c ? r->list[i].named : 0;
        return own > (containers[c].card == 0 ? SLICE : 0);
}

static void kill_container(Run *r, int c) {
        for (size_t i = r->n; i-- > 0;)
                if (r->list[i].container == c)
                        stop(r, i);
        r->n_killed++;
}

static void one_census(Run *r) {
        n_usage = 0;
        for (size_t i = 0; i < r->n; i++)
                if (r->list[i].named > 0)
                        names(r->list[i].pid, r->list[i].named);
        for (size_t i = 0; i < ELEMENTSOF(r->dead); i++)
                if (r->dead[i] != 0)
                        names(r->dead[i], r->mib[i]);
        census();
        r->opened++;
        for (int c = 0; c < CONTAINERS; c++)
                if (excesses[c] > 0) {
                        ASSERT_TRUE(is_guilty(r, c));
                        kill_container(r, c);
                }
}

static unsigned one_run(unsigned *ret_made) {
        Run r = {.next_pid = 1000};

        begin();
        for (int i = 0; i < 6; i++)
                start_any(&r);
        census();
        census();
        for (int i = 0; i < 16; i++) {
                if (below(3) == 0)
                        make(&r);
                else if (below(2) == 0)
                        start_any(&r);
                else if (r.n > 0)
                        stop(&r, below(r.n));
                one_census(&r);
        }
        end();
        *ret_made += r.n_made;
        return r.n_killed;
}

static void no_innocent_container_is_charged(void) {
        unsigned runs = few_or_all(60, 1000), killed = 0, made = 0;

        random_ = (Random){30};
        for (unsigned i = 0; i < runs; i++)
                killed += one_run(&made);
        (void) printf("%u runs: %u times memory was left, %u containers were killed, none without it\n", runs,
                      made, killed);
        ASSERT_TRUE(killed > 0);
}

int main(void) {
        return TEST_MAIN(TEST(the_child_is_charged), TEST(a_thread_is_a_holder),
                         TEST(a_container_without_a_slice_is_charged), TEST(several_are_told),
                         TEST(none_is_told), TEST(an_older_process_is_told), TEST(after_a_restart_it_is_told),
                         TEST(on_a_card_of_its_own_it_is_charged), TEST(workers_are_no_holders),
                         TEST(the_container_that_gave_its_file_is_charged),
                         TEST(others_of_the_pod_are_not_charged),
                         TEST(a_process_that_is_not_waited_for_has_ended), TEST(passing_it_on_ends_no_charge),
                         TEST(a_relay_of_makers_is_charged), TEST(a_reused_pid_has_ended),
                         TEST(what_fits_is_no_excess), TEST(no_innocent_container_is_charged));
}
