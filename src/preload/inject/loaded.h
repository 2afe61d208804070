/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is loaded in this process, by the dynamic linker's own list, which it keeps for debuggers:
 * `_r_debug` of glibc, `_dl_debug_addr` of musl. The list is only read, and without the linker's
 * lock: another thread may be about to load something, so an object that is not whole yet is passed
 * over, and memory is read in a way that cannot fault (peek.h). */

#include "preload/inject/elf.h"

/* The parts without a process, for tests. head: the address of the first link_map. */

/* The first definition of a function behind the object whose dynamic section stands at `after`:
 * what RTLD_NEXT would be there. 0: none. */
uint64_t loaded_find_after(ElfRead read, uint64_t head, uint64_t after, const char *name);
/* The same, of the objects before the one that defines `last`, but for those that define `never`.
 * 0, too: that one is not behind it. */
uint64_t loaded_find_between(ElfRead read, uint64_t head, uint64_t after, const char *name, const char *last,
                             const char *never);
/* The first definition among the objects before the one whose dynamic section stands at `before`.
 * 0: none. */
uint64_t loaded_find_before(ElfRead read, uint64_t head, uint64_t before, const char *name);
/* The object that has an address in one of its segments. One that is loaded where it was linked to,
 * of which that cannot be told, is it when no other is. */
bool loaded_find_holder(ElfRead read, uint64_t head, uint64_t address, ElfObject *ret);
/* The objects of that DT_SONAME, in their order, `most` at most. Returns how many. */
unsigned loaded_find_objects(ElfRead read, uint64_t head, const char *soname, ElfObject ret[], unsigned most);

/* ---- in this process ---- */

/* The next definition behind this library: of the C library, or of somebody else who stands in
 * between. 0: none. */
uint64_t loaded_next(const char *name);
/* The same, but not of the C library: of somebody who stands between this library and it. Found
 * among what was loaded at start. */
uint64_t loaded_before_libc(const char *name);
/* Of somebody who stands before this library, among what was loaded at start. 0: nobody does. */
uint64_t loaded_before_self(const char *name);
bool loaded_is_ready(void); /* what was loaded at start is relocated, and may be called */
bool loaded_as(
        const char *path); /* this library, by the name that it was asked for with; that cannot be told: no */
bool loaded_object(const char *soname, ElfObject *ret); /* the first one */
unsigned loaded_objects(const char *soname, ElfObject ret[], unsigned most);
bool loaded_holder(uintptr_t address, ElfObject *ret);
uint64_t loaded_function(const ElfObject *o, const char *name); /* 0: none */
bool loaded_read(void *to, uint64_t from, size_t n); /* an ElfRead of this process, which cannot fault */
