/* SPDX-License-Identifier: Apache-2.0 */

/* Interposes dlsym(), dlvsym() and dlopen().
 *
 * dlsym(), dlvsym(): a lookup of a hooked function of libcuda returns our hook. So does a lookup in
 * libc of a function that this library puts before it, as Python's ctypes does. All other lookups
 * jump to the real function with unchanged registers and return address. It derives RTLD_NEXT,
 * RTLD_DEFAULT and the namespace from its caller.
 *
 * dlopen(): an object opened with RTLD_DEEPBIND would find libc's ioctl() and dlsym() before ours.
 * So the flag is removed in containers with slices. The real function uses its caller's search
 * paths, so it is jumped to as well. */

#include <dlfcn.h>
#include <stddef.h>

#include "preload/inject/loaded.h"
#include "preload/launch/hooks.h"
#include "preload/memory/discover.h"

typedef void *Dlsym(void *handle, const char *name);
typedef void *Dlvsym(void *handle, const char *name, const char *version);

/* clang-format off */
/* third: sets the third argument of the route. SAVED: the address of the saved second argument,
 * which the route may change. */
#if defined(__x86_64__)
#define SAVED "lea 8(%rsp), %rdx\n"
#define TRAMPOLINE(name, third, route)                                                                       \
        __asm__(".text\n.p2align 4\n.globl " name "\n.type " name ",@function\n" name ":\n"                  \
                "endbr64\n"                                                                                  \
                "push %rdi\npush %rsi\npush %rdx\n"                                                          \
                third "call " route "\n"                                                                     \
                "pop %rdx\npop %rsi\npop %rdi\n"                                                             \
                "jmp *%rax\n"                                                                                \
                ".size " name ", .-" name "\n")
#elif defined(__aarch64__)
#define SAVED "add x2, sp, #24\n"
#define TRAMPOLINE(name, third, route)                                                                       \
        __asm__(".text\n.p2align 4\n.globl " name "\n.type " name ",%function\n" name ":\n"                  \
                "hint #34\n"                                                                                 \
                "stp x29, x30, [sp, #-48]!\nstp x0, x1, [sp, #16]\nstr x2, [sp, #32]\n"                      \
                third "bl " route "\n"                                                                       \
                "mov x16, x0\n"                                                                              \
                "ldr x2, [sp, #32]\nldp x0, x1, [sp, #16]\nldp x29, x30, [sp], #48\n"                        \
                "br x16\n"                                                                                   \
                ".size " name ", .-" name "\n")
#endif
/* clang-format on */

void *aliquot_dlopen_route(const char *path, int mode, uint64_t *saved_mode)
        __attribute__((visibility("hidden"), used));
void *aliquot_dlsym_route(void *handle, const char *name) __attribute__((visibility("hidden"), used));
void *aliquot_dlvsym_route(void *handle, const char *name) __attribute__((visibility("hidden"), used));

TRAMPOLINE("dlopen", SAVED, "aliquot_dlopen_route");
TRAMPOLINE("dlsym", "", "aliquot_dlsym_route");
TRAMPOLINE("dlvsym", "", "aliquot_dlvsym_route");

extern const char own_dlopen[] __asm__("dlopen"), own_dlsym[] __asm__("dlsym"),
        own_dlvsym[] __asm__("dlvsym");

/* Names that preload/memory/hook.c interposes for memory accounting. */
#define BEFORE_LIBC(X) X(ioctl) X(mmap) X(mmap64) X(mremap) X(munmap)
#define DECLARE(name)  extern const char own_##name[] __asm__(#name);
BEFORE_LIBC(DECLARE)

typedef struct Own {
        const char *name, *ours;
} Own;

#define ENTRY(name) {#name, own_##name},
static const Own before_libc[] = {BEFORE_LIBC(ENTRY)};

static _Atomic uintptr_t real_dlopen, real_dlsym, real_dlvsym;

/* Stands for the real function where there is none, because libdl is not loaded. */
static void *no_function(void) {
        return NULL;
}

static uintptr_t find_real(_Atomic uintptr_t *known, const char *name) {
        uintptr_t p = atomic_load_explicit(known, memory_order_relaxed);

        if (p == 0) {
                p = (uintptr_t) loaded_next(name);
                atomic_store_explicit(known, p, memory_order_relaxed);
        }
        return p;
}

/* Our function for a name of libc; NULL: not interposed. */
static const Own *find_before_libc(const char *name) {
        if (name[0] != 'i' && name[0] != 'm')
                return NULL;
        for (size_t i = 0; i < sizeof before_libc / sizeof *before_libc; i++)
                if (hooks_same(name, before_libc[i].name))
                        return &before_libc[i];
        return NULL;
}

static bool is_hooked(const char *name) {
        if (!name)
                return false;
        if ((name[0] == 'c' && name[1] == 'u') || (name[0] == 'd' && name[1] == 'l'))
                return hooks_same(name, "dlopen") || hooks_same(name, "dlsym") ||
                       hooks_same(name, "dlvsym") || hooks_find(name) >= 0;
        return find_before_libc(name) != NULL;
}

/* Whether the address is libc's function of that name, and not one of another object. */
static bool is_of_libc(uintptr_t p, const char *name) {
        ElfObject libc;

        return p == (uintptr_t) loaded_next(name) ||
               (loaded_object("libc.so.6", &libc) && p == (uintptr_t) loaded_function(&libc, name));
}

/* Our hook for the function that a lookup found, or the function itself: another object may define
 * one of the same name. */
static void *replacement_of(void *found, const char *name) {
        const Own *own = find_before_libc(name);
        uintptr_t p = (uintptr_t) found, ours;

        if (p == 0)
                return found;
        if (own)
                return is_of_libc(p, name) ? (void *) (uintptr_t) own->ours : found;
        if (p == find_real(&real_dlopen, "dlopen"))
                return (void *) (uintptr_t) own_dlopen;
        if (p == find_real(&real_dlsym, "dlsym"))
                return (void *) (uintptr_t) own_dlsym;
        if (p == find_real(&real_dlvsym, "dlvsym"))
                return (void *) (uintptr_t) own_dlvsym;
        ours = hooks_replace(p);
        if (ours == 0 && hooks_find(name) >= 0 && real_owns(name, p))
                ours = hooks_at((unsigned) hooks_find(name));
        return ours != 0 ? (void *) ours : found;
}

static void *find_hooked(void *handle, const char *name) {
        return replacement_of(((Dlsym *) find_real(&real_dlsym, "dlsym"))(handle, name), name);
}

static void *find_hooked_version(void *handle, const char *name, const char *version) {
        return replacement_of(((Dlvsym *) find_real(&real_dlvsym, "dlvsym"))(handle, name, version), name);
}

/* Stands for a lookup with RTLD_NEXT in an object before this library: the next definition is our
 * hook. */
static void *find_next_hook(void *handle, const char *name) {
        int number = hooks_find(name);

        (void) handle; /* RTLD_NEXT */
        return number < 0 ? NULL : (void *) hooks_at((unsigned) number);
}

/* The function that the trampoline jumps to: `hooked` if the name may be hooked. RTLD_DEFAULT finds
 * our exported names by itself. */
static void *choose_target(void *handle, const char *name, uintptr_t real, void *hooked) {
        if (real == 0)
                return (void *) no_function;
        if (handle == RTLD_DEFAULT || !is_hooked(name))
                return (void *) real;
        if (handle != RTLD_NEXT)
                return hooked;
        return name[0] == 'c' && real_get(REAL_cuCtxGetCurrent) != 0 ? (void *) find_next_hook
                                                                     : (void *) real;
}

/* The flag is rare, so the slices are looked for each time. */
void *aliquot_dlopen_route(const char *path, int mode, uint64_t *saved_mode) {
        uintptr_t real = find_real(&real_dlopen, "dlopen");
        const char *directory;
        Discovery look;

        (void) path;
        if (mode & RTLD_DEEPBIND) {
                look = discover_slices(&directory);
                if (look != DISCOVERY_NONE && look != DISCOVERY_OPEN)
                        *saved_mode = (uint32_t) mode & ~(uint32_t) RTLD_DEEPBIND;
        }
        return real != 0 ? (void *) real : (void *) no_function;
}

void *aliquot_dlsym_route(void *handle, const char *name) {
        return choose_target(handle, name, find_real(&real_dlsym, "dlsym"), (void *) find_hooked);
}

void *aliquot_dlvsym_route(void *handle, const char *name) {
        return choose_target(handle, name, find_real(&real_dlvsym, "dlvsym"), (void *) find_hooked_version);
}
