/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes in the memory that the processes of a card share: a reader neither crashes nor hangs. A
 * group that gets work after the bytes are repaired completes it. The input is a list of changes.
 * A change has a kind, the group, the offset, and eight bytes. Kinds: 0 settings, 1 rows, 2 the
 * number of the state, 3 tails, 4 positions, 5 states; 8: read instead. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/engine/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORD = 12, LOOKS = 4, GROUPS = 4 };

static EngineShared *shared;
static uint64_t now;

static void prepare(EngineUser *users) {
        if (!shared) {
                void *p = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

                assert(p != MAP_FAILED);
                shared = p;
        }
        assert(madvise(shared, sizeof *shared, MADV_DONTNEED) == 0);
        shared->settings.slice = 1000000;
        shared->settings.groups = GROUPS;
        now = 1000;
        for (unsigned g = 0; g < GROUPS; g++) {
                Engine *e = engine_new(shared);

                assert(e);
                shared->rows[g].client = g + 1;
                shared->rows[g].life = 3;
                assert(engine_join(e, g + 1, 0, now, &users[g]) == 0);
        }
}

static void *target(unsigned what, unsigned g, unsigned at) {
        EngineRings *r = &shared->rings[g];

        switch (what) {
        case 0:
                return (uint64_t *) &shared->settings + at % (sizeof(EngineSettings) / 8);
        case 1:
                return (uint64_t *) &shared->rows[g] + at % (sizeof(EngineRow) / 8);
        case 2:
                return &shared->current;
        case 3:
                return (uint64_t *) r + at % (offsetof(EngineRings, slots) / 8);
        case 4:
                return (uint64_t *) r->slots[at >> 8 & 3] + (at & 0xFF);
        default:
                return (uint64_t *) &shared->buffers[g][at >> 15] + (at & 0x7FFF) % (sizeof(EngineState) / 8);
        }
}

static void give_some(EngineUser *u, unsigned argument) {
        uint64_t position;

        for (unsigned c = 0; c < 3; c++)
                (void) engine_give(u, c, (EngineKind) (argument % 5), (uint64_t) argument << c * 8, now,
                                   &position);
}

static void finish(EngineUser *users) {
        uint64_t position = 0, time;

        for (unsigned g = 1; g < GROUPS; g++)
                shared->rows[g].life = 2;
        shared->settings.slice = 1000000;
        shared->settings.change = 0;
        shared->settings.groups = GROUPS;
        shared->rows[0].life = 5;
        shared->rows[0].client = 1;
        shared->rows[0].group = 0;
        assert(engine_join(users[0].engine, 1, 0, now, &users[0]) == 0);
        assert(engine_give(&users[0], 9, ENGINE_RUN, 1000, now, &position));
        for (unsigned i = 0; i < 64 && !engine_is_done(&users[0], 9, position, &time); i++)
                engine_look(&users[0], now += 1000000000);
        assert(engine_is_done(&users[0], 9, position, &time));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        EngineUser users[GROUPS];
        EngineUsage *usage = malloc(sizeof *usage);
        unsigned looks = 0;

        assert(usage);
        prepare(users);
        for (; size >= RECORD; data += RECORD, size -= RECORD) {
                unsigned at = (unsigned) data[2] << 8 | data[3];

                if (data[0] < 8) {
                        memcpy(target(data[0], data[1] % GROUPS, at), data + 4, 8);
                        continue;
                }
                give_some(&users[data[1] % GROUPS], at);
                if (looks++ >= LOOKS)
                        continue;
                engine_look(&users[data[1] % GROUPS], now += at * UINT64_C(1000));
                (void) engine_expect(&users[data[1] % GROUPS], data[4] % 3, 0, now);
        }
        engine_usage(users[0].engine, now, usage);
        finish(users);
        for (unsigned g = 0; g < GROUPS; g++)
                engine_free(users[g].engine);
        free(usage);
        return 0;
}
