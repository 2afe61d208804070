/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>

#include "sim/engine/engine.h"
#include "sim/nvml/nvml.h"

/* The utilization of a card and of its processes over the last whole sixth of a second, from the
 * engines' meters. */

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

/* ---- of processes ---- */

/* The last answer. A later call is answered for all the time in between. */
typedef struct Answer {
        unsigned long long time; /* us since 1970; 0: none yet */
        uint64_t at;             /* ns, of the engine's clock */
        unsigned n;
        struct {
                uint32_t client, group;
                uint64_t ran;
        } groups[ENGINE_GROUPS];
} Answer;

static Answer answers[DRIVER_CARDS]; /* under the lock */

static void remember(Answer *a, const EngineUsage *usage, unsigned long long time) {
        a->time = time;
        a->at = usage->now;
        a->n = usage->n;
        for (unsigned g = 0; g < usage->n; g++) {
                a->groups[g].client = usage->groups[g].client;
                a->groups[g].group = usage->groups[g].group;
                a->groups[g].ran = usage->groups[g].ran.all;
        }
}

/* ns of one group since then; a group that did not exist then began at 0. */
static uint64_t ran_since(const Answer *a, const EngineUsage *usage, unsigned g) {
        uint64_t now = usage->groups[g].ran.all;

        for (unsigned i = 0; i < a->n; i++)
                if (a->groups[i].client == usage->groups[g].client &&
                    a->groups[i].group == usage->groups[g].group)
                        return now > a->groups[i].ran ? now - a->groups[i].ran : 0;
        return now;
}

/* Percent of the time since the answer, or without one of the last whole sixth of a second. A
 * process may have several groups. */
static unsigned add_up(const Answer *a, const EngineUsage *usage, NvmlProcessSample *list) {
        uint64_t span = a ? usage->now - a->at : ENGINE_WINDOW_NSEC, ns[ENGINE_GROUPS];
        unsigned n = 0;

        for (unsigned g = 0; g < usage->n; g++) {
                uint64_t ran = a ? ran_since(a, usage, g) : usage->groups[g].ran.before;
                unsigned i = 0;

                while (i < n && list[i].pid != usage->groups[g].pid)
                        i++;
                if (i == n) {
                        list[n] = (NvmlProcessSample){.pid = usage->groups[g].pid};
                        ns[n++] = 0;
                }
                ns[i] += ran;
        }
        for (unsigned i = 0; i < n; i++)
                list[i].sm =
                        (unsigned) (((ns[i] < span ? ns[i] : span) * 100 + span / 2) / (span > 0 ? span : 1));
        return n;
}

/* Processes with work since then. A call with a time does not list the others. */
static unsigned drop_idle(NvmlProcessSample *list, unsigned n) {
        unsigned kept = 0;

        for (unsigned i = 0; i < n; i++)
                if (list[i].sm > 0)
                        list[kept++] = list[i];
        return kept;
}

static bool is_since(const Answer *a, unsigned long long last_seen) {
        unsigned long long apart = a->time > last_seen ? a->time - last_seen : last_seen - a->time;

        return a->time > 0 && last_seen > 0 && apart <= ENGINE_WINDOW_NSEC / 1000;
}

/* count: in, the room; out, the number. Pids are those of the server: a program in another pid
 * namespace finds numbers that are not its own. */
NVML_API NvmlReturn nvmlDeviceGetProcessUtilization(NvmlHandle h, NvmlProcessSample *ret, unsigned *count,
                                                    unsigned long long last_seen) {
        LOCKED;
        NvmlProcessSample list[ENGINE_GROUPS];
        unsigned long long now = clock_of(CLOCK_REALTIME) / 1000;
        EngineUsage usage;
        NvmlReturn r = read_usage(h, &usage);
        Answer *answer;
        unsigned n, room;
        bool since;

        if (r != NVML_SUCCESS || !count)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        answer = &answers[h - nvml.cards];
        since = is_since(answer, last_seen);
        n = last_seen < now ? add_up(since ? answer : NULL, &usage, list) : 0;
        if (last_seen > 0)
                n = drop_idle(list, n);
        room = ret ? *count : 0;
        *count = n;
        if (n > room)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        for (unsigned i = 0; i < n; i++) {
                ret[i] = list[i];
                ret[i].time = now;
        }
        remember(answer, &usage, now);
        return n == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}
