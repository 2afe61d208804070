/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards of this machine for `aliquot run`, as NVML reports them. They are read once, in this
 * process. */

#include "base/fault.h"
#include "slicedir/slicedir.h"

enum { HOST_CARDS_MODEL = 96, HOST_CARDS_HOLDERS = 64 };

/* A process that holds memory of a card, as the driver names it. */
typedef struct HostHolder {
        uint32_t pid;   /* in the caller's pid namespace */
        uint64_t bytes; /* UINT64_MAX: not known */
} HostHolder;

typedef struct HostCard {
        uint32_t index; /* NVML's */
        uint32_t minor; /* /dev/nvidia<minor> */
        uint64_t bytes; /* total as nvidia-smi shows it, in whole MiB */
        char uuid[SLICE_UUID];
        char model[HOST_CARDS_MODEL]; /* empty: the driver does not report it */
        SliceFile device;
        uint64_t used; /* bytes that processes hold, as the driver counts them */
        HostHolder holders[HOST_CARDS_HOLDERS];
        uint32_t n_holders;
        uint64_t taken; /* bytes of the card that the counted slices reserve */
        uint64_t held;  /* bytes that processes hold in slices, counted with `taken` */
        uint32_t core_taken;
} HostCard;

typedef struct HostCards {
        HostCard cards[SLICEDIR_CARDS_MAX];
        uint32_t n;
        SliceFile ctl, uvm;
} HostCards;

/* Reads the cards. devices: directory of the driver's files, /dev or that of a simulated driver.
 * library: as nvml_load() takes it. Returns 0, HOST_CARDS_E_NONE with a fault (no driver, no card),
 * or negative errno with a fault. */
enum { HOST_CARDS_E_NONE = 1 };
int host_cards_read(const char *devices, const char *library, HostCards *ret, Fault *fault);

/* Adds up what the living slices of the slice directory hold of each card. except: a slice that is
 * not counted; NULL: none. The caller has locked the directory. Returns 0 or negative errno. */
int host_cards_count_slices(HostCards *m, Slicedir *b, const char *except);

/* Returns the bytes that processes outside of every counted slice hold: the driver's number less
 * that of the slices. 0 below HOST_CARDS_OUTSIDE_MIN, because both are read at different
 * moments. */
enum { HOST_CARDS_OUTSIDE_MIN = 64 << 20 };
uint64_t host_cards_outside(const HostCard *card);
