/* SPDX-License-Identifier: Apache-2.0 */

/* The limits of a node against a driver that answers in its order, late, wrong or never, while pods
 * come and go in any order. A driver with an account of its own ("misc"), or with the files of the
 * kernel's controller. Pods are made again with the same UID, as static pods are. */

#include <errno.h>

#include "devices.h"
#include "gpu/cards/limit_queue.h"
#include "gpu/cards/nvml.h"
#include "node/kubelet/pod_processes.h"
#include "node/limits/limit_trial.h"
#include "node/limits/memory_limits.h"
#include "node/limits/pod_limit.h"
#include "random.h"
#include "scratch.h"
#include "thorough.h"

enum { PODS = 12, STEPS = 20000, SEEDS = 8, TURNS_TO_REST = 70, NO_ENTRIES = 3, NO_PATH = 17 };

typedef struct Entry { /* of the driver, for a cgroup */
        bool exists, ours;
        uint64_t hard, used;
} Entry;

typedef struct TestPod {
        char uid[16];
        RosterPod known;
        RosterContainer container;
        bool in_roster, cgroup, waits;
        uint64_t inherited; /* charged to its cgroup before it */
        Entry entry;
} TestPod;

static Random randomness;
static TestPod pods[PODS];
static Entry left[PODS]; /* of removed cgroups */
static size_t n_left;
static Inventory inventory;
static Records records;
static Roster roster;
static MemoryLimits *limits;
static bool dmem, ready, calm, refuses;

/* ---- what stands in for other parts ---- */

static sd_event_time_handler_t on_turn;
static LimitTrialDone trial;
static LimitQueue queue;

typedef struct Asked {
        uint32_t number;
        CardLimit limit;
} Asked;

static Asked asked[LIMIT_QUEUE_MAX * 2];
static ProbeReport answers[LIMIT_QUEUE_MAX * 2];
static size_t n_asked, n_answers;

int sd_event_add_time(sd_event *e, sd_event_source **s, clockid_t clock, uint64_t usec, uint64_t accuracy,
                      sd_event_time_handler_t callback, void *userdata) {
        on_turn = callback;
        return 0;
}

int sd_event_source_set_enabled(sd_event_source *s, int enabled) {
        return 0;
}

int sd_event_source_set_time_relative(sd_event_source *s, uint64_t usec) {
        return 0;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *s) {
        return NULL;
}

int limit_trial_new(CardSource *source, const CardList *cards, const char *cgroup_root, LimitTrialDone done,
                    void *userdata, LimitTrial **ret) {
        trial = done;
        return 0;
}

LimitTrial *limit_trial_free(LimitTrial *t) {
        trial = NULL;
        return NULL;
}

bool card_source_is_ready(const CardSource *s) {
        return ready;
}

int card_source_limit(CardSource *s, const CardLimit *limit, CardLimitDone done, void *userdata,
                      uint32_t *ret_request) {
        Asked q = {.limit = *limit};

        if (!ready || n_asked == ELEMENTSOF(asked) || (!calm && random_below(&randomness, 200) == 0) ||
            limit_queue_add(&queue, done, userdata, 1, &q.number) < 0)
                return -EAGAIN;
        asked[n_asked++] = q;
        *ret_request = q.number;
        return 0;
}

void card_source_cancel_limit(CardSource *s, uint32_t request) {
        limit_queue_cancel(&queue, request);
}

static TestPod *find_pod(Str uid) {
        for (size_t i = 0; i < PODS; i++)
                if (str_eq(uid, str_from(pods[i].uid)))
                        return &pods[i];
        abort();
}

int pod_processes_path(const char *root, Str uid, char *ret, size_t size) {
        (void) snprintf(ret, size, "/%.*s", STR_ARG(uid));
        return find_pod(uid)->cgroup ? 0 : -ENOENT;
}

/* ---- the driver ---- */

static uint32_t set_limit(Entry *e, uint64_t hard) {
        if (hard < e->used)
                return dmem ? 0 : NVML_ERROR_INVALID_ARGUMENT;
        *e = (Entry){true, true, hard, e->used};
        return 0;
}

static void take_request(bool answered) {
        ProbeReport a = {0};
        Asked q = asked[0];
        TestPod *p;

        if (n_asked == 0)
                return;
        memmove(asked, asked + 1, --n_asked * sizeof *asked);
        p = find_pod(str_from(strrchr(q.limit.path, '/') + 1));
        a.request = q.number;
        a.number = !p->cgroup                                     ? NO_PATH
                   : refuses && random_below(&randomness, 2) == 0 ? 999
                   : q.limit.set                                  ? set_limit(&p->entry, q.limit.hard)
                                                                  : 0;
        if (a.number == 0 && !p->entry.exists && !dmem)
                a.number = NO_ENTRIES;
        a.value = p->entry.exists ? p->entry.hard : CARD_LIMIT_NONE;
        a.used = p->entry.used;
        if (answered && n_answers < ELEMENTSOF(answers))
                answers[n_answers++] = a;
}

static void give_answer(void) {
        ProbeReport a = answers[0];

        if (n_answers == 0)
                return;
        memmove(answers, answers + 1, --n_answers * sizeof *answers);
        if (a.number != 0)
                (void) snprintf(a.text, sizeof a.text, "code %u", a.number);
        limit_queue_take(&queue, &a);
}

static void begin_session(void) {
        ready = true;
        memory_limits_session(limits);
}

/* What it was asked last may be done all the same. */
static void end_child(void) {
        if (random_below(&randomness, 2) == 0)
                take_request(false);
        n_asked = n_answers = 0;
        ready = false;
        limit_queue_fail(&queue);
}

static void end_trial(bool good) {
        const Fault fault = {.text = "the driver cannot"};

        if (trial)
                trial(limits, dmem, good ? NULL : &fault);
}

/* ---- pods ---- */

static bool is_isolated(void) {
        const Fault *why;
        const char *backend;

        return share_mode_is_isolated(inventory.mode) &&
               memory_limits_mechanism(limits, &backend, &why) == MEMORY_BOTH;
}

static Record *record_of(const TestPod *p) {
        return records_find(&records, str_from(p->uid));
}

static void set_known(TestPod *p, bool known) {
        if (known && !p->in_roster)
                HASH_ADD_KEYPTR(hh, roster.pods, p->known.uid, strlen(p->known.uid), &p->known);
        else if (!known && p->in_roster)
                HASH_DEL(roster.pods, &p->known);
        p->in_roster = known;
}

static uint64_t sum_of(const TestPod *p) {
        PodLimit sum = {.n = 0};

        ASSERT_TRUE(pod_limit_want(&sum, &inventory, record_of(p), false));
        return sum.cards[0].wanted;
}

static uint64_t limit_of(const TestPod *p) {
        return p->entry.exists ? p->entry.hard : CARD_LIMIT_NONE;
}

static void remove_cgroup(TestPod *p) {
        if (p->entry.exists && n_left < PODS)
                left[n_left++] = p->entry;
        p->entry = (Entry){.hard = 0};
        p->cgroup = false;
}

static void make_pod(TestPod *p) {
        SET(devices, "0-0", "0-1", "0-2", "0-3");

        remove_cgroup(p);
        if (n_left > 0 && !dmem && random_below(&randomness, 2) == 0)
                p->entry = left[--n_left];
        p->entry.ours = false;
        p->inherited = p->entry.used;
        p->cgroup = true;
        devices.n = 1 + random_below(&randomness, 4);
        ASSERT_OK(records_give(&records, str_from(p->uid), STR("ns"), STR("n"), STR("main"), false,
                               DEVICE_MEM, &devices));
        record_of(p)->saved = true;
        set_known(p, true);
}

static void end_pod(TestPod *p) {
        Record *record = record_of(p);

        p->waits = false;
        set_known(p, false);
        if (!record)
                return;
        memory_limits_end(limits, record->uid);
        records_drop(&records, record);
}

/* What was charged before is added, unless the agent has forgotten it. */
static bool is_limited(const TestPod *p) {
        return limit_of(p) >= sum_of(p) && limit_of(p) <= sum_of(p) + p->inherited;
}

static void start(TestPod *p) {
        static unsigned depth;
        Fault fault = FAULT_NULL;
        int r;

        p->waits = false;
        if (!calm && depth == 0 && random_below(&randomness, 12) == 0) { /* it may end others */
                depth++;
                end_pod(&pods[random_below(&randomness, PODS)]);
                depth--;
        }
        if (!record_of(p) || !p->cgroup)
                return;
        r = memory_limits_start(limits, record_of(p), &fault);
        p->waits = r == MEMORY_LIMITS_E_ASKED || r == MEMORY_LIMITS_E_LATER;
        ASSERT_TRUE(r >= 0 && (r != MEMORY_LIMITS_E_REFUSED || share_mode_is_isolated(inventory.mode)));
        if (r != 0)
                return;
        record_set_started(record_of(p), STR("main"), true);
        record_of(p)->saved = true;
        if (is_isolated())
                ASSERT_TRUE(is_limited(p));
}

static void on_start(void *userdata, const char *uid) {
        TestPod *p = find_pod(str_from(uid));

        if (p->waits)
                start(p);
}

static void on_change(void *userdata) {
}

static void on_note(void *userdata, Str uid, const Fault *note) {
}

/* ---- orders of events ---- */

static void change_pod(TestPod *p) {
        Record *record = record_of(p);

        switch (random_below(&randomness, 8)) {
        case 0:
        case 1:
                if (!record)
                        make_pod(p);
                break;
        case 2:
        case 3:
                if (record)
                        start(p);
                break;
        case 4:
                p->waits = false; /* the kubelet gives up */
                break;
        case 5:
                if (random_below(&randomness, 2) == 0)
                        end_pod(p);
                else if (!record)
                        remove_cgroup(p);
                break;
        case 6:
                if (record)
                        record_set_size(record, STR("main"), random_below(&randomness, 5), 0);
                if (record)
                        record->saved = true;
                break;
        default:
                if (record && record_has_started(record)) {
                        uint64_t used = (uint64_t) random_below(&randomness, 6000) << 20;

                        p->entry.used = used < limit_of(p) ? used : limit_of(p);
                }
        }
}

static void change_node(void) {
        switch (random_below(&randomness, 8)) {
        case 0:
                memory_limits_want(limits, random_below(&randomness, 3) > 0);
                break;
        case 1:
                end_child();
                break;
        case 2:
                refuses = random_below(&randomness, 3) == 0;
                break;
        case 3: /* the mode changes once no slice is held */
                for (size_t i = 0; i < PODS; i++)
                        end_pod(&pods[i]);
                inventory.mode = inventory.mode == SHARE_MODE_CGPU ? SHARE_MODE_SHARE : SHARE_MODE_CGPU;
                break;
        default:
                end_trial(random_below(&randomness, 8) > 0);
        }
}

static void go_on(void) {
        switch (random_below(&randomness, 8)) {
        case 0:
        case 1:
                take_request(true);
                break;
        case 2:
        case 3:
                give_answer();
                break;
        case 4:
                (void) on_turn(NULL, 0, limits);
                break;
        case 5:
                if (random_below(&randomness, 10) == 0)
                        change_node();
                else if (!ready)
                        begin_session();
                break;
        default:
                change_pod(&pods[random_below(&randomness, PODS)]);
        }
}

static void answer_all(void) {
        while (n_asked > 0 || n_answers > 0 || trial) {
                take_request(true);
                give_answer();
                end_trial(true);
        }
}

/* Nothing is used any more, and the driver answers. */
static void come_to_rest(void) {
        calm = true;
        refuses = false;
        for (size_t i = 0; i < PODS; i++)
                pods[i].entry.used = 0;
        if (!ready)
                begin_session();
        for (int turn = 0; turn < TURNS_TO_REST; turn++) {
                (void) on_turn(NULL, 0, limits);
                for (size_t i = 0; i < PODS; i++)
                        if (pods[i].waits)
                                start(&pods[i]);
                answer_all();
        }
        calm = false;
}

static void check_limits(void) {
        const Fault *why;
        const char *backend;
        MemoryMechanism mechanism = memory_limits_mechanism(limits, &backend, &why);
        size_t n = 0;

        for (size_t i = 0; i < PODS; i++) {
                TestPod *p = &pods[i];

                ASSERT_FALSE(p->waits);
                n += record_of(p) && is_isolated();
                if (record_of(p) && is_isolated())
                        ASSERT_TRUE(is_limited(p));
                else if (!record_of(p) || mechanism == MEMORY_PRELOAD)
                        ASSERT_TRUE(!p->entry.ours || limit_of(p) == CARD_LIMIT_NONE);
        }
        if (is_isolated() || mechanism == MEMORY_PRELOAD)
                ASSERT_INT(memory_limits_counters(limits).pods, n);
        ASSERT_INT(memory_limits_counters(limits).restored, 0); /* there is no other writer */
}

static void run(uint64_t seed) {
        const MemoryLimitsOptions options = {.inventory = &inventory,
                                             .roster = &roster,
                                             .records = &records,
                                             .cgroup_root = "/",
                                             .both = true,
                                             .on_change = on_change,
                                             .on_start = on_start,
                                             .on_restored = on_note,
                                             .on_failed = on_note};

        randomness.state = seed;
        ASSERT_OK(memory_limits_new(&options, &limits));
        memory_limits_set_source(limits, (CardSource *) (void *) &queue); /* never looked into */
        begin_session();
        for (int i = 0; i < STEPS; i++) {
                go_on();
                if (random_below(&randomness, 2000) > 0)
                        continue;
                come_to_rest();
                check_limits();
        }
        for (size_t i = 0; i < PODS; i++)
                end_pod(&pods[i]);
        come_to_rest();
        check_limits();
        for (size_t i = 0; i < PODS; i++)
                remove_cgroup(&pods[i]);
        limits = memory_limits_free(limits);
        ready = false;
        n_asked = n_answers = n_left = 0;
}

static void run_all(bool with_dmem) {
        dmem = with_dmem;
        for (unsigned seed = 0; seed < few_or_all(SEEDS, 100 * SEEDS); seed++)
                run(seed);
}

static void keeps_an_account(void) {
        run_all(false);
}

static void keeps_files_of_the_kernel(void) {
        run_all(true);
}

int main(void) {
        CardList cards = {0};
        char directory[] = "/tmp/aliquot-limits-XXXXXX";
        int r;

        scratch_make(directory);
        ASSERT_OK(records_open(&records, directory, NULL));
        ASSERT_OK(card_list_copy(
                &(CardList){.cards = (MachineCard[]){{.mib = 16160, .uuid = "GPU-a", .healthy = true}},
                            .n = 1},
                &cards));
        ASSERT_OK(inventory_set(&inventory, &cards, SHARE_MODE_CGPU, (MemoryUnit){.mib = 1024}));
        for (size_t i = 0; i < PODS; i++) {
                (void) snprintf(pods[i].uid, sizeof pods[i].uid, "uid-%zu", i);
                pods[i].known.uid = pods[i].uid;
                pods[i].known.containers = &pods[i].container;
                pods[i].known.n_containers = 1;
        }
        r = TEST_MAIN(TEST(keeps_an_account), TEST(keeps_files_of_the_kernel));
        records_done(&records);
        inventory_done(&inventory);
        card_list_done(&cards);
        scratch_remove(directory);
        return r;
}
