/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who comes before this library in the search order, and makes the system call by himself: the
 * program, if an allocator is linked in, and what LD_PRELOAD names. What such a one is called for
 * never arrives here. But the driver's own library calls through slots of its own, which the
 * dynamic linker has filled in with his address. Where that is so they get ours, and he is left out
 * of the driver's calls, and of nobody else's. One who calls the next function, which is ours, as a
 * sanitizer's runtime does, stays: he is asked, by calls that do no harm. Another gate, of another
 * file, does not pass them on: of two the one that is asked last has the driver's library, wholly.
 *
 * Nothing is looked at in a process in which nobody stands in front. */

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

/* Whether anybody stands in front with one of the names. */
bool slots_needed(void);

/* The libraries of that DT_SONAME, of which there may be several; ours: by SlotName. true, too:
 * there is none. false: one cannot be had, because its tables cannot be read, its pages not be
 * changed, or it has such a function itself. It has all been loaded: somebody calls it. */
bool slots_redirect_library(const uintptr_t *ours, const char *soname);

/* The same for whoever an ioctl() will return to: he has opened the driver. One that passes on the
 * ioctl() of others is let be, and so is what is no object. */
bool slots_redirect_caller(const uintptr_t *ours, uintptr_t address);

/* In the child, before anything else of this: another thread of the parent may have been in the
 * middle of it. */
void slots_after_fork(void);

/* Each of ours first: is it a question of the above, of this thread? It is for the kernel then. A
 * load and a branch. */
bool slots_is_probe(SlotName name);
