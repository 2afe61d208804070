/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/user/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gpu/rm/query.h"
#include "gpu/rm/release.h"
#include "sim/user/dmem.h"
#include "sim/user/limits.h"

enum { FIRST_HANDLE = 0x5C000001 }; /* the first handle of the real libcuda */

/* ---- files ---- */

int driver_open_file(const char *name) {
        const char *dir = secure_getenv("ALIQUOT_SIM_DIR");
        char path[4096];
        int n = snprintf(path, sizeof path, "%s/%s", dir && dir[0] != '\0' ? dir : "/dev", name);

        if (n < 0 || (size_t) n >= sizeof path) {
                errno = ENAMETOOLONG;
                return -1;
        }
        return open(path, O_RDWR | O_CLOEXEC);
}

/* Returns what the file's ioctl() returns: 0, or -1 with errno. */
static int call(int fd, uint32_t nr, void *params, size_t size) {
        int r;

        do
                r = ioctl(fd, (unsigned long) RM_IOCTL(nr, size), params);
        while (r < 0 && errno == EINTR);
        return r;
}

/* ---- objects ---- */

uint32_t driver_alloc(Driver *d, uint32_t parent, uint32_t class, void *params, uint32_t *ret) {
        RmAllocRights p = {.root = d->client,
                           .parent = parent,
                           .new = class == RM_CLASS_ROOT_CLIENT ? 0 : d->next++,
                           .class_ = class,
                           .params = (uint64_t) (uintptr_t) params};

        if (call(d->ctl, RM_ESC_ALLOC, &p, sizeof p) < 0)
                return DRIVER_E_FILE;
        if (p.status == RM_OK)
                *ret = p.new;
        return p.status;
}

uint32_t driver_free(const Driver *d, uint32_t object) {
        RmFree p = {.root = d->client, .parent = 0, .old = object};

        return call(d->ctl, RM_ESC_FREE, &p, sizeof p) < 0 ? DRIVER_E_FILE : p.status;
}

uint32_t driver_control(const Driver *d, uint32_t object, uint32_t cmd, void *params, uint32_t size) {
        RmControl p = {.client = d->client,
                       .object = object,
                       .cmd = cmd,
                       .params = (uint64_t) (uintptr_t) params,
                       .params_size = size};

        return call(d->ctl, RM_ESC_CONTROL, &p, sizeof p) < 0 ? DRIVER_E_FILE : p.status;
}

const RmRelease *driver_release(const Driver *d) {
        return rm_release_of((unsigned) strtoul(d->version, NULL, 10));
}

uint32_t driver_control_by_release(const Driver *d, uint32_t object, uint32_t cmd, void *params,
                                   uint32_t newest) {
        const RmRelease *facts = driver_release(d);

        return driver_control(d, object, cmd, params, facts ? rm_release_params(facts, cmd, newest) : newest);
}

uint32_t driver_dup(Driver *d, uint32_t parent, uint32_t client, uint32_t object, uint32_t *ret) {
        RmDup p = {.client = d->client,
                   .parent = parent,
                   .object = d->next++,
                   .source_client = client,
                   .source_object = object};

        if (call(d->ctl, RM_ESC_DUP_OBJECT, &p, sizeof p) < 0)
                return DRIVER_E_FILE;
        if (p.status == RM_OK)
                *ret = p.object;
        return p.status;
}

/* ---- memory ---- */

uint32_t driver_alloc_memory(Driver *d, const DriverCard *card, uint64_t *size, uint32_t *ret) {
        RmMemoryParams m = {.owner = d->client, .size = *size, .alignment = 0x10000};
        uint32_t status = driver_alloc(d, card->device, RM_CLASS_MEMORY_LOCAL, &m, ret);

        if (status == RM_OK && m.size >= *size)
                *size = m.size;
        return status;
}

/* Asks for the same indices as the real libraries, so that a gate which rewrites the answers is
 * tested with all of them. */
uint32_t driver_memory(const Driver *d, const DriverCard *card, DriverMemory *ret) {
        RmFbInfoV2 p = {.n = 3,
                        .list = {{RM_FB_TOTAL_RAM_SIZE, 0}, {RM_FB_HEAP_SIZE, 0}, {RM_FB_HEAP_FREE, 0}}};
        uint32_t status = driver_control_by_release(d, card->subdevice, RM_CTRL_FB_INFO_V2, &p, sizeof p);

        if (status != RM_OK)
                return status;
        ret->total = (uint64_t) p.list[0].data << 10;
        ret->free = (uint64_t) p.list[2].data << 10;
        ret->reserved =
                p.list[0].data > p.list[1].data ? (uint64_t) (p.list[0].data - p.list[1].data) << 10 : 0;
        ret->used = ret->total > ret->free + ret->reserved ? ret->total - ret->free - ret->reserved : 0;
        return RM_OK;
}

/* The path of the own cgroup of version 2 below its mount. false: it is not known. */
static bool own_cgroup(char ret[static 4096]) {
        FILE *f = fopen("/proc/self/cgroup", "re");
        char line[4096];
        bool found = false;

        while (f && !found && fgets(line, sizeof line, f))
                found = strncmp(line, "0::/", 4) == 0;
        if (f)
                (void) fclose(f); /* it was only read */
        if (found)
                (void) snprintf(ret, 4096, "/sys/fs/cgroup%.*s", (int) strcspn(line + 3, "\n"), line + 3);
        return found;
}

static bool read_limit(const DriverCard *card, uint64_t *hard, uint64_t *used) {
        char path[4096], file[4128], region[DMEM_REGION];

        dmem_region(card->gpu, region);
        for (bool more = own_cgroup(path); more && strrchr(path, '/'); *strrchr(path, '/') = '\0') {
                (void) snprintf(file, sizeof file, "%s/dmem.max", path); /* it fits */
                if (!dmem_read(file, region, hard))
                        continue;
                (void) snprintf(file, sizeof file, "%s/dmem.current", path); /* as above */
                return dmem_read(file, region, used) && *used != UINT64_MAX;
        }
        return false;
}

static bool ask_limit(const Driver *d, const DriverCard *card, uint64_t *hard, uint64_t *used) {
        SimGetLimits p = {.cgroup = SIM_LIMITS_CURRENT_PROCESS};

        if (driver_control(d, d->client, SIM_CTRL_GET_LIMITS, &p, sizeof p) != RM_OK)
                return false;
        for (uint32_t i = 0; i < p.n && i < SIM_LIMITS_MAX; i++)
                if (p.list[i].gpu == card->gpu) {
                        *hard = p.list[i].hard;
                        *used = p.list[i].used;
                        return true;
                }
        return false;
}

void driver_limit_memory(const Driver *d, const DriverCard *card, DriverMemory *m) {
        SimLimitsImpl impl = {0};
        uint64_t hard, used;
        bool found;

        if (strtoul(d->version, NULL, 10) < SIM_RELEASE_WITH_LIMITS ||
            driver_control(d, d->client, SIM_CTRL_LIMITS_IMPL, &impl, sizeof impl) != RM_OK)
                return;
        found = impl.kind == SIM_LIMITS_MISC   ? ask_limit(d, card, &hard, &used)
                : impl.kind == SIM_LIMITS_DMEM ? read_limit(card, &hard, &used)
                                               : false;
        if (!found || hard >= m->total)
                return;
        *m = (DriverMemory){.total = hard, .used = used, .free = hard > used ? hard - used : 0};
}

/* ---- cards ---- */

static void close_card(DriverCard *c) {
        if (c->fd >= 0)
                (void) close(c->fd);
        c->fd = -1;
}

static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "GPU-" and 32 hexadecimal digits with dashes. */
static void take_uuid(DriverCard *c, const RmGidInfo *gid) {
        size_t n = 0, length = strnlen((const char *) gid->data, sizeof gid->data);
        const char *text = (const char *) gid->data;

        if (length >= sizeof c->uuid)
                length = sizeof c->uuid - 1;
        memcpy(c->uuid, text, length);
        for (size_t i = 4; i < length && n < 2 * sizeof c->uuid_bytes; i++) {
                int digit = hex_digit(text[i]);

                if (digit >= 0) {
                        c->uuid_bytes[n / 2] = (uint8_t) (c->uuid_bytes[n / 2] << 4 | digit);
                        n++;
                }
        }
}

/* Drivers before 595 also return the name in 16-bit letters, and require room for that. A card
 * without a name is valid. */
static void take_name(const Driver *d, DriverCard *c) {
        union {
                RmNameString name;
                uint8_t older[132];
        } p = {.older = {0}};

        if (driver_control_by_release(d, c->subdevice, RM_CTRL_NAME_STRING, &p, sizeof p.name) == RM_OK)
                memcpy(c->name, p.name.name, strnlen((const char *) p.name.name, sizeof c->name - 1));
}

static uint32_t describe(Driver *d, DriverCard *c) {
        RmGidInfo gid = {.flags = RM_GID_ASCII};
        uint32_t status = driver_control(d, c->subdevice, RM_CTRL_GID_INFO, &gid, sizeof gid);

        if (status != RM_OK)
                return status;
        take_uuid(c, &gid);
        take_name(d, c);
        return RM_OK;
}

static uint32_t make_objects(Driver *d, DriverCard *c) {
        RmDeviceParams device = {.device = c->instance};
        RmSubdeviceParams subdevice = {.subdevice = 0};
        uint32_t status = driver_alloc(d, d->client, RM_CLASS_DEVICE, &device, &c->device);

        if (status == RM_OK)
                status = driver_alloc(d, c->device, RM_CLASS_SUBDEVICE, &subdevice, &c->subdevice);
        if (status == RM_OK)
                status = describe(d, c);
        return status;
}

/* The minor number comes from the driver; without an answer, files are numbered like the cards. */
static uint32_t minor_of(const Driver *d, uint32_t gpu, uint32_t otherwise) {
        RmCardInfo cards[DRIVER_CARDS] = {{.valid = 0}};

        if (call(d->ctl, RM_ESC_CARD_INFO, cards, sizeof cards) < 0)
                return otherwise;
        for (size_t i = 0; i < DRIVER_CARDS; i++)
                if (cards[i].valid && cards[i].gpu == gpu)
                        return cards[i].minor;
        return otherwise;
}

/* A card that cannot be opened or asked is left out: a container has the files of some cards
 * only. */
static void add_card(Driver *d, uint32_t gpu) {
        DriverCard *c = &d->cards[d->n];
        RmIdInfoV2 id = {.gpu = gpu};
        char name[32];

        if (driver_control(d, d->client, RM_CTRL_ID_INFO_V2, &id, sizeof id) != RM_OK)
                return;
        *c = (DriverCard){.fd = -1, .gpu = gpu, .instance = id.device};
        c->minor = minor_of(d, gpu, id.device);
        (void) snprintf(name, sizeof name, "nvidia%u", c->minor);
        c->fd = driver_open_file(name);
        if (c->fd >= 0) /* it belongs to this client; a driver without the call works, too */
                (void) call(c->fd, RM_ESC_REGISTER_FD, &(RmRegisterFd){.ctl = d->ctl}, sizeof(RmRegisterFd));
        if (c->fd >= 0 && make_objects(d, c) == RM_OK) {
                d->n++;
                return;
        }
        if (c->device != 0)
                (void) driver_free(d, c->device);
        close_card(c);
}

static uint32_t find_cards(Driver *d) {
        RmAttachedIds ids;
        uint32_t status;

        for (size_t i = 0; i < RM_ATTACHED_MAX; i++)
                ids.gpus[i] = RM_GPU_ID_NONE;
        status = driver_control(d, d->client, RM_CTRL_ATTACHED_IDS, &ids, sizeof ids);
        if (status != RM_OK)
                return status;
        for (size_t i = 0; i < RM_ATTACHED_MAX && ids.gpus[i] != RM_GPU_ID_NONE; i++)
                add_card(d, ids.gpus[i]);
        return RM_OK;
}

/* ---- the whole ---- */

static void ask_version(int ctl, char ret[static sizeof((Driver *) 0)->version]) {
        RmVersion version = {.cmd = RM_VERSION_QUERY};

        if (call(ctl, RM_ESC_CHECK_VERSION, &version, sizeof version) == 0)
                memcpy(ret, version.version, strnlen(version.version, sizeof version.version - 1));
}

/* The CUDA version of each branch. 535 to 560 and 570 to 595: NVIDIA's release notes of CUDA 13.2
 * Update 2, "CUDA Toolkit and Corresponding Driver Versions". 610 and 620: cuda_variant in NVIDIA's
 * redistrib_610.57.04.json and redistrib_620.70.06.json. For 565, which no toolkit has, and for 615
 * no source of NVIDIA was found: nvidia-smi of 565.57.01 and 615.71.09 in public logs. */
int driver_cuda_version(const Driver *d) {
        static const struct {
                unsigned long branch;
                int cuda;
        } versions[] = {{535, 12020}, {545, 12030}, {550, 12040}, {555, 12050}, {560, 12060},
                        {565, 12070}, {570, 12080}, {575, 12090}, {580, 13000}, {590, 13010},
                        {595, 13020}, {610, 13030}, {615, 13040}, {620, 13050}};
        size_t n = sizeof versions / sizeof *versions;
        Driver own = {.ctl = -1};
        unsigned long branch;

        if (d->version[0] == '\0') {
                own.ctl = driver_open_file("nvidiactl");
                if (own.ctl >= 0) {
                        ask_version(own.ctl, own.version);
                        (void) close(own.ctl);
                }
                d = &own;
        }
        branch = d->version[0] != '\0' ? strtoul(d->version, NULL, 10) : versions[n - 1].branch;
        while (n > 1 && versions[n - 1].branch > branch)
                n--;
        return versions[n - 1].cuda;
}

uint32_t driver_open(Driver *d) {
        uint32_t status, client = 0;

        *d = (Driver){.ctl = driver_open_file("nvidiactl"), .next = FIRST_HANDLE};
        if (d->ctl < 0)
                return DRIVER_E_FILE;
        ask_version(d->ctl, d->version);
        status = driver_alloc(d, 0, RM_CLASS_ROOT_CLIENT, NULL, &client);
        d->client = client;
        if (status == RM_OK)
                status = find_cards(d);
        if (status != RM_OK)
                driver_close(d);
        return status;
}

void driver_close(Driver *d) {
        for (unsigned i = 0; i < d->n; i++)
                close_card(&d->cards[i]);
        if (d->ctl >= 0)
                (void) close(d->ctl); /* closing it frees its clients */
        *d = (Driver){.ctl = -1};
}
