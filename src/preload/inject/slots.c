/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/inject/slots.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "preload/inject/elf_slots.h"
#include "preload/inject/loaded.h"
#include "preload/inject/spin.h"

enum {
        SLOTS_MAX = 32,    /* slots of one object: three kinds of each name */
        LIBRARIES_MAX = 8, /* objects with one DT_SONAME */
        PAGE = ELF_PAGE,
        PAGE_LARGEST = 1 << 16, /* the largest page of any kernel, on aarch64 */
};

typedef int Ioctl(int fd, unsigned long request, ...);
typedef void *Mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
typedef int Munmap(void *address, size_t length);
typedef void *Mremap(void *address, size_t old, size_t length, int flags, ...);

/* The functions of libraries before this one; 0: none defines the name. */
typedef struct Interposer {
        uintptr_t functions[SLOT_NAMES];
} Interposer;

extern int *__errno_location(void) __attribute__((weak));

static const char *const names[SLOT_NAMES] = {"ioctl", "mmap", "mmap64", "munmap", "mremap"};

static bool find_interposer(Interposer *ret) {
        bool found = false;

        for (unsigned i = 0; i < SLOT_NAMES; i++) {
                ret->functions[i] = (uintptr_t) loaded_before_self(names[i]);
                found = found || ret->functions[i] != 0;
        }
        return found;
}

bool slots_needed(void) {
        Interposer interposer;

        return loaded_is_ready() && find_interposer(&interposer);
}

/* ---- probes: does the interposer pass calls on? ---- */

static Spin lock;
static _Atomic uintptr_t probing; /* the thread that probes; 0: none */
static _Atomic uint32_t arrived;  /* the names whose probe has arrived, as bits */

bool slots_is_probe(SlotName name) {
        uintptr_t thread = atomic_load_explicit(&probing, memory_order_relaxed);

        if (thread == 0 || thread != spin_self())
                return false;
        atomic_fetch_or_explicit(&arrived, 1u << name, memory_order_relaxed);
        return true;
}

void slots_after_fork(void) {
        atomic_store_explicit(&probing, 0, memory_order_relaxed);
        spin_drop(&lock);
}

static long map_page(void) {
        return sys_call(SYS_mmap, 0, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void unmap_page(uintptr_t interposer, void *page) {
        Munmap *f = (Munmap *) interposer;

        if ((long) page < 0 && (long) page > -4096)
                return;
        if (f)
                (void) f(page, PAGE); /* on failure a page without memory stays mapped */
        else
                /* on failure a page without memory stays mapped */
                (void) sys_call(SYS_munmap, page, PAGE);
}

/* Makes one call without consequences, as the driver's library could make it: on no file, or on a
 * page of its own. */
static void probe_name(const Interposer *interposer, SlotName name) {
        uintptr_t f = interposer->functions[name];
        void *page;

        switch (name) {
        case SLOT_IOCTL:
                (void) ((Ioctl *) f)(-1, FIOCLEX); /* EBADF from any library */
                return;
        case SLOT_MMAP:
        case SLOT_MMAP64:
                unmap_page(interposer->functions[SLOT_MUNMAP],
                           ((Mmap *) f)(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
                return;
        case SLOT_MUNMAP:
                unmap_page(f, (void *) map_page());
                return;
        default:
                page = (void *) map_page();
                (void) ((Mremap *) f)(page, PAGE, PAGE, 0); /* changes nothing */
                unmap_page(0, page);
        }
}

/* The names whose calls the interposer does not pass on, as bits. */
static uint32_t probe_all(const Interposer *interposer) {
        static const SlotName arrives_as[SLOT_NAMES] = {SLOT_IOCTL, SLOT_MMAP, SLOT_MMAP, SLOT_MUNMAP,
                                                        SLOT_MREMAP};
        int before = &__errno_location ? *__errno_location() : 0;
        uint32_t kept = 0;

        atomic_store_explicit(&probing, spin_self(), memory_order_relaxed);
        for (unsigned i = 0; i < SLOT_NAMES; i++) {
                if (interposer->functions[i] == 0)
                        continue;
                atomic_store_explicit(&arrived, 0, memory_order_relaxed);
                probe_name(interposer, (SlotName) i);
                if (!(atomic_load_explicit(&arrived, memory_order_relaxed) >> arrives_as[i] & 1))
                        kept |= 1u << i;
        }
        atomic_store_explicit(&probing, 0, memory_order_relaxed);
        if (&__errno_location)
                *__errno_location() = before;
        return kept;
}

/* ---- slots ---- */

/* Writes the eight bytes at once, because another thread may be calling through the slot. A slot in
 * PT_GNU_RELRO is made read-only again, by the page size that the kernel accepts: with a smaller
 * one the data beside it would become read-only, too. */
static bool write_slot(uint64_t base, uint64_t address, uintptr_t ours) {
        ElfSegment segment = elf_segment_at(loaded_read, base, address, PAGE);

        if (segment == ELF_SEGMENT_NONE || segment == ELF_SEGMENT_READ_ONLY || address % sizeof ours != 0)
                return false;
        for (uint64_t size = PAGE; size <= PAGE_LARGEST; size *= 4) {
                uint64_t page = address & ~(size - 1);
                long r = sys_call(SYS_mprotect, page, size, PROT_READ | PROT_WRITE);

                if (r == -EINVAL)
                        continue; /* the kernel has larger pages */
                if (r < 0)
                        return false;
                __atomic_store_n((uintptr_t *) (uintptr_t) address, ours, __ATOMIC_RELEASE);
                if (elf_segment_at(loaded_read, base, address, size) == ELF_SEGMENT_RELRO)
                        /* on failure it stays writable */
                        (void) sys_call(SYS_mprotect, page, size, PROT_READ);
                return true;
        }
        return false;
}

/* A slot is replaced if it leads to the interposer, or into the object itself, as before its first
 * call. Any other value stays: another library has written it, or the object is still being
 * loaded. */
static bool is_replaceable(const ElfObject *o, uint64_t value, uintptr_t interposer) {
        ElfSegment segment;

        if (value == interposer)
                return true;
        segment = elf_segment_at(loaded_read, o->base, value, PAGE);
        return segment == ELF_SEGMENT_READ_ONLY || segment == ELF_SEGMENT_UNKNOWN;
}

static bool redirect_slots(const uintptr_t *ours, const ElfObject *o, const Interposer *interposer,
                           uint32_t kept) {
        ElfSlot slots[SLOTS_MAX];
        uint64_t value;
        unsigned n;

        if (!elf_slots(loaded_read, o, names, SLOT_NAMES, slots, SLOTS_MAX, &n))
                return false;
        for (unsigned i = 0; i < n; i++) {
                const ElfSlot *s = &slots[i];

                if (!(kept >> s->name & 1))
                        continue;
                if (!loaded_read(&value, s->address, sizeof value))
                        return false;
                if (value != ours[s->name] && is_replaceable(o, value, interposer->functions[s->name]) &&
                    !write_slot(o->base, s->address, ours[s->name]))
                        return false;
        }
        return true;
}

/* An object that defines such a function itself calls it without a slot, so it cannot be
 * redirected. */
static bool has_its_own(const ElfObject *o, uint32_t which) {
        for (unsigned i = 0; i < SLOT_NAMES; i++)
                if ((which >> i & 1) && loaded_function(o, names[i]) != 0)
                        return true;
        return false;
}

static bool redirect_object(const uintptr_t *ours, const ElfObject *o) {
        Interposer interposer;
        uint32_t kept;
        bool r;

        if (!find_interposer(&interposer))
                return true;
        if (!spin_take(&lock))
                return false;
        kept = probe_all(&interposer);
        r = kept == 0 || (!has_its_own(o, kept) && redirect_slots(ours, o, &interposer, kept));
        spin_drop(&lock);
        return r;
}

bool slots_redirect_library(const uintptr_t *ours, const char *soname) {
        ElfObject o[LIBRARIES_MAX];
        unsigned n = loaded_objects(soname, o, LIBRARIES_MAX);
        bool r = true;

        for (unsigned i = 0; i < n; i++)
                r = redirect_object(ours, &o[i]) && r;
        return r;
}

bool slots_redirect_caller(const uintptr_t *ours, uintptr_t address) {
        ElfObject o;

        return !slots_needed() || !loaded_holder(address, &o) || has_its_own(&o, 1u << SLOT_IOCTL) ||
               redirect_object(ours, &o);
}
