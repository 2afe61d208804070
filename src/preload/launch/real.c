/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/real.h"

#include "preload/inject/bytes.h"
#include "preload/inject/elf_slots.h"
#include "preload/inject/loaded.h"

enum {
        DRIVERS_MAX = 8, /* objects of that name; further ones are ignored */
        SLOTS_MAX = 32,  /* slots of ioctl in one object; there are three kinds */
};

_Atomic uintptr_t real_table[REAL_ALL];
_Atomic uint64_t real_base;

static _Atomic uint64_t initialized_base; /* load address of the initialized libcuda; 0: none */

#define REAL_SYMBOL(name, symbol, twin) #symbol,
#define REAL_SYMBOL_OF_USED(name)       #name,

static const char *const symbols[REAL_ALL] = {GATE_CUDA(REAL_SYMBOL) GATE_USES(REAL_SYMBOL_OF_USED)};

/* ---- choice among several objects ---- */

/* Whether the object has a driver's functions, which another library of that name lacks. */
static bool has_entry_points(const ElfObject *o) {
        return loaded_function(o, "cuInit") != 0 && loaded_function(o, "cuLaunchKernel") != 0;
}

/* Whether the object calls ioctl(), as a driver does. Libraries to link with, and those that wrap
 * the driver, do not. */
static bool calls_ioctl(const ElfObject *o) {
        static const char *const names[] = {"ioctl"};
        ElfSlot slots[SLOTS_MAX];
        unsigned n;

        return elf_slots(loaded_read, o, names, 1, slots, SLOTS_MAX, &n) && n > 0;
}

/* Finds the drivers, or if there is none, all objects with the functions. */
static unsigned find_all(ElfObject ret[DRIVERS_MAX]) {
        ElfObject all[DRIVERS_MAX];
        unsigned n = loaded_objects("libcuda.so.1", all, DRIVERS_MAX), whole = 0, drivers = 0;

        for (unsigned i = 0; i < n; i++)
                if (has_entry_points(&all[i]))
                        bytes_copy(&all[whole++], &all[i], sizeof all[i]);
        for (unsigned i = 0; whole > 1 && i < whole; i++)
                if (calls_ioctl(&all[i]))
                        bytes_copy(&ret[drivers++], &all[i], sizeof all[i]);
        if (drivers > 0)
                return drivers;
        bytes_copy(ret, all, whole * sizeof *all);
        return whole;
}

/* Fills the table. Another thread may unload the object meanwhile: then the table is empty, and is
 * filled again. */
static void fill_table(const ElfObject *o) {
        for (unsigned i = 0; i < REAL_ALL; i++)
                atomic_store_explicit(&real_table[i], (uintptr_t) loaded_function(o, symbols[i]),
                                      memory_order_release);
        atomic_store_explicit(&real_base, real_table[REAL_cuLaunchKernel] != 0 ? o->base : 0,
                              memory_order_release);
}

/* Chooses the initialized libcuda; before that, the one that was asked for last. Two drivers in one
 * process do not work. */
static unsigned choose_driver(const ElfObject *o, unsigned n, unsigned asked) {
        uint64_t base = atomic_load_explicit(&initialized_base, memory_order_relaxed);

        for (unsigned i = 0; base != 0 && i < n; i++)
                if (o[i].base == base)
                        return i;
        return asked < n ? asked : 0;
}

bool real_find(void) {
        ElfObject o[DRIVERS_MAX];
        unsigned n = find_all(o);

        if (n == 0)
                return false;
        fill_table(&o[choose_driver(o, n, n)]);
        return true;
}

bool real_owns(const char *symbol, uintptr_t function) {
        ElfObject o[DRIVERS_MAX];
        unsigned n = find_all(o), asked = 0;

        while (asked < n && loaded_function(&o[asked], symbol) != function)
                asked++;
        if (n > 0)
                fill_table(&o[choose_driver(o, n, asked)]);
        return asked < n;
}

void real_note_initialized(void) {
        atomic_store_explicit(&initialized_base, atomic_load_explicit(&real_base, memory_order_relaxed),
                              memory_order_relaxed);
}

bool real_is_captured(CuHandle stream) {
        int (*capturing)(CuHandle, int *) = (int (*)(CuHandle, int *)) real_get(REAL_cuStreamIsCapturing);
        int status = 0;

        return capturing && (capturing(stream, &status) != 0 || status != 0);
}
