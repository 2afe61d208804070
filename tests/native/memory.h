/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The memory of the simulated card and of the host as its engines reach it: contents of memory
 * objects, and the addresses at which RM and UVM have mapped them. One sparse file has all contents
 * that the driver allocates, so that a program and the engines see the same bytes. Addresses are
 * those of the card; libcuda has one space for the process. The caller holds kernel.h's lock. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Memory Memory;

/* New contents, all zero. size: bytes, rounded up to pages. Aborts when the file has no room. */
Memory *memory_new(uint64_t size);
/* Memory of the program itself, which it may unmap at any time. */
Memory *memory_of_program(uint64_t address, uint64_t size);
Memory *memory_ref(Memory *m);
void memory_unref(Memory *m); /* NULL: nothing */

/* The file's descriptor and the offset of the contents in it. -1: memory of the program. */
int memory_file(const Memory *m, uint64_t *ret_offset);
uint64_t memory_size(const Memory *m);

/* Bytes of an object by their offset. false: beyond its end, or the program has unmapped them. */
bool memory_read(const Memory *m, uint64_t offset, void *to, size_t n);
bool memory_write(const Memory *m, uint64_t offset, const void *from, size_t n);

/* Maps `length` bytes of m from `offset` on at `address`; what was mapped there ends. */
void memory_map(uint64_t address, uint64_t length, Memory *m, uint64_t offset);
void memory_unmap(uint64_t address, uint64_t length);

/* Bytes by the card's address, over any number of adjacent mappings. false: some are not mapped,
 * and nothing or a part was transferred; *ret_fault is the first such address. Aligned accesses of
 * 4 and 8 bytes are single ones. */
bool memory_load(uint64_t address, void *to, size_t n, uint64_t *ret_fault);
bool memory_store(uint64_t address, const void *from, size_t n, uint64_t *ret_fault);
