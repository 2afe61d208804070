/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "gate/bytes.h"
#include "gate/gate.h"
#include "gate/peek.h"
#include "slice/inside.h"

/* Beside where they are mounted (slice/inside.h), a directory of another name serves `aliquot run` and tests, and is believed only where nothing is
 * mounted, and never in a program with rights of its own. */
#define SLICES_NAME "ALIQUOT_SLICES"
#define LOG_NAME    "ALIQUOT_LOG"

enum {
        STAGE_PAGE = 4096,
        STAGE_NEW = 0, /* besides: the thread that makes it, whose value is larger than these */
        STAGE_READY = 1,
        PATH_SIZE = 224, /* SLICE_PATH has room for the names of the files behind it */
        AUXV_MAX = 64,
        ENTRIES_SIZE = 2048,
        MAKING_YIELDS = 1000000,
};

extern char **environ __attribute__((weak));

static _Atomic(Gate *) the_gate;
static _Atomic int off; /* there is nothing here: for this process and its children */

static void *map(size_t size) {
        long p = sys_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p < 0 && p > -4096 ? NULL : (void *) p;
}

/* ---- the environment, without libc ---- */

static const char *value_of(const char *entry, const char *name) {
        while (*name != '\0' && *entry == *name) {
                entry++;
                name++;
        }
        return *name == '\0' && *entry == '=' ? entry + 1 : NULL;
}

static const char *environment(const char *name) {
        const char *value = NULL;

        if (!&environ || !environ)
                return NULL;
        for (char **e = environ; *e && !value; e++)
                value = value_of(*e, name);
        return value;
}

/* The kernel's word; where it cannot be had, yes. */
static bool secure(void) {
        Elf64_auxv_t auxv[AUXV_MAX] = {{0}};
        long fd = sys_call(SYS_openat, AT_FDCWD, "/proc/self/auxv", O_RDONLY | O_CLOEXEC, 0), n;

        if (fd < 0)
                return true;
        n = sys_call(SYS_read, fd, auxv, sizeof auxv);
        (void) sys_call(SYS_close, fd); /* only read from */
        for (long i = 0; i < n / (long) sizeof auxv[0]; i++)
                if (auxv[i].a_type == AT_SECURE)
                        return auxv[i].a_un.a_val != 0;
        return true;
}

/* ---- the slices ---- */

static bool is_directory(const char *path) {
        long fd = sys_call(SYS_openat, AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);

        if (fd < 0)
                return false;
        (void) sys_call(SYS_close, fd); /* only looked at */
        return true;
}

static const char *slices_directory(void) {
        const char *named;

        if (is_directory(SLICE_PAGES))
                return SLICE_PAGES;
        named = environment(SLICES_NAME);
        return named && named[0] == '/' && !secure() ? named : NULL;
}

/* DIRECTORY/n, and at times a file of it. false: too long. */
static bool path_of(const char *directory, unsigned n, const char *file, char path[PATH_SIZE]) {
        size_t at = 0;

        for (; *directory && at < PATH_SIZE - 16; directory++)
                path[at++] = *directory;
        if (*directory)
                return false;
        path[at++] = '/';
        if (n >= 10)
                path[at++] = (char) ('0' + n / 10);
        path[at++] = (char) ('0' + n % 10);
        do
                path[at++] = *file;
        while (*file++);
        return true;
}

static bool read_limits(const char *directory, unsigned n, SliceLimits *ret) {
        char path[PATH_SIZE];
        long fd, r;

        if (!path_of(directory, n, "/limits", path))
                return false;
        fd = sys_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return false;
        ret->magic = 0;
        r = sys_call(SYS_read, fd, ret, sizeof *ret);
        (void) sys_call(SYS_close, fd); /* only read from */
        return r == (long) sizeof *ret && ret->magic == SLICE_LIMITS_MAGIC;
}

typedef struct Entry { /* linux_dirent64 */
        uint64_t ino;
        int64_t next;
        uint16_t size;
        uint8_t type;
        char name[];
} Entry;

/* "0" to "31"; GATE_CARDS: another name. */
static unsigned number_of(const char *name) {
        unsigned n = 0;

        if (name[0] == '0' && name[1] != '\0')
                return GATE_CARDS;
        for (size_t i = 0; name[i] != '\0'; i++) {
                if (name[i] < '0' || name[i] > '9' || i == 2)
                        return GATE_CARDS;
                n = n * 10 + (unsigned) (name[i] - '0');
        }
        return name[0] != '\0' && n < GATE_CARDS ? n : GATE_CARDS;
}

static uint32_t numbers_in(const char *entries, long n) {
        uint32_t found = 0;

        for (long at = 0; at + (long) offsetof(Entry, name) < n;) {
                const Entry *e = (const Entry *) (const void *) (entries + at);
                unsigned number = number_of(e->name);

                if (number < GATE_CARDS)
                        found |= 1u << number;
                if (e->size == 0)
                        break;
                at += e->size;
        }
        return found;
}

/* Which slices there are, as bits; all, where the directory cannot be read. Trying each of 32 names takes longer than all the rest. */
static uint32_t which_slices(const char *directory) {
        char entries[ENTRIES_SIZE] __attribute__((aligned(8))) = {0};
        long fd = sys_call(SYS_openat, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), n;
        uint32_t found = 0;

        if (fd < 0)
                return UINT32_MAX;
        while ((n = sys_call(SYS_getdents64, fd, entries, sizeof entries)) > 0)
                found |= numbers_in(entries, n);
        (void) sys_call(SYS_close, fd); /* only read from */
        return n < 0 ? UINT32_MAX : found;
}

/* The node says so in the pages: the environment of the container is not asked. */
static bool is_open(const char *directory) {
        uint32_t slices = which_slices(directory);
        SliceLimits limits;
        unsigned found = 0;

        for (unsigned n = 0; n < GATE_CARDS; n++) {
                if (!(slices >> n & 1) || !read_limits(directory, n, &limits))
                        continue;
                if (!(limits.flags & SLICE_FLAG_OPEN))
                        return false;
                found++;
        }
        return found > 0;
}

/* Who the card is, also where the slice cannot be opened: its driver's files must be known to be refused. */
static void read_identity(const char *directory, unsigned n, GateCard *card) {
        SliceLimits limits;

        if (!read_limits(directory, n, &limits))
                return;
        card->ctl = limits.ctl;
        card->device = limits.device;
        card->uvm = limits.uvm;
        for (unsigned i = 0; i < SLICE_UUID - 1; i++)
                card->uuid[i] = limits.uuid[i];
}

static void open_card(Gate *g, const char *directory, unsigned n) {
        GateCard *card = &g->cards[g->n_cards];
        char path[PATH_SIZE];
        int r;

        if (!path_of(directory, n, "", path) || !is_directory(path))
                return;
        read_identity(directory, n, card);
        r = slice_open(path, &card->slice);
        card->there = true;
        card->good = r == 0;
        g->n_cards++;
        gate_say(g, r == 0 ? "slice" : "slice cannot be used; error", n, (uint64_t) -r);
}

/* In a child, over what the parent had: its rows are not ours. They stay mapped, because they count what both share. */
static void fill(Gate *g) {
        const char *log = environment(LOG_NAME), *directory;
        uint32_t slices;

        g->log = log && log[0] >= '2' && log[0] <= '9' && log[1] == '\0';
        objects_after_fork(&g->objects);
        exports_after_fork(&g->exports);
        uvm_after_fork(&g->uvm);
        g->n_cards = 0;
        directory = slices_directory();
        slices = directory ? which_slices(directory) : 0;
        for (unsigned n = 0; n < GATE_CARDS; n++)
                if (slices >> n & 1)
                        open_card(g, directory, n);
}

/* ---- the first call ---- */

/* A page of its own that fork() leaves behind. Kernels before 4.14 cannot: there the process asks who it is each time. */
static Gate *new_gate(void) {
        Gate *g = map(sizeof *g), *first = NULL;
        void *page = map(STAGE_PAGE);

        if (!g || !page)
                return NULL; /* no memory: the application is about to learn that, too */
        g->stage = page;
        g->by_pid = sys_call(SYS_madvise, page, STAGE_PAGE, MADV_WIPEONFORK) < 0;
        if (atomic_compare_exchange_strong(&the_gate, &first, g))
                return g;
        (void) sys_call(SYS_munmap, page, STAGE_PAGE); /* another thread was first; these are ours */
        (void) sys_call(SYS_munmap, g, sizeof *g);
        return first;
}

static bool is_ready(Gate *g) {
        if (atomic_load_explicit(g->stage, memory_order_acquire) != STAGE_READY)
                return false;
        if (!g->by_pid || g->pid == sys_call(SYS_getpid))
                return true;
        atomic_store(g->stage, STAGE_NEW);
        return false;
}

/* The thread that finds it new makes it, the others wait. A signal handler of the maker cannot, and gets it as it is: with fewer
 * cards, or none, what it allocates is refused. So do those who waited too long. */
static Gate *make(Gate *g) {
        uintptr_t self = spin_self(), stage = STAGE_NEW;

        for (unsigned turn = 0; turn < MAKING_YIELDS && !is_ready(g); turn++) {
                stage = STAGE_NEW;
                if (atomic_compare_exchange_strong(g->stage, &stage, self)) {
                        g->pid = sys_call(SYS_getpid);
                        fill(g);
                        atomic_store_explicit(g->stage, STAGE_READY, memory_order_release);
                } else if (stage == self) {
                        break;
                } else {
                        (void) sys_call(SYS_sched_yield);
                }
        }
        return g;
}

Gate *gate_get(void) {
        Gate *g = atomic_load_explicit(&the_gate, memory_order_acquire);

        if (g && is_ready(g))
                return g;
        if (atomic_load_explicit(&off, memory_order_relaxed))
                return NULL;
        if (!g) {
                const char *directory = slices_directory();

                if (!directory || is_open(directory)) {
                        atomic_store_explicit(&off, 1, memory_order_relaxed);
                        return NULL;
                }
                g = new_gate();
        }
        return g ? make(g) : NULL;
}

/* ---- words ---- */

static size_t say_number(char *to, uint64_t value) {
        char digits[20];
        size_t n = 0, at = 0;

        do
                digits[n++] = (char) ('0' + value % 10);
        while ((value /= 10) > 0);
        while (n > 0)
                to[at++] = digits[--n];
        return at;
}

void gate_say(const Gate *g, const char *text, uint64_t a, uint64_t b) {
        static const char name[] = "aliquot: ";
        char line[160];
        size_t n = 0;

        if (!g->log)
                return;
        for (const char *p = name; *p; p++)
                line[n++] = *p;
        for (; *text && n < 100; text++)
                line[n++] = *text;
        line[n++] = ' ';
        n += say_number(line + n, a);
        line[n++] = ' ';
        n += say_number(line + n, b);
        line[n++] = '\n';
        (void) sys_call(SYS_write, 2, line, n); /* for people; nothing depends on it */
}
