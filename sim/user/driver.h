/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The user's side of the driver: what the simulated libcuda.so.1 and libnvidia-ml.so.1 have in
 * common. It opens the driver's files, in $ALIQUOT_SIM_DIR (not in set-user-ID programs) or in
 * /dev, and speaks gpu/rm/rm.h with them by libc's `ioctl`, so that whoever stands in between sees
 * every call, as with the real libraries.
 *
 * Every function that asks the driver returns its status (RM_OK, RM_ERR_...), or DRIVER_E_FILE when
 * the file itself refused: errno says why. Not thread-safe: who has a Driver has a lock. libc only:
 * foreign programs load this. */

#include <stdbool.h>

#include "gpu/rm/rm.h"

enum { DRIVER_CARDS = RM_ATTACHED_MAX };
#define DRIVER_E_FILE 0xFFFFFFFFu

typedef struct DriverCard {
        int fd; /* nvidiaN; a card whose file cannot be opened is not there */
        uint32_t gpu, instance, minor;
        uint32_t device, subdevice; /* our objects */
        char uuid[48];              /* GPU-... */
        uint8_t uuid_bytes[16];
        char name[64];
} DriverCard;

typedef struct Driver {
        int ctl;
        uint32_t client;
        uint32_t next; /* handles are ours to choose */
        char version[64];
        unsigned n;
        DriverCard cards[DRIVER_CARDS];
} Driver;

/* What nvidia-smi shows, in bytes. */
typedef struct DriverMemory {
        uint64_t total, free, used, reserved;
} DriverMemory;

/* Opens everything and finds the cards, by PCI address. RM_OK also with no card. DRIVER_E_FILE: no
 * driver here. */
uint32_t driver_open(Driver *d);
void driver_close(Driver *d); /* a Driver that was never opened must be {.ctl = -1} */

/* "<dir>/<name>" cut to size; a descriptor or -1 with errno. */
int driver_open_file(const char *name);

uint32_t driver_alloc(Driver *d, uint32_t parent, uint32_t class, void *params, uint32_t size, uint32_t *ret);
uint32_t driver_free(const Driver *d, uint32_t object); /* and all below it */
uint32_t driver_control(const Driver *d, uint32_t object, uint32_t cmd, void *params, uint32_t size);
/* One more reference to the memory that (client, object) is, below `parent`. */
uint32_t driver_dup(Driver *d, uint32_t parent, uint32_t client, uint32_t object, uint32_t *ret);

/* size: in and out, as the driver rounded it. */
uint32_t driver_alloc_memory(Driver *d, const DriverCard *card, uint64_t *size, uint32_t *ret);
uint32_t driver_memory(const Driver *d, const DriverCard *card, DriverMemory *ret);
