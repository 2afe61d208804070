/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#include <errno.h>
#include <poll.h>

#include "pages.h"
#include "random.h"
#include "step.h"

enum {
        MAX_PROCESSES = 128,
        PER_ROUND = 400, /* attempts of a process */
        BLOCKS = 8,      /* a process holds at once */
        LIMIT = 1 << 20, /* units */
};

/* Outside the slice, in memory that the processes share: what each really holds. */
typedef struct Truth {
        _Atomic uint64_t units; /* never more than is counted */
        _Atomic uint64_t attempts, reserved, refused;
} __attribute__((aligned(64))) Truth;

typedef struct Crowd {
        const CrowdSpec *spec;
        Pages pages;
        SliceUser slice; /* of the supervisor */
        Truth *truths;
        Random random;
        struct Process {
                pid_t pid;
                int done, go; /* one byte each: a round has ended, the next may begin */
                bool waits;
        } processes[MAX_PROCESSES];
        CrowdResult result;
} Crowd;

static Random own_random;
static uint32_t own_kill; /* one step in so many; 0: never */

void slice_step(unsigned line, uint64_t seen) {
        if (own_kill > 0 && random_below(&own_random, own_kill) == 0)
                (void) raise(SIGKILL);
}

/* ---- a process ---- */

static void attempt(SliceUser *s, Truth *truth, uint32_t blocks[BLOCKS]) {
        uint32_t *block = &blocks[random_below(&own_random, BLOCKS)];
        uint32_t units = random_below(&own_random, LIMIT >> random_below(&own_random, 20)) + 1;

        if (*block > 0) {
                (void) atomic_fetch_sub(&truth->units, *block);
                slice_release(s, (uint64_t) *block * SLICE_UNIT);
                *block = 0;
                return;
        }
        (void) atomic_fetch_add(&truth->attempts, 1);
        if (slice_reserve(s, (uint64_t) units * SLICE_UNIT) < 0) {
                (void) atomic_fetch_add(&truth->refused, 1);
                return;
        }
        *block = units;
        (void) atomic_fetch_add(&truth->units, units);
        (void) atomic_fetch_add(&truth->reserved, 1);
}

static void live(const Crowd *c, size_t i, uint64_t seed, int done, int go) {
        uint32_t blocks[BLOCKS] = {0};
        SliceUser s;
        char byte;

        own_random = (Random){seed};
        own_kill = c->spec->kill_steps; /* also while the process takes a row */
        ASSERT_OK(slice_open(c->pages.path, &s));
        for (;;) {
                ASSERT_INT(read(go, &byte, 1), 1);
                for (unsigned n = 0; n < PER_ROUND; n++) {
                        attempt(&s, &c->truths[i], blocks);
                        ASSERT_TRUE(slice_used_units(atomic_load(&s.counters->used)) <= LIMIT);
                }
                ASSERT_INT(write(done, "d", 1), 1);
        }
}

static void start(Crowd *c, size_t i) {
        struct Process *p = &c->processes[i];
        int done[2], go[2];
        uint64_t seed = random_bits(&c->random);

        ASSERT_OK(pipe2(done, O_CLOEXEC));
        ASSERT_OK(pipe2(go, O_CLOEXEC));
        atomic_store(&c->truths[i].units, 0);
        p->pid = pages_fork();
        if (p->pid == 0) {
                live(c, i, seed, done[1], go[0]);
                _exit(1);
        }
        /* The pipe then ends with the process: later children inherit only the other ends. */
        (void) close(done[1]);
        (void) close(go[0]);
        p->done = done[0];
        p->go = go[1];
}

/* ---- the supervisor ---- */

static void bury(Crowd *c, struct Process *p, bool from_outside) {
        int status = pages_wait(p->pid);

        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                TEST_FAIL_("a process of the crowd ended with status %#x", (unsigned) status);
        atomic_store(&c->truths[p - c->processes].units, 0);
        (void) close(p->done);
        (void) close(p->go);
        p->pid = 0;
        if (from_outside)
                c->result.killed_from_outside++;
        else
                c->result.killed_by_step++;
}

/* Another process that has not finished its round. */
static void kill_somebody(Crowd *c) {
        struct Process *p = &c->processes[random_below(&c->random, c->spec->n_processes)];

        if (p->pid == 0 || p->waits)
                return;
        ASSERT_OK(kill(p->pid, SIGKILL));
        bury(c, p, true);
}

static void hear_of(Crowd *c, struct Process *p) {
        char byte;
        ssize_t n = read(p->done, &byte, 1);

        if (n == 1) {
                p->waits = true;
                if (random_below(&c->random, 4) == 0)
                        kill_somebody(c);
                return;
        }
        ASSERT_INT(n, 0);
        bury(c, p, false);
}

static void round_of(Crowd *c) {
        struct pollfd fds[MAX_PROCESSES];
        size_t open;

        for (size_t i = 0; i < c->spec->n_processes; i++) {
                if (c->processes[i].pid == 0)
                        start(c, i);
                c->processes[i].waits = false;
                /* Killed while it took its row, which is noticed below. */
                if (write(c->processes[i].go, "g", 1) < 0)
                        ASSERT_INT(errno, EPIPE);
        }
        do {
                open = 0;
                for (size_t i = 0; i < c->spec->n_processes; i++) {
                        const struct Process *p = &c->processes[i];

                        fds[i] = (struct pollfd){.fd = p->pid > 0 && !p->waits ? p->done : -1,
                                                 .events = POLLIN};
                        open += fds[i].fd >= 0;
                }
                if (open > 0)
                        ASSERT_TRUE(poll(fds, c->spec->n_processes, PAGES_DEADLINE * 1000) > 0);
                for (size_t i = 0; i < c->spec->n_processes && open > 0; i++)
                        if (fds[i].fd >= 0 && fds[i].revents != 0 && c->processes[i].pid > 0)
                                hear_of(c, &c->processes[i]);
        } while (open > 0);
        c->result.rounds++;
}

/* Between rounds no process runs: all sums are equal, to the unit. */
static void take_stock(Crowd *c) {
        SliceReport report;
        uint64_t truth = 0;
        int64_t held = 0;

        for (size_t i = 0; i < c->spec->n_processes; i++)
                truth += atomic_load(&c->truths[i].units) * SLICE_UNIT;
        ASSERT_TRUE(truth <= (uint64_t) LIMIT * SLICE_UNIT);
        pages_reap_to(&c->slice, truth);
        report = pages_report(&c->pages);
        ASSERT_INT(report.dead, 0);
        for (size_t i = 0; i < SLICE_ROWS; i++) {
                ASSERT_TRUE(report.held[i] == 0 || report.alive[i]);
                held += report.held[i];
        }
        ASSERT_INT(held, truth);
        ASSERT_TRUE(report.peak <= (uint64_t) LIMIT * SLICE_UNIT);
}

static void all_go(Crowd *c) {
        for (size_t i = 0; i < c->spec->n_processes; i++) {
                if (c->processes[i].pid > 0) {
                        ASSERT_OK(kill(c->processes[i].pid, SIGKILL));
                        bury(c, &c->processes[i], true);
                }
                c->result.attempts += atomic_load(&c->truths[i].attempts);
                c->result.reserved += atomic_load(&c->truths[i].reserved);
                c->result.refused += atomic_load(&c->truths[i].refused);
        }
        take_stock(c); /* nothing is held */
}

static uint64_t attempts(const Crowd *c) {
        uint64_t sum = 0;

        for (size_t i = 0; i < c->spec->n_processes; i++)
                sum += atomic_load(&c->truths[i].attempts);
        return sum;
}

CrowdResult crowd_run(const CrowdSpec *spec) {
        Crowd c = {.spec = spec, .random = {spec->seed}};
        size_t size = sizeof(Truth) * MAX_PROCESSES;

        ASSERT_TRUE(spec->n_processes > 0 && spec->n_processes <= MAX_PROCESSES);
        (void) signal(SIGPIPE, SIG_IGN);
        c.pages = pages_make((uint64_t) LIMIT * SLICE_UNIT);
        c.truths = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_TRUE(c.truths != MAP_FAILED);
        ASSERT_OK(slice_open(c.pages.path, &c.slice));
        while (attempts(&c) < spec->attempts) {
                round_of(&c);
                take_stock(&c);
        }
        all_go(&c);
        slice_close(&c.slice);
        pages_remove(&c.pages);
        ASSERT_OK(munmap(c.truths, size));
        return c.result;
}
