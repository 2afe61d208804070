/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A card's shared memory without a server, with groups of several "processes", each with an Engine
 * of its own. */

#include <sys/mman.h>

#include "sim/engine/engine.h"
#include "test.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static inline EngineShared *lab_memory(void) {
        EngineShared *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        ASSERT_TRUE(m != MAP_FAILED);
        m->settings.slice = MS;
        return m;
}

/* What the server does when a group is made or removed. */
static inline void lab_enter(EngineShared *m, unsigned g) {
        m->rows[g].client = 0xC1D00000 + g;
        m->rows[g].group = 7;
        m->rows[g].pid = 100 + g;
        m->rows[g].life = ((m->rows[g].life >> 1) + 1) << 1 | 1;
        if (m->settings.groups <= g)
                m->settings.groups = g + 1;
}

static inline void lab_leave(EngineShared *m, unsigned g, uint64_t now) {
        m->rows[g].cut = now;
        m->rows[g].life &= ~UINT64_C(1);
}

static inline EngineUser lab_user(EngineShared *m, unsigned g, uint64_t now) {
        Engine *e = engine_new(m);
        EngineUser u;

        ASSERT_TRUE(e != NULL);
        lab_enter(m, g);
        ASSERT_OK(engine_join(e, 0xC1D00000 + g, 7, now, &u));
        ASSERT_INT(u.group, g);
        return u;
}

static inline void lab_done(EngineShared *m, EngineUser *users, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                engine_free(users[i].engine);
        ASSERT_OK(munmap(m, sizeof *m));
}

static inline uint64_t lab_give(EngineUser *u, unsigned channel, EngineKind kind, uint64_t argument,
                                uint64_t now) {
        uint64_t position = 0;

        ASSERT_TRUE(engine_give(u, channel, kind, argument, now, &position));
        return position;
}

/* UINT64_MAX: it is not done. */
static inline uint64_t lab_time(const EngineUser *u, unsigned channel, uint64_t position) {
        uint64_t t = 0;

        return engine_is_done(u, channel, position, &t) ? t : UINT64_MAX;
}
