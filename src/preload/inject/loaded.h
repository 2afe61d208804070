/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The objects that are loaded in this process, from the list that the dynamic linker keeps for
 * debuggers (`_r_debug` of glibc, `_dl_debug_addr` of musl). The list is only read, and without the
 * linker's lock. Another thread may be loading an object, so an unfinished entry is skipped, and
 * memory is read in a way that cannot fault (usermem.h). */

#include "preload/inject/elf.h"

/* ---- any list, for tests; head: the address of the first link_map ---- */

/* Returns the first definition of a function behind the object with its dynamic section at `after`,
 * as RTLD_NEXT finds it from there. 0: none. */
uint64_t loaded_find_after(ElfRead read, uint64_t head, uint64_t after, const char *name);

/* Like loaded_find_after(), among the objects before the one that defines `last`, and without those
 * that define `never`. 0, too: no object behind `after` defines `last`. */
uint64_t loaded_find_between(ElfRead read, uint64_t head, uint64_t after, const char *name, const char *last,
                             const char *never);

/* Returns the first definition among the objects before the one with its dynamic section at
 * `before`. 0: none. */
uint64_t loaded_find_before(ElfRead read, uint64_t head, uint64_t before, const char *name);

/* Finds the object that has an address in one of its segments. If there is none: an object that is
 * loaded where it was linked to, which has no headers to tell its segments. */
bool loaded_find_holder(ElfRead read, uint64_t head, uint64_t address, ElfObject *ret);

/* Finds the objects with that DT_SONAME, in order, `most` at most. Returns how many. */
unsigned loaded_find_objects(ElfRead read, uint64_t head, const char *soname, ElfObject ret[], unsigned most);

/* ---- the list of this process ---- */

/* Returns the next definition behind this library: of the C library, or of a library between the
 * two. 0: none. */
uint64_t loaded_next(const char *name);

/* Like loaded_next(), without the C library: of a library that was loaded at start, between this
 * one and the C library. */
uint64_t loaded_before_libc(const char *name);

/* Returns the definition of an object that was loaded at start, before this library. 0: none. */
uint64_t loaded_before_self(const char *name);

bool loaded_is_ready(void); /* the objects that were loaded at start are relocated, and can be called */

/* Whether this library was loaded by that path. false, too: that is not known. */
bool loaded_as(const char *path);

bool loaded_object(const char *soname, ElfObject *ret); /* the first object with that DT_SONAME */
unsigned loaded_objects(const char *soname, ElfObject ret[], unsigned most);
bool loaded_holder(uintptr_t address, ElfObject *ret);
uint64_t loaded_function(const ElfObject *o, const char *name); /* 0: none */
bool loaded_read(void *to, uint64_t from, size_t n); /* an ElfRead of this process, without faults */
