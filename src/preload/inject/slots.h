/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Redirects the driver's libraries to this one if another object comes first in the search order:
 * the program with an allocator linked in, or a library of LD_PRELOAD. The dynamic linker has then
 * filled in the slots of the driver's library with the address of that interposer. If it makes the
 * system call itself, the calls never arrive here.
 *
 * Such slots get the address of this library's function, so the interposer misses calls of the
 * driver, and no others. An interposer that calls the next function (RTLD_NEXT) stays: probes show
 * it, by calls without effect. Another copy of this library does not pass calls on: of two copies,
 * the one that probes last has all calls of the driver's library.
 *
 * In a process without an interposer nothing is looked up. */

#include <stdbool.h>
#include <stdint.h>

typedef enum SlotName {
        SLOT_IOCTL = 0,
        SLOT_MMAP,
        SLOT_MMAP64,
        SLOT_MUNMAP,
        SLOT_MREMAP,
        SLOT_NAMES
} SlotName;

/* Whether an object before this library defines one of the names. */
bool slots_needed(void);

/* Redirects all libraries with that DT_SONAME, which must be loaded completely. ours: this
 * library's functions by SlotName. Returns true also if there is no such library. false: one
 * cannot be redirected, because its tables cannot be read, its pages cannot be changed, or it
 * defines such a function. */
bool slots_redirect_library(const uintptr_t *ours, const char *soname);

/* Like slots_redirect_library(), for the object of an ioctl()'s return address, which has opened
 * the driver. An object that defines ioctl() itself is left alone, and so is an address in no
 * object. */
bool slots_redirect_caller(const uintptr_t *ours, uintptr_t address);

/* Frees the lock in a child of fork, before the other functions: another thread of the parent may
 * have held it. */
void slots_after_fork(void);

/* Whether the call is a probe of this thread, which goes to the kernel. Each of our functions asks
 * first: a load and a branch. */
bool slots_is_probe(SlotName name);
