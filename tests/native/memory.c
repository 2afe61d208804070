/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE      UINT64_C(4096)
#define FILE_SIZE (UINT64_C(1) << 38)

enum { FD_FIRST = 910 }; /* a descriptor that programs do not use */

struct Memory {
        unsigned refs;
        bool is_program;
        uint64_t at, size; /* at: offset in the file, or address in the program */
};

typedef struct Mapping {
        uint64_t start, end; /* addresses of the card */
        uint64_t offset;     /* of `start` in the memory */
        Memory *memory;
} Mapping;

static struct {
        int file;
        uint8_t *view; /* all of the file */
        uint64_t used; /* bytes; contents are not reused, their pages are given back */
        Mapping *maps; /* by address */
        size_t n, room;
} state;

/* ---- contents ---- */

static void open_file(void) {
        int fd = memfd_create("native", MFD_CLOEXEC);

        state.file = fcntl(fd, F_DUPFD_CLOEXEC, FD_FIRST);
        (void) close(fd); /* the copy stays */
        if (ftruncate(state.file, (off_t) FILE_SIZE) < 0)
                abort();
        state.view = (uint8_t *) syscall(SYS_mmap, NULL, FILE_SIZE, PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_NORESERVE, state.file, 0);
        if (state.view == MAP_FAILED)
                abort();
}

static Memory *new_at(bool is_program, uint64_t at, uint64_t size) {
        Memory *m = malloc(sizeof *m);

        if (!m)
                abort();
        *m = (Memory){.refs = 1, .is_program = is_program, .at = at, .size = size};
        return m;
}

Memory *memory_new(uint64_t size) {
        Memory *m;

        if (!state.view)
                open_file();
        size = (size + PAGE - 1) & ~(PAGE - 1);
        if (size > FILE_SIZE - state.used)
                abort();
        m = new_at(false, state.used, size);
        state.used += size;
        return m;
}

Memory *memory_of_program(uint64_t address, uint64_t size) {
        return new_at(true, address, size);
}

Memory *memory_ref(Memory *m) {
        m->refs++;
        return m;
}

void memory_unref(Memory *m) {
        if (!m || --m->refs > 0)
                return;
        if (!m->is_program)
                (void) fallocate(state.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) m->at,
                                 (off_t) m->size); /* only gives pages back */
        free(m);
}

int memory_file(const Memory *m, uint64_t *ret_offset) {
        *ret_offset = m->at;
        return m->is_program ? -1 : state.file;
}

uint64_t memory_size(const Memory *m) {
        return m->size;
}

static bool is_inside(const Memory *m, uint64_t offset, size_t n) {
        return offset <= m->size && n <= m->size - offset;
}

/* Words of semaphores must not be seen in part. */
static void move(void *to, const void *from, size_t n) {
        if (n == 4 && (uintptr_t) to % 4 == 0 && (uintptr_t) from % 4 == 0)
                __atomic_store_n((uint32_t *) to, __atomic_load_n((const uint32_t *) from, __ATOMIC_ACQUIRE),
                                 __ATOMIC_RELEASE);
        else if (n == 8 && (uintptr_t) to % 8 == 0 && (uintptr_t) from % 8 == 0)
                __atomic_store_n((uint64_t *) to, __atomic_load_n((const uint64_t *) from, __ATOMIC_ACQUIRE),
                                 __ATOMIC_RELEASE);
        else
                memcpy(to, from, n);
}

bool memory_read(const Memory *m, uint64_t offset, void *to, size_t n) {
        struct iovec here = {to, n}, there = {(void *) (uintptr_t) (m->at + offset), n};

        if (!is_inside(m, offset, n))
                return false;
        if (m->is_program) /* the kernel answers EFAULT for what is not mapped any more */
                return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t) n;
        move(to, state.view + m->at + offset, n);
        return true;
}

bool memory_write(const Memory *m, uint64_t offset, const void *from, size_t n) {
        struct iovec here = {(void *) (uintptr_t) from, n},
                     there = {(void *) (uintptr_t) (m->at + offset), n};

        if (!is_inside(m, offset, n))
                return false;
        if (m->is_program) /* as above */
                return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == (ssize_t) n;
        move(state.view + m->at + offset, from, n);
        return true;
}

/* ---- addresses ---- */

/* The first mapping that ends behind the address. */
static size_t position(uint64_t address) {
        size_t low = 0, high = state.n;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (state.maps[middle].end > address)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

static void insert(size_t at, Mapping m) {
        if (state.n == state.room) {
                state.room = state.room ? 2 * state.room : 256;
                state.maps = realloc(state.maps, state.room * sizeof *state.maps);
                if (!state.maps)
                        abort();
        }
        memmove(state.maps + at + 1, state.maps + at, (state.n - at) * sizeof *state.maps);
        state.maps[at] = m;
        state.n++;
}

static void drop(size_t at) {
        memory_unref(state.maps[at].memory);
        memmove(state.maps + at, state.maps + at + 1, (--state.n - at) * sizeof *state.maps);
}

void memory_unmap(uint64_t address, uint64_t length) {
        uint64_t end = address + length;
        size_t i = position(address);

        while (i < state.n && state.maps[i].start < end) {
                Mapping *m = &state.maps[i], behind = *m;

                if (m->end > end) {
                        behind.offset += end - m->start;
                        behind.start = end;
                        memory_ref(m->memory);
                        insert(i + 1, behind);
                        m = &state.maps[i]; /* the array may have moved */
                }
                if (m->start < address) {
                        m->end = address;
                        i++;
                } else {
                        drop(i);
                }
        }
}

void memory_map(uint64_t address, uint64_t length, Memory *m, uint64_t offset) {
        if (length == 0 || address + length < address)
                return;
        memory_unmap(address, length);
        insert(position(address), (Mapping){address, address + length, offset, memory_ref(m)});
}

static bool transfer(uint64_t address, uint8_t *bytes, size_t n, bool writes, uint64_t *ret_fault) {
        while (n > 0) {
                const Mapping *m = &state.maps[position(address)];
                size_t part;
                bool done;

                *ret_fault = address;
                if (m == state.maps + state.n || m->start > address)
                        return false;
                part = n < m->end - address ? n : (size_t) (m->end - address);
                done = writes ? memory_write(m->memory, m->offset + (address - m->start), bytes, part)
                              : memory_read(m->memory, m->offset + (address - m->start), bytes, part);
                if (!done)
                        return false;
                address += part;
                bytes += part;
                n -= part;
        }
        return true;
}

bool memory_load(uint64_t address, void *to, size_t n, uint64_t *ret_fault) {
        return transfer(address, to, n, false, ret_fault);
}

bool memory_store(uint64_t address, const void *from, size_t n, uint64_t *ret_fault) {
        return transfer(address, (uint8_t *) (uintptr_t) from, n, true, ret_fault);
}
