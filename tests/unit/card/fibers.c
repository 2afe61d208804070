/* SPDX-License-Identifier: Apache-2.0 */
#include "fibers.h"

#include <stddef.h>
#include <stdlib.h>
#include <ucontext.h>

#include "random.h"
#include "test.h"

enum { FIBERS = 256, STACK = 1 << 18 };

struct Fiber {
        ucontext_t context;
        void (*run)(void *argument);
        void *argument, *owner, *stack;
        const void *word; /* the word on which it sleeps; NULL: none */
        uint64_t at;      /* when it continues */
        bool used, stopped;
};

static struct {
        ucontext_t scheduler;
        Fiber of[FIBERS];
        uint32_t n;
        Fiber *running;
        uint64_t now, until, horizon;
        Random random;
} all;

uint64_t fibers_now(void) {
        return all.now;
}

uint64_t fibers_draw(uint64_t below) {
        return random_below(&all.random, below);
}

void *fibers_owner(void) {
        return all.running ? all.running->owner : NULL;
}

void fibers_begin(uint64_t seed) {
        for (uint32_t i = 0; i < all.n; i++)
                all.of[i].used = false;
        all.n = 0;
        all.random = (Random){seed};
        all.now = UINT64_C(1000000000);
        all.running = NULL;
}

static void enter(unsigned high, unsigned low) {
        Fiber *f = (Fiber *) ((uintptr_t) high << 32 | low);

        f->run(f->argument);
        f->used = false;
        (void) setcontext(&all.scheduler);
}

Fiber *fibers_add(void (*run)(void *argument), void *argument, void *owner) {
        Fiber *f = &all.of[all.n++];

        ASSERT_TRUE(all.n <= FIBERS);
        if (!f->stack)
                f->stack = malloc(STACK);
        ASSERT_TRUE(f->stack != NULL);
        f->run = run;
        f->argument = argument;
        f->owner = owner;
        f->word = NULL;
        f->at = all.now;
        f->used = true;
        f->stopped = false;
        ASSERT_OK(getcontext(&f->context));
        f->context.uc_stack.ss_sp = f->stack;
        f->context.uc_stack.ss_size = STACK;
        f->context.uc_link = NULL;
        makecontext(&f->context, (void (*)(void)) enter, 2, (unsigned) ((uintptr_t) f >> 32),
                    (unsigned) (uintptr_t) f);
        all.horizon = all.now;
        return f;
}

void fibers_end(const void *owner) {
        for (uint32_t i = 0; i < all.n; i++)
                if (all.of[i].owner == owner && &all.of[i] != all.running)
                        all.of[i].used = false;
}

void fibers_stop(const void *owner, bool stopped) {
        for (uint32_t i = 0; i < all.n; i++)
                if (all.of[i].owner == owner)
                        all.of[i].stopped = stopped;
}

static Fiber *first_but(const Fiber *but) {
        Fiber *first = NULL;

        for (uint32_t i = 0; i < all.n; i++) {
                Fiber *f = &all.of[i];

                if (f != but && f->used && !f->stopped && (!first || f->at < first->at))
                        first = f;
        }
        return first;
}

static void set_horizon(const Fiber *runs) {
        const Fiber *next = first_but(runs);

        all.horizon = next && next->at < all.until ? next->at : all.until;
}

void fibers_run(uint64_t until) {
        all.until = until;
        for (;;) {
                Fiber *f = first_but(NULL);

                if (!f || f->at >= until)
                        break;
                all.now = f->at > all.now ? f->at : all.now;
                f->word = NULL;
                all.running = f;
                set_horizon(f);
                ASSERT_OK(swapcontext(&all.scheduler, &f->context));
                all.running = NULL;
        }
        all.now = until;
}

static void leave(uint64_t at) {
        Fiber *f = all.running;

        f->at = at;
        ASSERT_OK(swapcontext(&f->context, &all.scheduler));
}

void fibers_spend(uint64_t ns) {
        if (all.now + ns < all.horizon)
                all.now += ns;
        else
                leave(all.now + ns);
}

void fibers_sleep_until(uint64_t when) {
        leave(when > all.now ? when : all.now);
}

void fibers_sleep_on(const void *word, uint64_t until) {
        all.running->word = word;
        leave(until);
}

void fibers_wake(const void *word, uint64_t delay) {
        for (uint32_t i = 0; i < all.n; i++) {
                Fiber *f = &all.of[i];

                if (!f->used || f->word != word)
                        continue;
                if (all.now + delay < f->at)
                        f->at = all.now + delay;
                if (f->at < all.horizon)
                        all.horizon = f->at;
        }
}
