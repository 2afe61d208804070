/* SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/engine/engine.h"

enum { MINORS = 32 };

typedef struct Group {
        TimingGroup key;
        bool joined;
        EngineUser user;
        struct Group *next;
} Group;

static Engine *engines[MINORS];
static Group *groups;

static uint64_t now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t); /* this clock is there */
        return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

/* The mapping stays when the descriptor is closed. */
static Engine *open_engine(uint32_t minor) {
        const char *folder = getenv("NATIVE_DEV");
        char path[4096];
        void *shared;
        int fd;

        if (minor >= MINORS || !folder)
                abort();
        if (engines[minor])
                return engines[minor];
        (void) snprintf(path, sizeof path, "%s/nvidia%u", folder, minor);
        fd = (int) syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
        shared = (void *) syscall(SYS_mmap, NULL, sizeof(EngineShared), PROT_READ | PROT_WRITE, MAP_SHARED,
                                  fd, 0);
        if (shared == MAP_FAILED)
                abort();
        (void) close(fd); /* as above */
        return engines[minor] = engine_new(shared);
}

static Group *find(TimingGroup key) {
        Group *g = groups;

        while (g && (g->key.client != key.client || g->key.group != key.group))
                g = g->next;
        if (g)
                return g;
        g = calloc(1, sizeof *g);
        if (!g)
                abort();
        g->key = key;
        g->next = groups;
        return groups = g;
}

bool timing_begin(TimingGroup key, unsigned channel, uint64_t ns, uint64_t *ret_position) {
        Group *g = find(key);
        uint64_t position;

        if (!g->joined)
                g->joined = engine_join(open_engine(key.minor), key.client, key.group, now(), &g->user) == 0;
        if (!g->joined || !engine_give(&g->user, channel % ENGINE_CHANNELS, ENGINE_RUN, ns, now(), &position))
                return false;
        *ret_position = position + 1;
        return true;
}

bool timing_is_done(TimingGroup key, unsigned channel, uint64_t position) {
        Group *g = find(key);
        uint64_t when;

        engine_look(&g->user, now());
        return engine_is_done(&g->user, channel % ENGINE_CHANNELS, position - 1, &when) ||
               engine_is_gone(&g->user);
}
