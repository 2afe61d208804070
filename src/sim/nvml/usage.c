/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>
#include <time.h>

#include "sim/engine/engine.h"
#include "sim/nvml/nvml.h"

/* How busy a card was, and with whose work: over the last whole sixth of a second, from the engines' own meters. */

static uint64_t clock_of(clockid_t id) {
        struct timespec t;

        (void) clock_gettime(id, &t); /* fails only for clocks that do not exist */
        return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static NvmlReturn read_usage(NvmlHandle h, EngineUsage *ret) {
        EngineShared *shared;
        DriverCard *c;
        Engine *e;
        NvmlReturn r = nvml_enter(h, &c);

        if (r != NVML_SUCCESS)
                return r;
        shared = mmap(NULL, sizeof *shared, PROT_READ, MAP_SHARED, c->fd, 0);
        if (shared == MAP_FAILED)
                return NVML_ERROR_OPERATING_SYSTEM;
        e = engine_new(shared);
        if (e)
                engine_usage(e, clock_of(CLOCK_MONOTONIC), ret);
        engine_free(e);
        (void) munmap(shared, sizeof *shared);
        return e ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

static unsigned percent(const EngineMeter *m) {
        uint64_t n = m->before > ENGINE_WINDOW_NSEC ? ENGINE_WINDOW_NSEC : m->before;

        return (unsigned) ((n * 100 + ENGINE_WINDOW_NSEC / 2) / ENGINE_WINDOW_NSEC);
}

NVML_API NvmlReturn nvmlDeviceGetUtilizationRates(NvmlHandle h, NvmlUtilization *ret) {
        LOCKED;
        EngineUsage usage;
        NvmlReturn r = read_usage(h, &usage);

        if (r != NVML_SUCCESS || !ret)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        *ret = (NvmlUtilization){percent(&usage.busy), 0};
        return NVML_SUCCESS;
}

/* A process may have several groups. */
static unsigned add_up(const EngineUsage *usage, unsigned long long now, NvmlProcessSample *list) {
        unsigned n = 0;

        for (unsigned g = 0; g < usage->n; g++) {
                unsigned i = 0, share = percent(&usage->groups[g].ran);

                while (i < n && list[i].pid != usage->groups[g].pid)
                        i++;
                if (i == n)
                        list[n++] = (NvmlProcessSample){.pid = usage->groups[g].pid, .time = now};
                list[i].sm += share;
        }
        return n;
}

/* count: in, the room; out, how many there are. Pids are the server's: a program in another pid namespace finds numbers that are not
 * those of its own. */
NVML_API NvmlReturn nvmlDeviceGetProcessUtilization(NvmlHandle h, NvmlProcessSample *ret, unsigned *count,
                                                    unsigned long long last_seen) {
        LOCKED;
        NvmlProcessSample list[ENGINE_GROUPS];
        unsigned long long now = clock_of(CLOCK_REALTIME) / 1000;
        EngineUsage usage;
        NvmlReturn r = read_usage(h, &usage);
        unsigned n, room;

        if (r != NVML_SUCCESS || !count)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        n = last_seen < now ? add_up(&usage, now, list) : 0;
        room = ret ? *count : 0;
        *count = n;
        if (n == 0)
                return NVML_ERROR_NOT_FOUND;
        if (n > room)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        for (unsigned i = 0; i < n; i++)
                ret[i] = list[i];
        return NVML_SUCCESS;
}
