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
        SLOTS_MAX = 32,    /* of one object: three kinds of each name */
        LIBRARIES_MAX = 8, /* of one DT_SONAME */
        PAGE = ELF_PAGE,
        PAGE_LARGEST = 1 << 16, /* and on aarch64 */
};

typedef int Ioctl(int fd, unsigned long request, ...);
typedef void *Mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
typedef int Munmap(void *address, size_t length);
typedef void *Mremap(void *address, size_t old, size_t length, int flags, ...);

typedef struct Front { /* 0: nobody */
        uintptr_t functions[SLOT_NAMES];
} Front;

extern int *__errno_location(void) __attribute__((weak));

static const char *const names[SLOT_NAMES] = {"ioctl", "mmap", "mmap64", "munmap", "mremap"};

static bool find_front(Front *ret) {
        bool found = false;

        for (unsigned i = 0; i < SLOT_NAMES; i++) {
                ret->functions[i] = (uintptr_t) loaded_before_self(names[i]);
                found = found || ret->functions[i] != 0;
        }
        return found;
}

bool slots_needed(void) {
        Front front;

        return loaded_is_ready() && find_front(&front);
}

/* ---- who passes on ---- */

static Spin lock;
static _Atomic uintptr_t asking; /* the thread that asks; 0: none does */
static _Atomic uint32_t heard;   /* of what it asked: bits */

bool slots_is_probe(SlotName name) {
        uintptr_t thread = atomic_load_explicit(&asking, memory_order_relaxed);

        if (thread == 0 || thread != spin_self())
                return false;
        atomic_fetch_or_explicit(&heard, 1u << name, memory_order_relaxed);
        return true;
}

void slots_after_fork(void) {
        atomic_store_explicit(&asking, 0, memory_order_relaxed);
        spin_drop(&lock);
}

static long map_page(void) {
        return sys_call(SYS_mmap, 0, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void unmap_page(uintptr_t front, void *page) {
        Munmap *f = (Munmap *) front;

        if ((long) page < 0 && (long) page > -4096)
                return;
        if (f)
                (void) f(page, PAGE); /* if it did not: a page without memory */
        else
                (void) sys_call(SYS_munmap, page, PAGE); /* as above */
}

/* One call as the driver's library could make it, of no consequence: no file, and a page that
 * nobody else has. */
static void call(const Front *front, SlotName name) {
        uintptr_t f = front->functions[name];
        void *page;

        switch (name) {
        case SLOT_IOCTL:
                (void) ((Ioctl *) f)(-1, FIOCLEX); /* EBADF, whoever answers */
                return;
        case SLOT_MMAP:
        case SLOT_MMAP64:
                unmap_page(front->functions[SLOT_MUNMAP],
                           ((Mmap *) f)(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
                return;
        case SLOT_MUNMAP:
                unmap_page(f, (void *) map_page());
                return;
        default:
                page = (void *) map_page();
                (void) ((Mremap *) f)(page, PAGE, PAGE, 0); /* stays as it is */
                unmap_page(0, page);
        }
}

/* What of it ends there, as bits. */
static uint32_t ask(const Front *front) {
        static const SlotName arrives_as[SLOT_NAMES] = {SLOT_IOCTL, SLOT_MMAP, SLOT_MMAP, SLOT_MUNMAP,
                                                        SLOT_MREMAP};
        int before = &__errno_location ? *__errno_location() : 0;
        uint32_t ends = 0;

        atomic_store_explicit(&asking, spin_self(), memory_order_relaxed);
        for (unsigned i = 0; i < SLOT_NAMES; i++) {
                if (front->functions[i] == 0)
                        continue;
                atomic_store_explicit(&heard, 0, memory_order_relaxed);
                call(front, (SlotName) i);
                if (!(atomic_load_explicit(&heard, memory_order_relaxed) >> arrives_as[i] & 1))
                        ends |= 1u << i;
        }
        atomic_store_explicit(&asking, 0, memory_order_relaxed);
        if (&__errno_location)
                *__errno_location() = before;
        return ends;
}

/* ---- slots ---- */

/* Eight bytes at once: another thread may be calling through it. Where it was sealed it is sealed
 * again, by the size of pages that the kernel shows to have: by a smaller one data that is beside
 * it would be sealed as well. */
static bool put(uint64_t base, uint64_t address, uintptr_t ours) {
        ElfSegment place = elf_segment_at(loaded_read, base, address, PAGE);

        if (place == ELF_SEGMENT_NONE || place == ELF_SEGMENT_READ_ONLY || address % sizeof ours != 0)
                return false;
        for (uint64_t size = PAGE; size <= PAGE_LARGEST; size *= 4) {
                uint64_t page = address & ~(size - 1);
                long r = sys_call(SYS_mprotect, page, size, PROT_READ | PROT_WRITE);

                if (r == -EINVAL)
                        continue; /* pages are larger */
                if (r < 0)
                        return false;
                __atomic_store_n((uintptr_t *) (uintptr_t) address, ours, __ATOMIC_RELEASE);
                if (elf_segment_at(loaded_read, base, address, size) == ELF_SEGMENT_RELRO)
                        (void) sys_call(SYS_mprotect, page, size, PROT_READ); /* else it stays open */
                return true;
        }
        return false;
}

/* What is filled in at the first call leads into the object itself until then. What is there else
 * is let be: of somebody who has put himself there, or nothing yet, because another thread is just
 * loading it. */
static bool is_to_be_ours(const ElfObject *o, uint64_t value, uintptr_t front) {
        ElfSegment place;

        if (value == front)
                return true;
        place = elf_segment_at(loaded_read, o->base, value, PAGE);
        return place == ELF_SEGMENT_READ_ONLY || place == ELF_SEGMENT_UNKNOWN;
}

static bool redirect(const uintptr_t *ours, const ElfObject *o, const Front *front, uint32_t ends) {
        ElfSlot slots[SLOTS_MAX];
        uint64_t value;
        unsigned n;

        if (!elf_slots(loaded_read, o, names, SLOT_NAMES, slots, SLOTS_MAX, &n))
                return false;
        for (unsigned i = 0; i < n; i++) {
                const ElfSlot *s = &slots[i];

                if (!(ends >> s->name & 1))
                        continue;
                if (!loaded_read(&value, s->address, sizeof value))
                        return false;
                if (value != ours[s->name] && is_to_be_ours(o, value, front->functions[s->name]) &&
                    !put(o->base, s->address, ours[s->name]))
                        return false;
        }
        return true;
}

/* One that has such a function itself calls it without a slot. */
static bool has_its_own(const ElfObject *o, uint32_t which) {
        for (unsigned i = 0; i < SLOT_NAMES; i++)
                if ((which >> i & 1) && loaded_function(o, names[i]) != 0)
                        return true;
        return false;
}

static bool hold(const uintptr_t *ours, const ElfObject *o) {
        Front front;
        uint32_t ends;
        bool r;

        if (!find_front(&front))
                return true;
        if (!spin_take(&lock))
                return false;
        ends = ask(&front);
        r = ends == 0 || (!has_its_own(o, ends) && redirect(ours, o, &front, ends));
        spin_drop(&lock);
        return r;
}

bool slots_redirect_library(const uintptr_t *ours, const char *soname) {
        ElfObject o[LIBRARIES_MAX];
        unsigned n = loaded_objects(soname, o, LIBRARIES_MAX);
        bool r = true;

        for (unsigned i = 0; i < n; i++)
                r = hold(ours, &o[i]) && r;
        return r;
}

bool slots_redirect_caller(const uintptr_t *ours, uintptr_t address) {
        ElfObject o;

        return !slots_needed() || !loaded_holder(address, &o) || has_its_own(&o, 1u << SLOT_IOCTL) ||
               hold(ours, &o);
}
