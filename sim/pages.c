/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pages.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct SimPages {
        pthread_mutex_t lock;
        uint8_t *memory; /* mostly never touched */
};

static EngineShared *shared(const SimPages *p) {
        return (EngineShared *) p->memory;
}

SimPages *sim_pages_new(const SimPace *pace) {
        SimPages *p = calloc(1, sizeof *p);
        EngineSettings *s;

        if (!p)
                return NULL;
        p->memory = mmap(NULL, SIM_PAGES_SIZE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p->memory == MAP_FAILED) {
                free(p);
                return NULL;
        }
        (void) pthread_mutex_init(&p->lock, NULL); /* it cannot fail without attributes */
        s = &shared(p)->settings;
        s->slice = pace->slice_nsec;
        s->change = pace->change_nsec;
        s->up = pace->up;
        s->down = pace->down;
        s->memory = pace->memory;
        return p;
}

void sim_pages_free(SimPages *p) {
        if (!p)
                return;
        (void) munmap(p->memory, SIM_PAGES_SIZE);
        (void) pthread_mutex_destroy(&p->lock);
        free(p);
}

void sim_pages_read(SimPages *p, size_t at, void *to, size_t n) {
        (void) pthread_mutex_lock(&p->lock);
        memcpy(to, p->memory + at, n);
        (void) pthread_mutex_unlock(&p->lock);
}

void sim_pages_write(SimPages *p, size_t at, const void *from, size_t n) {
        size_t skip = at < ENGINE_SERVERS ? ENGINE_SERVERS - at : 0;

        if (skip >= n)
                return;
        (void) pthread_mutex_lock(&p->lock);
        memcpy(p->memory + at + skip, (const uint8_t *) from + skip, n - skip);
        (void) pthread_mutex_unlock(&p->lock);
}

static void note(const SimPages *p, SimStores *s, const void *at, size_t n) {
        s->list[s->n].at = (size_t) ((const uint8_t *) at - p->memory);
        s->list[s->n].n = n;
        memcpy(s->list[s->n++].bytes, at, n);
}

/* A row's life is written last: a reader that sees it sees the rest of the row. */
void sim_pages_enter(SimPages *p, uint32_t slot, uint32_t client, uint32_t group, uint32_t pid,
                     SimStores *ret) {
        EngineRow *row = &shared(p)->rows[slot];
        EngineSettings *s = &shared(p)->settings;

        *ret = (SimStores){.n = 0};
        (void) pthread_mutex_lock(&p->lock);
        row->client = client;
        row->group = group;
        row->pid = pid;
        note(p, ret, &row->client, 3 * sizeof row->client);
        row->life = ((row->life >> 1) + 1) << 1 | 1;
        note(p, ret, &row->life, sizeof row->life);
        if (s->groups <= slot) {
                s->groups = slot + 1;
                note(p, ret, &s->groups, sizeof s->groups);
        }
        (void) pthread_mutex_unlock(&p->lock);
}

void sim_pages_leave(SimPages *p, uint32_t slot, uint64_t now, SimStores *ret) {
        EngineRow *row = &shared(p)->rows[slot];

        *ret = (SimStores){.n = 0};
        (void) pthread_mutex_lock(&p->lock);
        row->cut = now;
        note(p, ret, &row->cut, sizeof row->cut);
        row->life &= ~UINT64_C(1);
        note(p, ret, &row->life, sizeof row->life);
        (void) pthread_mutex_unlock(&p->lock);
}
