/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/host_cards.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "gpu/cards/nvml.h"

#define MIB (UINT64_C(1) << 20)

/* Identifies a file of the driver. Files of a simulated driver are no character devices, and are
 * identified by device and inode. */
static int read_file(const char *devices, const char *name, SliceFile *ret, Fault *fault) {
        char path[512];
        struct stat st;

        if ((size_t) snprintf(path, sizeof path, "%s/%s", devices, name) >= sizeof path)
                return fault_set(fault, -ENAMETOOLONG, "the path is too long: %s", devices);
        if (stat(path, &st) < 0)
                return errno == ENOENT
                               ? fault_set(fault, HOST_CARDS_E_NONE, "%s is not there", path)
                               : fault_set(fault, -errno, "cannot look at %s: %s", path, strerror(errno));
        *ret = (SliceFile){.rdev = 0};
        if (S_ISCHR(st.st_mode))
                ret->rdev = st.st_rdev;
        else {
                ret->dev = st.st_dev;
                ret->ino = st.st_ino;
        }
        return 0;
}

static int refuse_card(const Nvml *nvml, int r, unsigned index, const char *what, Fault *fault) {
        return fault_set(fault, HOST_CARDS_E_NONE, "card %u does not tell its %s: %s", index, what,
                         nvml_error_text(nvml, r));
}

/* Whether MIG is on. In an instance GET_GID_INFO names the whole card, so its slices could not be
 * told apart. */
static bool has_mig(const Nvml *nvml, NvmlDevice device) {
        unsigned now = 0, pending = 0;

        return nvml->mig && nvml->mig(device, &now, &pending) == NVML_SUCCESS && now == 1;
}

/* Returns the used bytes. The second form omits what the driver reserves for itself (nvml.h,
 * nvmlMemory_v2_t). */
static uint64_t used_of(const Nvml *nvml, NvmlDevice device, const NvmlMemory *memory) {
        NvmlMemory2 exact = {.version = NVML_MEMORY2_VERSION};

        if (nvml->memory2 && nvml->memory2(device, &exact) == NVML_SUCCESS)
                return exact.used;
        return memory->used;
}

/* Adds the processes of one kind. None is added when the card has more of them than there is room
 * for. */
static void read_holders(int (*list)(NvmlDevice, unsigned *, NvmlProcess *), NvmlDevice device,
                         HostCard *card) {
        NvmlProcess processes[HOST_CARDS_HOLDERS];
        unsigned n = ELEMENTSOF(processes);

        if (!list || list(device, &n, processes) != NVML_SUCCESS)
                return;
        for (unsigned i = 0; i < n && card->n_holders < HOST_CARDS_HOLDERS; i++)
                card->holders[card->n_holders++] = (HostHolder){processes[i].pid, processes[i].bytes};
}

static int read_card(const Nvml *nvml, unsigned index, const char *devices, HostCard *ret, Fault *fault) {
        char uuid[NVML_TEXT_SIZE] = "", name[32];
        NvmlMemory memory = {0};
        NvmlDevice device;
        unsigned minor = 0;
        int r;

        *ret = (HostCard){.index = index};
        r = nvml->handle(index, &device);
        if (r != NVML_SUCCESS)
                return refuse_card(nvml, r, index, "handle", fault);
        r = nvml->uuid(device, uuid, sizeof uuid);
        if (r != NVML_SUCCESS)
                return refuse_card(nvml, r, index, "uuid", fault);
        r = nvml->minor(device, &minor);
        if (r != NVML_SUCCESS)
                return refuse_card(nvml, r, index, "minor number", fault);
        r = nvml->memory(device, &memory);
        if (r != NVML_SUCCESS)
                return refuse_card(nvml, r, index, "memory", fault);
        if (has_mig(nvml, device))
                return fault_set(fault, HOST_CARDS_E_NONE,
                                 "card %u: MIG is on; a card is shared only as a whole (nvidia-smi -mig 0)",
                                 index);
        if (strlen(uuid) >= sizeof ret->uuid)
                return fault_set(fault, HOST_CARDS_E_NONE, "card %u: the uuid is too long: %s", index, uuid);
        (void) snprintf(ret->uuid, sizeof ret->uuid, "%s", uuid);
        if (nvml->name(device, ret->model, sizeof ret->model) != NVML_SUCCESS)
                ret->model[0] = '\0';
        ret->minor = minor;
        ret->bytes = memory.total / MIB * MIB;
        ret->used = used_of(nvml, device, &memory);
        read_holders(nvml->compute, device, ret);
        read_holders(nvml->graphics, device, ret);
        (void) snprintf(name, sizeof name, "nvidia%u", minor);
        return read_file(devices, name, &ret->device, fault);
}

static int read_cards(const Nvml *nvml, const char *devices, HostCards *m, Fault *fault) {
        unsigned n = 0;
        int r;

        r = nvml->count(&n);
        if (r != NVML_SUCCESS || n == 0)
                return fault_set(fault, HOST_CARDS_E_NONE, "this machine has no card: %s",
                                 r != NVML_SUCCESS ? nvml_error_text(nvml, r) : "the driver counts none");
        for (unsigned i = 0; i < n && m->n < SLICEDIR_CARDS_MAX; i++) {
                r = read_card(nvml, i, devices, &m->cards[m->n], fault);
                if (r < 0)
                        return r;
                /* a card that is not given to this container, or does not answer, is skipped */
                m->n += r == 0;
        }
        return m->n > 0 ? 0 : HOST_CARDS_E_NONE;
}

int host_cards_read(const char *devices, const char *library, HostCards *ret, Fault *fault) {
        HostCards m = {.n = 0};
        Nvml nvml;
        int r;

        r = read_file(devices, "nvidiactl", &m.ctl, fault);
        if (r == HOST_CARDS_E_NONE)
                return fault_set(
                        fault, r,
                        "%s/nvidiactl is not there: is the NVIDIA driver loaded? Without a card, try "
                        "--simulate 1xTesla-V100-SXM2-16GB:16160MiB",
                        devices);
        if (r != 0)
                return r;
        /* it does not exist before CUDA has run once */
        (void) read_file(devices, "nvidia-uvm", &m.uvm, NULL);
        r = nvml_load(library, "", &nvml, fault);
        if (r != 0)
                return HOST_CARDS_E_NONE;
        r = nvml.init();
        if (r != NVML_SUCCESS)
                return fault_set(fault, HOST_CARDS_E_NONE, "the driver does not answer: %s",
                                 nvml_error_text(&nvml, r));
        r = read_cards(&nvml, devices, &m, fault);
        (void) nvml.shutdown();
        if (r == 0)
                *ret = m;
        return r;
}

static uint64_t larger_of(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

/* Returns what processes hold. The rows of ended ones count until another process needs memory. */
static uint64_t held_of(const SliceReport *report) {
        return report->used - report->dead;
}

/* Returns what a slice reserves. A slice that was resized below what its processes hold keeps that
 * memory. One of a pod returns to its granted size without asking. */
static uint64_t bytes_of(const SliceLimits *limits, const SliceReport *report) {
        uint64_t held = held_of(report) < limits->card_bytes ? held_of(report) : limits->card_bytes;

        return larger_of(held, larger_of(limits->limit, limits->granted));
}

typedef struct Count {
        HostCards *cards;
        const char *except;
} Count;

static int count_slice(void *userdata, const SlicedirEntry *slice) {
        const Count *c = userdata;
        HostCards *m = c->cards;

        if (c->except && strcmp(slice->id, c->except) == 0)
                return 0;
        for (uint32_t i = 0; i < slice->n_cards; i++)
                for (uint32_t k = 0; k < m->n; k++)
                        if (strncmp(slice->cards[i].limits.uuid, m->cards[k].uuid, SLICE_UUID) == 0) {
                                m->cards[k].taken +=
                                        bytes_of(&slice->cards[i].limits, &slice->cards[i].report);
                                m->cards[k].held += held_of(&slice->cards[i].report);
                                m->cards[k].core_taken +=
                                        (uint32_t) larger_of(slice->cards[i].limits.core_percent,
                                                             slice->cards[i].limits.granted_percent);
                        }
        return 0;
}

uint64_t host_cards_outside(const HostCard *card) {
        uint64_t outside = card->used > card->held ? card->used - card->held : 0;

        return outside >= HOST_CARDS_OUTSIDE_MIN ? outside : 0;
}

int host_cards_count_slices(HostCards *m, Slicedir *b, const char *except) {
        return slicedir_each(b, count_slice, &(Count){m, except});
}
