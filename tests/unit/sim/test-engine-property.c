/* SPDX-License-Identifier: Apache-2.0 */

/* The same submissions at the same times give the same completions, whichever process looks, how
 * often, and even if it is killed. */

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine-lab.h"
#include "random.h"

enum { GROUPS = 5, OPS = 1500, CHANNELS = 6, ROUNDS = 40 };

typedef enum What { GIVES, GOES, COMES } What;

typedef struct Op {
        uint64_t at;
        What what;
        unsigned group, channel;
        EngineKind kind;
        uint64_t argument;
        uint64_t position, done; /* completions of the last run */
} Op;

static Random random_state;

static uint64_t draw(uint64_t n) {
        return random_below(&random_state, n);
}

/* ---- scenarios ---- */

static uint64_t draw_length(void) {
        static const uint64_t lengths[] = {1, 3 * US, 70 * US, 999 * US, 1 * MS, 2500 * US, 20 * MS};

        return lengths[draw(sizeof lengths / sizeof *lengths)];
}

static void draw_work(Op *o, const uint64_t *given) {
        unsigned other = (unsigned) draw(CHANNELS);

        o->channel = (unsigned) draw(CHANNELS);
        o->kind = (EngineKind) draw(ENGINE_EVENT + 1);
        o->argument = draw_length();
        if (o->kind != ENGINE_AFTER)
                return;
        if (given[other] == 0)
                o->kind = ENGINE_RUN;
        else
                o->argument = engine_after(other, draw(given[other]));
}

static void draw_scenario(Op *ops) {
        uint64_t given[GROUPS][CHANNELS] = {{0}}, now = 0;
        bool there[GROUPS] = {true, true, true, true, true};

        for (unsigned i = 0; i < OPS; i++) {
                Op *o = &ops[i];

                now += draw(3) == 0 ? draw(MS) : draw(2) * draw(20 * US); /* often at the same time */
                *o = (Op){.at = now, .group = 1 + (unsigned) draw(GROUPS - 1), .what = GIVES};
                if (!there[o->group])
                        o->what = COMES;
                else if (draw(200) == 0)
                        o->what = GOES;
                if (o->what == GIVES)
                        draw_work(o, given[o->group]);
                if (o->what == GIVES)
                        given[o->group][o->channel]++;
                else
                        memset(given[o->group], 0, sizeof given[o->group]);
                there[o->group] = o->what != GOES;
        }
}

/* ---- playing ---- */

typedef struct Play {
        EngineShared *memory;
        EngineUser users[GROUPS]; /* the first group stays */
} Play;

static void play_init(Play *p) {
        p->memory = lab_memory();
        p->memory->settings.change = draw(2) * 7 * US;
        for (unsigned g = 0; g < GROUPS; g++)
                p->users[g] = lab_user(p->memory, g, 0);
}

static void play_op(Play *p, Op *o) {
        EngineUser *u = &p->users[o->group];

        o->done = 0;
        switch (o->what) {
        case GIVES:
                o->position = lab_give(u, o->channel, o->kind, o->argument, o->at);
                break;
        case GOES:
                lab_leave(p->memory, o->group, o->at);
                break;
        case COMES:
                engine_free(u->engine);
                *u = lab_user(p->memory, o->group, o->at);
        }
}

/* Only groups whose slot was not used again. */
static void read_times(Play *p, Op *ops) {
        bool last[GROUPS] = {true, true, true, true, true};

        for (unsigned i = 0; i < 10; i++) /* a look takes at most so many steps */
                engine_look(&p->users[0], 100000 * MS);
        for (unsigned i = OPS; i-- > 0;) {
                Op *o = &ops[i];

                if (o->what == COMES)
                        last[o->group] = false;
                if (o->what == GIVES && last[o->group])
                        o->done = lab_time(&p->users[o->group], o->channel, o->position);
        }
}

static void play_done(Play *p) {
        lab_done(p->memory, p->users, GROUPS);
}

static void compare(const Op *a, const Op *b) {
        unsigned done = 0;

        for (unsigned i = 0; i < OPS; i++) {
                if (a[i].done != b[i].done)
                        TEST_FAIL_("entry %u of group %u is done at %" PRIu64 ", and at %" PRIu64, i,
                                   a[i].group, a[i].done, b[i].done);
                done += a[i].done != 0 && a[i].done != UINT64_MAX;
        }
        ASSERT_TRUE(done > OPS / 10);
}

static void in_one_step(Op *ops) {
        Play p;

        play_init(&p);
        for (unsigned i = 0; i < OPS; i++)
                play_op(&p, &ops[i]);
        read_times(&p, ops);
        play_done(&p);
}

/* Present processes look at any time between two operations. */
static void in_many_steps(Op *ops) {
        bool there[GROUPS] = {true, true, true, true, true};
        uint64_t now = 0;
        Play p;

        play_init(&p);
        for (unsigned i = 0; i < OPS; i++) {
                for (uint64_t n = draw(4); n > 0; n--) {
                        unsigned g = (unsigned) draw(GROUPS);

                        now += draw(2) == 0 ? ops[i].at - now : draw(ops[i].at - now + 1);
                        if (there[g])
                                engine_look(&p.users[g], now);
                        if (there[g] && draw(3) == 0)
                                (void) engine_expect(&p.users[g], 0, 0, now);
                }
                now = ops[i].at;
                play_op(&p, &ops[i]);
                there[ops[i].group] = ops[i].what != GOES;
        }
        read_times(&p, ops);
        play_done(&p);
}

static void independent_of_steps(void) {
        static Op one[OPS], many[OPS];

        for (uint64_t round = 0; round < ROUNDS; round++) {
                Random after;

                random_state = (Random){round};
                draw_scenario(one);
                memcpy(many, one, sizeof many);
                after = random_state;
                in_one_step(one);
                random_state = after;
                in_many_steps(many);
                compare(one, many);
        }
}

/* ---- processes that look all the time, and are killed and stopped while they do ---- */

enum { LOOKERS = GROUPS - 1 };

static _Noreturn void look_for_ever(EngineUser *u, _Atomic uint64_t *clock) {
        for (;;) {
                engine_look(u, atomic_load(clock));
                (void) sched_yield();
        }
}

static pid_t start_looker(EngineUser *u, _Atomic uint64_t *clock) {
        pid_t pid = fork();

        ASSERT_TRUE(pid >= 0);
        if (pid == 0)
                look_for_ever(u, clock);
        return pid;
}

static void end_looker(pid_t pid) {
        ASSERT_OK(kill(pid, SIGKILL));
        ASSERT_INT(waitpid(pid, NULL, 0), pid);
}

static void only_work(Op *ops) {
        for (unsigned i = 0; i < OPS; i++) {
                Op *o = &ops[i];

                if (o->what != GIVES)
                        *o = (Op){.at = o->at, .group = o->group, .kind = ENGINE_RUN, .argument = 5 * US};
                if (o->kind == ENGINE_AFTER) /* it may have waited for another group's entry */
                        *o = (Op){.at = o->at,
                                  .group = o->group,
                                  .channel = o->channel,
                                  .kind = ENGINE_UP,
                                  .argument = US};
        }
}

static void independent_of_observers(void) {
        static Op one[OPS], many[OPS];
        _Atomic uint64_t *clock;
        pid_t lookers[LOOKERS];
        Play p;

        random_state = (Random){77};
        draw_scenario(one);
        only_work(one);
        memcpy(many, one, sizeof many);
        random_state = (Random){5};
        in_one_step(one);
        random_state = (Random){5};
        play_init(&p);
        clock = (_Atomic uint64_t *) &p.memory->buffers[ENGINE_GROUPS - 1][1]; /* an unused row */
        for (unsigned i = 0; i < LOOKERS; i++)
                lookers[i] = start_looker(&p.users[i + 1], clock);
        for (unsigned i = 0; i < OPS; i++) {
                unsigned who = (unsigned) draw(LOOKERS);

                play_op(&p, &many[i]);
                atomic_store(clock, many[i].at);
                if (i % 4 == 0)
                        ASSERT_OK(kill(lookers[who], i % 8 == 0 ? SIGSTOP : SIGCONT));
                if (i % 50 == 0) {
                        end_looker(lookers[who]);
                        lookers[who] = start_looker(&p.users[who + 1], clock);
                }
                (void) sched_yield();
        }
        read_times(&p, many);
        for (unsigned i = 0; i < LOOKERS; i++)
                end_looker(lookers[i]);
        play_done(&p);
        compare(one, many);
}

int main(void) {
        return TEST_MAIN(TEST(independent_of_steps), TEST(independent_of_observers));
}
