/* SPDX-License-Identifier: Apache-2.0 */

/* Every interleaving. The code of slice/counters.c itself runs in actors that stop between any two
 * accesses to the counters. From each state each of these continues it:
 *
 * - an actor runs one step - a process is killed - a new process takes the row of a dead one,
 * recovers it and continues, or adopts what it holds
 *
 * An actor's stack is part of the state and is copied with it, so that each choice begins where the
 * last one ended.
 *
 * In every state: what the living actors really hold <= used <= limit. At every end: used, and what
 * each row holds, is exactly what its living actors hold. */

#include <errno.h>
#include <setjmp.h>
#include <ucontext.h>

#include "slice/counter_word.h"
#include "slice/counters.h"
#include "step.h"
#include "test.h"

enum {
        LIMIT = 5,
        MAX_ACTORS = 6,
        MAX_STEPS = 3,
        MAX_LINES = 16,
        ROWS = 3,
        STACK = 4096,
        MAX_DEPTH = 256,
        TABLE = 1 << 24
};

typedef enum { IDLE, READY, DONE, DEAD } Status;

typedef struct Actor {
        Status status;
        uint32_t row, lane;
        bool heir;              /* recovers the row first */
        const int64_t *program; /* units, 0 ends it */
        int64_t mine;           /* what it really holds, or less */
        uint64_t history;       /* of what it read; determines its stack, with program[at] */
        bool changing;          /* not recovering */
        size_t n_passed;
        struct {
                unsigned line;
                uint64_t history; /* at its first visit */
        } passed[MAX_LINES];
        jmp_buf here;
        char stack[STACK] __attribute__((aligned(64)));
} Actor;

typedef struct World {
        size_t n_actors;
        unsigned kills; /* still allowed */
        bool orphaned[ROWS];
        bool adopted;         /* successors take over what dead processes hold */
        int64_t left[ROWS];   /* at least this much */
        const int64_t *heirs; /* program of a process that takes a dead one's row */
        Actor actors[MAX_ACTORS];
} World;

typedef struct Head { /* the part of the counters that is used here and copied */
        char bytes[offsetof(SliceCounters, rows) + ROWS * sizeof(SliceRow)];
} Head;

static World world;
static SliceCounters counters;
static Actor *running;
static jmp_buf scheduler;
static uint64_t *seen_states;
static size_t n_states, n_ends;

static uint64_t mix(uint64_t h, uint64_t x) {
        h ^= x + UINT64_C(0x9E3779B97F4A7C15) + (h << 6) + (h >> 2);
        h ^= h >> 31;
        h *= UINT64_C(0xBF58476D1CE4E5B9);
        return h ^ h >> 29;
}

/* ---- actors ---- */

static void stop_here(void) {
        if (_setjmp(running->here) == 0)
                _longjmp(scheduler, 1);
}

/* A change that tries again depends on nothing that it read before. So its state is that of its
 * first visit to this line. */
static void forget(Actor *a, unsigned line) {
        for (size_t i = 0; i < a->n_passed; i++)
                if (a->passed[i].line == line) {
                        a->history = a->passed[i].history;
                        a->n_passed = i;
                        break;
                }
        ASSERT_TRUE(a->n_passed < MAX_LINES);
        a->passed[a->n_passed].line = line;
        a->passed[a->n_passed++].history = a->history;
}

void slice_step(unsigned line, uint64_t seen) {
        if (!running)
                return;
        if (running->changing)
                forget(running, line);
        running->history = mix(mix(running->history, line), seen);
        stop_here();
}

/* What an actor does next depends only on its position in the program and on what it holds. */
static void change(Actor *a, size_t i) {
        int64_t units = a->program[i];

        a->changing = true;
        a->n_passed = 0;
        if (units < 0)
                a->mine += units;
        if (slice_change(&counters, a->row * SLICE_LANES + a->lane, units, LIMIT) == 0 && units > 0)
                a->mine += units;
        a->history = i + 2;
}

static void act(void) {
        Actor *a = running;

        stop_here();
        if (a->heir && world.adopted) {
                slice_complete(&counters, a->row);
                a->mine = slice_row_held(&counters.rows[a->row]);
                ASSERT_TRUE(a->mine >= world.left[a->row]);
        } else if (a->heir) {
                slice_recover(&counters, a->row);
        }
        a->history = 1;
        for (size_t i = 0; i < MAX_STEPS && a->program[i] != 0; i++)
                if (a->mine + a->program[i] >= 0) /* a refused reservation is not released */
                        change(a, i);
        a->status = DONE;
        _longjmp(scheduler, 1);
}

static void resume(Actor *a) {
        running = a;
        if (_setjmp(scheduler) == 0)
                _longjmp(a->here, 1);
}

static void begin(Actor *a) {
        ucontext_t context, back;

        ASSERT_OK(getcontext(&context));
        context.uc_stack.ss_sp = a->stack;
        context.uc_stack.ss_size = sizeof a->stack;
        context.uc_link = NULL;
        makecontext(&context, act, 0);
        running = a;
        a->status = READY;
        if (_setjmp(scheduler) == 0)
                (void) swapcontext(&back, &context); /* leaves through the scheduler */
}

static Actor *add(uint32_t row, uint32_t lane, const int64_t *program, bool heir) {
        Actor *a = &world.actors[world.n_actors++];

        ASSERT_TRUE(world.n_actors <= MAX_ACTORS);
        memset(a, 0, sizeof *a);
        a->row = row;
        a->lane = lane;
        a->program = program;
        a->heir = heir;
        begin(a);
        return a;
}

/* ---- invariants ---- */

static int64_t had(uint32_t row, bool all) {
        int64_t sum = 0;

        for (size_t i = 0; i < world.n_actors; i++)
                if (world.actors[i].status != DEAD && (all || world.actors[i].row == row))
                        sum += world.actors[i].mine;
        return sum;
}

static void check_always(void) {
        int64_t used = slice_used_units(counters.used);

        ASSERT_TRUE(used <= LIMIT);
        ASSERT_TRUE(had(0, true) <= used);
}

static void check_end(void) {
        ASSERT_INT(slice_used_units(counters.used), had(0, true));
        for (uint32_t row = 0; row < ROWS; row++) {
                ASSERT_INT(slice_row_held(&counters.rows[row]), had(row, false));
                for (size_t i = 0; i < SLICE_LANES; i++)
                        ASSERT_INT(slice_word_units(counters.rows[row].lanes[i].operation), 0);
        }
        n_ends++;
}

/* ---- exploring ---- */

static uint64_t state_hash(void) {
        uint64_t h = mix(world.kills, counters.used);

        for (uint32_t row = 0; row < ROWS; row++) {
                h = mix(mix(h, world.orphaned[row]), (uint64_t) world.left[row]);
                for (size_t i = 0; i < SLICE_LANES; i++) {
                        h = mix(h, counters.rows[row].lanes[i].operation);
                        h = mix(h, counters.rows[row].lanes[i].held);
                        h = mix(h, counters.rows[row].noted[i]);
                }
        }
        for (size_t i = 0; i < world.n_actors; i++) {
                const Actor *a = &world.actors[i];

                h = mix(h, (uint64_t) a->status << 32 | a->row << 8 | a->lane << 1 | a->heir);
                h = a->status == DEAD ? h : mix(mix(h, a->history), (uint64_t) a->mine);
        }
        return h | 1;
}

static bool first_time(uint64_t h) {
        for (size_t i = (size_t) h % TABLE;; i = (i + 1) % TABLE) {
                if (seen_states[i] == h)
                        return false;
                if (seen_states[i] == 0) {
                        seen_states[i] = h;
                        ASSERT_TRUE(++n_states < TABLE / 2);
                        return true;
                }
        }
}

/* A process is all actors of a row. */
static void kill_row(uint32_t row) {
        world.left[row] = had(row, false);
        for (size_t i = 0; i < world.n_actors; i++)
                if (world.actors[i].row == row)
                        world.actors[i].status = DEAD;
        world.orphaned[row] = true;
        world.kills--;
}

static bool lives(uint32_t row) {
        for (size_t i = 0; i < world.n_actors; i++)
                if (world.actors[i].row == row && world.actors[i].status != DEAD)
                        return true;
        return false;
}

/* Choices: each actor runs one step; each row is killed; each orphaned row gets a successor. False:
 * not possible in this state. */
static bool choose(size_t choice) {
        uint32_t row = (uint32_t) (choice - MAX_ACTORS) % ROWS;

        if (choice < MAX_ACTORS) {
                if (choice >= world.n_actors || world.actors[choice].status != READY)
                        return false;
                resume(&world.actors[choice]);
                return true;
        }
        if (choice < MAX_ACTORS + ROWS) {
                if (world.kills == 0 || !lives(row))
                        return false;
                kill_row(row);
                return true;
        }
        if (!world.orphaned[row])
                return false;
        world.orphaned[row] = false;
        (void) add(row, 0, world.heirs, true);
        return true;
}

static void explore(void) {
        static struct {
                World world;
                Head head;
        } stack[MAX_DEPTH];
        static size_t depth;
        size_t size = offsetof(World, actors) + world.n_actors * sizeof(Actor);
        bool end = true;

        check_always();
        if (!first_time(state_hash()))
                return;
        ASSERT_TRUE(depth < MAX_DEPTH);
        memcpy(&stack[depth].world, &world, size);
        memcpy(&stack[depth].head, (const void *) &counters, sizeof(Head));
        for (size_t i = 0; i < MAX_ACTORS + 2 * ROWS; i++) {
                if (!choose(i))
                        continue;
                end = end && i >= MAX_ACTORS && i < MAX_ACTORS + ROWS; /* no kill is required */
                depth++;
                explore();
                depth--;
                memcpy(&world, &stack[depth].world, size);
                memcpy((void *) &counters, &stack[depth].head, sizeof(Head));
        }
        if (end)
                check_end();
}

/* ---- the scenes ---- */

static void scene(unsigned kills, const int64_t *heirs) {
        memset(&world, 0, sizeof world);
        memset((void *) &counters, 0, sizeof counters);
        memset(seen_states, 0, sizeof(uint64_t[TABLE]));
        world.kills = kills;
        world.heirs = heirs;
        n_states = n_ends = 0;
        running = NULL;
}

static void play(const char *name) {
        explore();
        printf("%s: %zu states, %zu ends\n", name, n_states, n_ends);
        ASSERT_TRUE(n_ends > 1);
}

/* Two processes that together want too much: the second is refused, or comes after the first has
 * released. */
static void two_processes(void) {
        static const int64_t first[MAX_STEPS + 1] = {3, -3}, second[MAX_STEPS + 1] = {3}, none[MAX_STEPS + 1];

        scene(2, none);
        (void) add(0, 0, first, false);
        (void) add(1, 0, second, false);
        play("two processes, two kills");
}

/* The successor continues in the row. */
static void heirs(void) {
        static const int64_t first[MAX_STEPS + 1] = {3, -3}, second[MAX_STEPS + 1] = {3},
                                               heir[MAX_STEPS + 1] = {1, -1};

        scene(1, heir);
        (void) add(0, 0, first, false);
        (void) add(1, 0, second, false);
        play("two processes and an heir");
}

/* Also when the successor is killed and has a successor itself. */
static void adopters(void) {
        static const int64_t first[MAX_STEPS + 1] = {3, -2}, second[MAX_STEPS + 1] = {2},
                                               heir[MAX_STEPS + 1] = {1, -1};

        for (unsigned kills = 1; kills <= 2; kills++) {
                scene(kills, heir);
                world.adopted = true;
                (void) add(0, 0, first, false);
                (void) add(1, 0, second, false);
                play(kills == 1 ? "two processes, and who goes on with what one left"
                                : "the same, two kills");
        }
}

static void three_processes(void) {
        static const int64_t each[MAX_STEPS + 1] = {2}, last[MAX_STEPS + 1] = {2, -2}, none[MAX_STEPS + 1];

        scene(1, none);
        (void) add(0, 0, each, false);
        (void) add(1, 0, each, false);
        (void) add(2, 0, last, false);
        play("three processes, one kill");
}

/* Two threads. One releases what the other one reserved, so that one lane is negative. */
static void two_threads(void) {
        static const int64_t first[MAX_STEPS + 1] = {3}, second[MAX_STEPS + 1] = {-2, 1},
                                               other[MAX_STEPS + 1] = {3};
        static const int64_t none[MAX_STEPS + 1];
        Actor *a;

        scene(1, none);
        ASSERT_OK(slice_change(&counters, 0, 2, LIMIT));
        (void) add(0, 0, first, false);
        a = add(0, 1, second, false);
        a->mine = 2;
        (void) add(1, 0, other, false);
        play("two threads and another process, one kill");
}

int main(void) {
        seen_states = calloc(TABLE, sizeof *seen_states);
        ASSERT_TRUE(seen_states != NULL);
        return TEST_MAIN(TEST(heirs), TEST(adopters), TEST(two_processes), TEST(three_processes),
                         TEST(two_threads));
}
