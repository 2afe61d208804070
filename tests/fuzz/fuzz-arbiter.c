/* SPDX-License-Identifier: Apache-2.0 */

/* Any two files and any doorbell as a tenant of the arbiter: it is admitted or refused, and its
 * report drives the engines of two cards, beside an honest tenant. It may have windows on both
 * cards together. The input is a list of changes to good files: which file (bit 0: limits,
 * counters; bit 1: truncate it there), where (two bytes), how many bytes, the bytes. After each
 * change the engines go on by the time that the bytes say. */

#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "arbiter/joined.h"
#include "arbiter/overrun_report.h"
#include "arbiter/slice_channel.h"
#include "slicedir/slice_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];
static int directory = -1;

static void remove_all(void) {
        (void) unlinkat(directory, "limits", 0);
        (void) unlinkat(directory, "counters", 0);
        (void) unlinkat(directory, SLICE_DOORBELL, 0);
        (void) rmdir(path);
}

static void make_directory(void) {
        (void) snprintf(path, sizeof path, "/dev/shm/fuzz-arbiter-XXXXXX");
        if (!mkdtemp(path)) {
                (void) snprintf(path, sizeof path, "/tmp/fuzz-arbiter-XXXXXX");
                assert(mkdtemp(path));
        }
        directory = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        assert(directory >= 0);
        assert(atexit(remove_all) == 0);
}

static size_t change_file(const uint8_t *data, size_t size) {
        int fd = openat(directory, data[0] & 1 ? "counters" : "limits", O_RDWR | O_CLOEXEC);
        off_t at = data[1] << 8 | data[2];
        size_t n = data[3] < size - 4 ? data[3] : size - 4;

        assert(fd >= 0);
        if (data[0] & 2)
                assert(ftruncate(fd, at) == 0);
        else
                assert(pwrite(fd, data + 4, n, at) == (ssize_t) n);
        (void) close(fd);
        return 4 + n;
}

static void pass(Engine *e, const TenantReport *report, uint32_t tenant, uint64_t now) {
        TenantReport honest = {.want_since = 1, .n_active = 1, .drained = true};

        engine_report(e, now, tenant, report);
        honest.busy = e->tenants[0].window.granted;
        engine_report(e, now, 0, &honest);
        engine_advance(e, now);
}

static uint64_t decide(Engine *e, uint32_t tenant, uint64_t now) {
        uint64_t next = engine_decide(e, now);
        OverrunReport event;

        assert(next > now);
        assert(!(e->tenants[0].window.open && e->tenants[tenant].window.open));
        assert(e->tenants[tenant].account.balance >= -(int64_t) now);
        while (overrun_report_next(e, &event))
                assert(event.tenant == tenant);
        return next;
}

static Engine engines[2];
static Joined joined;

static uint64_t step(SliceChannel *s, uint32_t tenant, uint64_t now) {
        Engine *cards[2] = {&engines[0], &engines[1]};
        uint64_t next = UINT64_MAX;
        TenantReport report;

        slice_channel_read(s, now, now % 2 == 0, now % 3 == 0, &report);
        for (unsigned i = 0; i < 2; i++)
                pass(cards[i], &report, tenant, now);
        joined_plan(&joined, cards, 2, now);
        assert(joined.next > now);
        for (unsigned i = 0; i < 2; i++) {
                uint64_t one = decide(cards[i], tenant, now);

                next = one < next ? one : next;
        }
        slice_channel_write(s, &engines[now % 2].tenants[tenant].window, now);
        (void) slice_channel_policy_changed(s);
        (void) slice_channel_drain_doorbell(s, now);
        return joined.next < next ? joined.next : next;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        SliceSpec spec = {
                .limit = UINT64_C(2154) << 20, .request.percent = 30, .uuid = "GPU-0", .container = "a/b/c"};
        TenantPolicy honest = tenant_policy(&(CardCompute){.policy = COMPUTE_UNSET},
                                            &(ComputeRequest){.percent = 50}),
                     policy;
        uint64_t now = 1000000000;
        Fault fault = FAULT_NULL;
        int tenant = -1;
        SliceChannel s;

        if (directory < 0)
                make_directory();
        (void) unlinkat(directory, "counters", 0);
        assert(slice_files_make(directory, &spec, &fault) == 0);
        while (size >= 4 && (data[0] & 4)) { /* before it is admitted */
                size_t n = change_file(data, size);

                data += n;
                size -= n;
        }
        if (slice_channel_open(directory, &s) != 0)
                return 0;
        policy = tenant_policy(&s.compute, &s.request);
        joined = (Joined){.next = 0};
        for (unsigned i = 0; i < 2; i++) {
                engine_init(&engines[i], now);
                assert(engine_add(&engines[i], now, &honest, 0, false) == 0);
                tenant = engine_add(&engines[i], now, &policy, 0, size % 2 == 0);
                engines[i].tenants[tenant].set = size % 3 != 0; /* of two thirds of the inputs */
        }
        for (unsigned i = 0; i < 4; i++)
                now = step(&s, (uint32_t) tenant, now);
        while (size >= 4) {
                size_t n = change_file(data, size);
                uint64_t next = step(&s, (uint32_t) tenant, now);

                now = data[0] & 8 ? next : now + ((uint64_t) data[1] << (data[2] % 40));
                data += n;
                size -= n;
        }
        slice_channel_done(&s);
        return 0;
}
