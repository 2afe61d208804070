/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The user's side of the driver: the common part of the simulated libcuda.so.1 and
 * libnvidia-ml.so.1. It opens the driver's files, in $ALIQUOT_SIM_DIR (not in set-user-ID programs)
 * or in /dev. It calls them through libc's `ioctl`, with the structures of gpu/rm/rm.h, so that an
 * interposed library sees every call, as with the real libraries.
 *
 * Functions that ask the driver return its status (RM_OK, RM_ERR_...), or DRIVER_E_FILE with errno
 * if the file itself refused. Not thread-safe: the owner of a Driver has a lock. libc only, because
 * foreign programs load this. */

#include <stdbool.h>

#include "gpu/rm/release.h"
#include "gpu/rm/rm.h"

enum { DRIVER_CARDS = RM_ATTACHED_MAX };
#define DRIVER_E_FILE 0xFFFFFFFFu

typedef struct DriverCard {
        int fd; /* nvidiaN; cards whose file cannot be opened are left out */
        uint32_t gpu, instance, minor;
        uint32_t device, subdevice; /* our objects */
        char uuid[48];              /* GPU-... */
        uint8_t uuid_bytes[16];
        char name[64];
} DriverCard;

typedef struct Driver {
        int ctl;
        uint32_t client;
        uint32_t next; /* handles are chosen here */
        char version[64];
        unsigned n;
        DriverCard cards[DRIVER_CARDS];
} Driver;

/* The figures of nvidia-smi, in bytes. */
typedef struct DriverMemory {
        uint64_t total, free, used, reserved;
} DriverMemory;

/* Opens the files and finds the cards, by PCI address. RM_OK also without a card. DRIVER_E_FILE: no
 * driver here. */
uint32_t driver_open(Driver *d);
/* As cuDriverGetVersion() of that driver's release; also of a Driver that was not opened, and the
 * newest where none answers. */
int driver_cuda_version(const Driver *d);
void driver_close(Driver *d); /* a Driver that was never opened must be {.ctl = -1} */

/* "<dir>/<name>" cut to size; a descriptor or -1 with errno. */
int driver_open_file(const char *name);

/* Says no size for the parameters, as libcuda does: the driver takes the class's. */
uint32_t driver_alloc(Driver *d, uint32_t parent, uint32_t class, void *params, uint32_t *ret);
uint32_t driver_free(const Driver *d, uint32_t object); /* with all below it */
uint32_t driver_control(const Driver *d, uint32_t object, uint32_t cmd, void *params, uint32_t size);
/* NULL where the driver is older than all that are known. */
const RmRelease *driver_release(const Driver *d);
/* With as many of the `newest` bytes as the driver's release takes, or with more of them than that.
 * params has room for all releases. */
uint32_t driver_control_by_release(const Driver *d, uint32_t object, uint32_t cmd, void *params,
                                   uint32_t newest);
/* Duplicates the memory (client, object) below `parent`. */
uint32_t driver_dup(Driver *d, uint32_t parent, uint32_t client, uint32_t object, uint32_t *ret);

/* size: in and out; the driver rounds it */
uint32_t driver_alloc_memory(Driver *d, const DriverCard *card, uint64_t *size, uint32_t *ret);
uint32_t driver_memory(const Driver *d, const DriverCard *card, DriverMemory *ret);
/* Changes the figures to those of the limit on the caller's own cgroup, as libraries show them from
 * 615 on. The driver's own account answers for the nearest limited cgroup. The dmem controller
 * answers for the leaf, or for the nearest cgroup that has its files. */
void driver_limit_memory(const Driver *d, const DriverCard *card, DriverMemory *m);
