/* SPDX-License-Identifier: Apache-2.0 */

/* Questions to the driver by raw calls, to check what src/gpu/rm and the gate assume. Each line is
 * the question and the answer; tests/gpu/README.md says which assumption it belongs to. Nothing is
 * judged here. */

#include <string.h>
#include <unistd.h>

#include "case.h"
#include "gpu/rm/export.h"
#include "gpu/rm/query.h"
#include "sim/user/driver.h"

enum { ABSENT = 0x5C7F0000 }; /* an unused handle */

/* By NVML, which knows its driver: structures of the driver's interface differ in size between
 * versions. */
static NvmlHandle card_by_nvml;

static uint64_t free_of(void) {
        NvmlMemory1 m = {0};

        OK(CU(nvmlDeviceGetMemoryInfo)(card_by_nvml, &m));
        return m.free;
}

/* ---- how sizes are rounded, and what the card has less afterwards ---- */

static void probe_size(Driver *d, uint64_t asked, uint32_t page) {
        const DriverCard *card = &d->cards[0];
        RmMemoryParams m = {
                .owner = d->client, .size = asked, .alignment = 0x10000, .attr = page << RM_ATTR_PAGE_SHIFT};
        uint64_t before = free_of();
        uint32_t object = 0, status = driver_alloc(d, card->device, RM_CLASS_MEMORY_LOCAL, &m, &object);

        (void) printf("size asked %llu page %u status 0x%x got %llu taken %lld attr 0x%x\n",
                      (unsigned long long) asked, page, status, (unsigned long long) m.size,
                      (long long) (before - free_of()), m.attr);
        if (status == RM_OK)
                (void) driver_free(d, object);
        if (free_of() != before)
                (void) printf("size asked %llu page %u left %lld\n", (unsigned long long) asked, page,
                              (long long) (before - free_of()));
}

static void probe_sizes(Driver *d) {
        static const uint64_t sizes[] = {1,           4096,        65535,        65536,       65537,
                                         MIB,         2 * MIB - 1, 2 * MIB,      2 * MIB + 1, 3 * MIB,
                                         5 * MIB + 1, 33 * MIB,    100 * MIB + 1};

        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (uint32_t page = RM_ATTR_PAGE_DEFAULT; page <= RM_ATTR_PAGE_HUGE; page++)
                        probe_size(d, sizes[i], page);
}

/* ---- channel groups ---- */

static void probe_group(Driver *d) {
        enum { GROUPS = 4 };
        const DriverCard *card = &d->cards[0];
        uint8_t params[32] = {0}; /* NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS: the engine's type is at 12 */
        uint32_t engine = 1;      /* NV2080_ENGINE_TYPE_GRAPHICS */
        uint64_t before = free_of();

        memcpy(params + 12, &engine, sizeof engine);
        for (int i = 1; i <= GROUPS; i++) {
                uint32_t object = 0,
                         status = driver_alloc(d, card->device, RM_CLASS_CHANNEL_GROUP, params, &object);
                RmCtxBufferSize size = {.channel = object};
                uint32_t told =
                        driver_control(d, card->subdevice, RM_CTRL_CTX_BUFFER_SIZE, &size, sizeof size);

                (void) printf("group %d status 0x%x taken %lld ctx-buffer status 0x%x bytes %llu\n", i,
                              status, (long long) (before - free_of()), told,
                              (unsigned long long) size.bytes);
        }
}

/* ---- the other doors ---- */

static uint32_t control(const Driver *d, uint32_t object, uint32_t cmd, void *params, uint32_t size) {
        return driver_control(d, object, cmd, params, size);
}

/* The region's structure has 17 flags before 580, and 18 since. */
static void probe_regions(const Driver *d) {
        static const uint32_t strides[] = {sizeof(RmFbRegion), 48};
        uint64_t words[sizeof(RmFbRegions) / 8];

        for (size_t k = 0; k < sizeof strides / sizeof *strides; k++) {
                uint32_t size = 8 + RM_FB_REGION_MAX * strides[k], status;

                memset(words, 0, sizeof words);
                status = control(d, d->cards[0].subdevice, RM_CTRL_FB_REGION_INFO, words, size);
                (void) printf("regions size %u status 0x%x n %u\n", size, status, (uint32_t) words[0]);
                for (size_t i = 0; status == RM_OK && i < (uint32_t) words[0] && i < RM_FB_REGION_MAX; i++) {
                        const uint64_t *region = words + 1 + i * strides[k] / 8;

                        (void) printf("region %zu base 0x%llx limit 0x%llx reserved %llu\n", i,
                                      (unsigned long long) region[0], (unsigned long long) region[1],
                                      (unsigned long long) region[2]);
                }
        }
}

/* Every index on its own: whether the driver knows it, and its answer. Then the length of the other
 * form's list. */
static void probe_fb(const Driver *d) {
        uint32_t subdevice = d->cards[0].subdevice;

        for (uint32_t index = 0; index <= 0x60; index++) {
                RmFbEntry entry = {.index = index};
                RmFbInfo info = {.n = 1, .list = (uint64_t) (uintptr_t) &entry};
                uint32_t status = control(d, subdevice, RM_CTRL_FB_INFO, &info, sizeof info);

                (void) printf("fb index 0x%02x status 0x%x data %u\n", index, status, entry.data);
        }
        for (uint32_t n = 0x30; n <= RM_FB_LIST_MAX; n++) {
                RmFbInfoV2 info = {.n = 1, .list = {{RM_FB_HEAP_FREE, 0}}};
                uint32_t size = offsetof(RmFbInfoV2, list) + n * (uint32_t) sizeof(RmFbEntry);

                if (control(d, subdevice, RM_CTRL_FB_INFO_V2, &info, size) == RM_OK)
                        (void) printf("fb list 0x%02x free %u\n", n, info.list[0].data);
        }
}

/* The gate recognises live clients by the driver's answer to a duplicate of a missing object. */
static void probe_duplicates(Driver *d) {
        uint32_t object = 0;

        (void) printf("dup own-client absent-object status 0x%x\n",
                      driver_dup(d, d->client, d->client, ABSENT, &object));
        (void) printf("dup own-client null-object status 0x%x\n",
                      driver_dup(d, d->client, d->client, 0, &object));
        (void) printf("dup absent-client status 0x%x\n", driver_dup(d, d->client, ABSENT, ABSENT, &object));
        (void) printf("dup absent-client null-object status 0x%x\n",
                      driver_dup(d, d->client, ABSENT, 0, &object));
}

/* The control by which the gate measures foreign memory. */
static void probe_surface(Driver *d) {
        RmFbEntry list[] = {{.index = RM_SURFACE_ADDR_SPACE},
                            {.index = RM_SURFACE_SIZE},
                            {.index = RM_SURFACE_SIZE_LO}, /* from 580 on */
                            {.index = RM_SURFACE_SIZE_HI}};
        RmSurfaceInfo info = {.n = 4, .list = (uint64_t) (uintptr_t) list};
        uint64_t size = 4 * MIB;
        uint32_t object = 0, status = driver_alloc_memory(d, &d->cards[0], &size, &object);

        if (status == RM_OK)
                status = control(d, object, RM_CTRL_SURFACE_INFO, &info, sizeof info);
        (void) printf("surface status 0x%x place %u units %u size %u high %u\n", status, list[0].data,
                      list[1].data, list[2].data, list[3].data);
        (void) driver_free(d, object);
}

/* Whether an unprivileged caller finds the scheduling controls. They go to an object of another
 * class, so that nothing happens. */
static void probe_schedule(const Driver *d) {
        static const struct {
                uint32_t cmd, size;
        } controls[] = {{RM_CTRL_SET_TIMESLICE, sizeof(RmTimeslice)},
                        {RM_CTRL_PREEMPT, sizeof(RmPreempt)},
                        {RM_CTRL_DISABLE_CHANNELS, sizeof(RmDisableChannels)},
                        {RM_CTRL_PREEMPTION_MODE, sizeof(RmPreemptionMode)}};
        uint8_t nothing[sizeof(RmDisableChannels)] = {0};

        for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
                (void) printf("schedule cmd 0x%x status 0x%x\n", controls[i].cmd,
                              control(d, d->client, controls[i].cmd, nothing, controls[i].size));
}

/* ---- time ---- */

static void probe_time(Driver *d) {
        enum { N = 1000 };
        unsigned long long begin = case_now(), taken;
        uint32_t objects[N];
        size_t n = 0;
        uint64_t size;

        while (n < N && (size = 2 * MIB, driver_alloc_memory(d, &d->cards[0], &size, &objects[n])) == RM_OK)
                n++;
        taken = case_now() - begin;
        begin = case_now();
        for (size_t i = 0; i < n; i++)
                (void) driver_free(d, objects[i]);
        if (n > 0)
                (void) printf("time pieces %zu take-ns %llu give-ns %llu\n", n, taken / n,
                              (case_now() - begin) / n);
}

int case_probe(char **arguments) {
        uint32_t status;
        Driver d;

        (void) arguments;
        OK(CU(nvmlInit_v2)()); /* it attaches the cards; the driver does not count them before */
        OK(CU(nvmlDeviceGetHandleByIndex_v2)(0, &card_by_nvml));
        status = driver_open(&d);
        if (status != RM_OK || d.n == 0)
                case_skip("the driver, asked directly, says 0x%x", status);
        (void) printf("driver %s card %s\n", d.version, d.cards[0].name);
        (void) printf("client 0x%x\n", d.client);
        probe_sizes(&d);
        probe_group(&d);
        probe_regions(&d);
        probe_fb(&d);
        probe_duplicates(&d);
        probe_surface(&d);
        probe_schedule(&d);
        probe_time(&d);
        driver_close(&d);
        return 0;
}
