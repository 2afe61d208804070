/* SPDX-License-Identifier: Apache-2.0 */

/* A process is killed at each of its steps, and so is the process that cleans up after it. The next
 * process repairs whatever they leave, to the unit. */

#include "pages.h"
#include "step.h"

enum { LIMIT = 16, OURS = 1, BEFORE = 5 }; /* units; OURS: of the observer */

/* The step at which this process is killed; 0: never. */
static unsigned countdown;

void slice_step(unsigned line, uint64_t seen) {
        if (countdown > 0 && --countdown == 0)
                (void) raise(SIGKILL);
}

typedef enum { SURVIVED, KILLED } Fate;

static Fate fate(pid_t pid) {
        int status = pages_wait(pid);

        if (WIFSIGNALED(status)) {
                ASSERT_INT(WTERMSIG(status), SIGKILL);
                return KILLED;
        }
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        return SURVIVED;
}

/* A process that holds BEFORE units, and is killed at the n-th step of reserving or releasing. */
static Fate die_changing(const Pages *p, int64_t units, unsigned n) {
        pid_t pid = pages_fork();
        SliceUser s;

        if (pid == 0) {
                ASSERT_OK(slice_open(p->path, &s));
                ASSERT_OK(slice_reserve(&s, BEFORE * SLICE_UNIT));
                countdown = n;
                if (units > 0)
                        (void) slice_reserve(&s, (uint64_t) units * SLICE_UNIT);
                else
                        slice_release(&s, (uint64_t) -units * SLICE_UNIT);
                _exit(0);
        }
        return fate(pid);
}

static Fate die_reaping(const Pages *p, unsigned n) {
        pid_t pid = pages_fork();
        SliceUser s;

        if (pid == 0) {
                ASSERT_OK(slice_open(p->path, &s));
                countdown = n;
                (void) slice_reap(&s);
                _exit(0);
        }
        return fate(pid);
}

/* Takes the dead process's row at its start, because no other row is free. */
static Fate die_opening(const Pages *p, unsigned n) {
        pid_t pid = pages_fork();
        SliceUser s;

        if (pid == 0) {
                countdown = n;
                ASSERT_OK(slice_open(p->path, &s));
                _exit(0);
        }
        return fate(pid);
}

static const int64_t changes[] = {3, LIMIT - OURS - BEFORE, LIMIT, -1, -BEFORE};

static void change_used(SliceUser *s) {
        slice_release(s, OURS * SLICE_UNIT);
        ASSERT_OK(slice_reserve(s, OURS * SLICE_UNIT));
}

/* With and without other changes of the used word before the recovery. With them only the note
 * tells. */
static void killed_at_every_step(void) {
        Pages p = pages_make(LIMIT * SLICE_UNIT);
        unsigned n_killed = 0;
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(slice_reserve(&s, OURS * SLICE_UNIT));
        for (size_t i = 0; i < ELEMENTSOF(changes) * 2; i++)
                for (unsigned n = 1;; n++) {
                        Fate f = die_changing(&p, changes[i / 2], n);

                        ASSERT_TRUE(slice_used(&s) <= LIMIT * SLICE_UNIT);
                        if (i % 2 == 1)
                                change_used(&s);
                        pages_reap_to(&s, OURS * SLICE_UNIT);
                        ASSERT_INT(slice_row_held(&s.counters->rows[s.row]), OURS);
                        if (f == SURVIVED)
                                break;
                        n_killed++;
                }
        printf("%u killed\n", n_killed);
        ASSERT_TRUE(n_killed >= ELEMENTSOF(changes) * 2 * 3);
        slice_close(&s);
        pages_remove(&p);
}

/* Moves from one row to the other of the same process. */
static Fate die_moving(const Pages *p, unsigned n) {
        pid_t pid = pages_fork();
        SliceUser s, other;

        if (pid == 0) {
                ASSERT_OK(slice_open(p->path, &s));
                ASSERT_OK(slice_reserve(&s, BEFORE * SLICE_UNIT));
                ASSERT_OK(slice_open_row(&s, -1, 0, false, &other));
                countdown = n;
                ASSERT_OK(slice_move(&s, &other, 3 * SLICE_UNIT));
                _exit(0);
        }
        return fate(pid);
}

/* What is moved may be counted twice meanwhile, but always once. In the end nothing is left. */
static void mover_killed_at_every_step(void) {
        Pages p = pages_make(LIMIT * SLICE_UNIT);
        unsigned n_killed = 0;
        Fate f = KILLED;
        uint64_t used;
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(slice_reserve(&s, OURS * SLICE_UNIT));
        for (unsigned n = 1; f == KILLED; n++) {
                f = die_moving(&p, n);
                used = slice_used(&s) / SLICE_UNIT;
                ASSERT_TRUE(used == OURS + BEFORE || used == OURS + BEFORE + 3);
                n_killed += f == KILLED;
                pages_reap_to(&s, OURS * SLICE_UNIT);
        }
        ASSERT_TRUE(n_killed > 10);
        slice_close(&s);
        pages_remove(&p);
}

static void reaper_killed_at_every_step(void) {
        Pages p = pages_make(LIMIT * SLICE_UNIT);
        unsigned n_killed = 0;
        Fate dying, reaping;
        SliceUser s;

        ASSERT_OK(slice_open(p.path, &s));
        ASSERT_OK(slice_reserve(&s, OURS * SLICE_UNIT));
        for (size_t i = 0; i < ELEMENTSOF(changes); i++)
                for (unsigned n = 1, m = 1;; m++) {
                        dying = die_changing(&p, changes[i], n);
                        if (m % 2 == 1)
                                change_used(&s);
                        reaping = die_reaping(&p, m);
                        n_killed += reaping == KILLED;
                        pages_reap_to(&s, OURS * SLICE_UNIT);
                        if (reaping == SURVIVED && dying == SURVIVED)
                                break;
                        if (reaping == SURVIVED) {
                                n++;
                                m = 0;
                        }
                }
        printf("%u reapers killed\n", n_killed);
        ASSERT_TRUE(n_killed > 200);
        slice_close(&s);
        pages_remove(&p);
}

static void successor_killed_at_every_step(void) {
        static SliceUser all[SLICE_ROWS - 1];
        Pages p = pages_make(LIMIT * SLICE_UNIT);
        unsigned n_killed = 0;
        Fate f = KILLED;

        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                ASSERT_OK(slice_open(p.path, &all[i]));
        for (unsigned m = 1; f == KILLED; m++) {
                ASSERT_INT(die_changing(&p, 3, m % 6 + 2), KILLED);
                f = die_opening(&p, m);
                n_killed += f == KILLED;
                pages_reap_to(&all[0], 0);
        }
        ASSERT_TRUE(n_killed > 5);
        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                slice_close(&all[i]);
        pages_remove(&p);
}

int main(void) {
        return TEST_MAIN(TEST(killed_at_every_step), TEST(mover_killed_at_every_step),
                         TEST(reaper_killed_at_every_step), TEST(successor_killed_at_every_step));
}
