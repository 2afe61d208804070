/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/mman.h>

#include "preload/inject/bytes.h"
#include "preload/inject/slots.h"
#include "preload/memory/gate.h"
#include "preload/memory/look.h"
#include "preload/memory/rows.h"

#define LOG_NAME "ALIQUOT_LOG"

enum {
        STAGE_PAGE = 4096,
        STAGE_NEW = 0, /* besides: the thread that makes it, whose value is larger than these */
        STAGE_READY = 1,
        STAGE_AGAIN = 2, /* something could not be told, or opened: the next call tries again */
        MAKING_YIELDS = 1000000,
};

/* Not in memory that would have to be asked for: who has none left must not get around it. */
static Gate the_gate;
static _Atomic uintptr_t stage_here; /* where no page can be had that fork() leaves behind */
static _Atomic(_Atomic uintptr_t *) the_stage;
static _Atomic int off; /* there is nothing here: for this process and its children */

/* ---- the slices ---- */

/* Who the card is, also where the slice cannot be opened: its driver's files must be known to be
 * refused. */
static void read_identity(const char *directory, GateCard *card) {
        SliceLimits limits;

        if (card->known || look_limits(directory, card->number, &limits) < 0)
                return;
        card->ctl = limits.ctl;
        card->device = limits.device;
        card->uvm = limits.uvm;
        for (unsigned i = 0; i < SLICE_UUID - 1; i++)
                card->uuid[i] = limits.uuid[i];
        card->known = true;
}

static GateCard *card_of(Gate *g, unsigned number) {
        for (uint32_t i = 0; i < g->n_cards; i++)
                if (g->cards[i].number == number)
                        return &g->cards[i];
        return NULL;
}

/* true: that is how it is, and need not be tried again. A page that is none will not become one. */
static bool open_card(Gate *g, const char *directory, unsigned number, int fd) {
        GateCard *card = card_of(g, number);
        char path[LOOK_PATH];
        int r = -ENAMETOOLONG;

        if (!card) {
                card = &g->cards[g->n_cards];
                card->number = number;
                g->n_cards++;
        }
        if (card->good)
                return true;
        read_identity(directory, card);
        if (look_path(directory, number, "", path))
                r = slice_open_with(path, fd, g->keys[GATE_ROW_OWN], &card->slice);
        if (r == 0) {
                card->good = true;
                gate_begin_row(g, card, GATE_ROW_OWN);
        }
        gate_say(g, r == 0 ? "slice" : "slice cannot be used; error", number, (uint64_t) -r);
        return r == 0 || r == -EPROTO;
}

/* Also of those that are open already: a card that is known to one thread only is one that the
 * others would not find. */
static bool open_cards(Gate *g, const char *directory, int fd) {
        uint32_t slices = 0;
        bool all = directory && look_which(directory, &slices), known = true;

        for (unsigned n = 0; n < GATE_CARDS; n++)
                if (slices >> n & 1)
                        all = open_card(g, directory, n, fd) && all;
        for (uint32_t i = 0; i < g->n_cards; i++) {
                known = known && g->cards[i].known;
                all = all && (g->cards[i].good || (slices >> g->cards[i].number & 1));
        }
        g->uncertain = !known || g->n_cards == 0;
        return all && !g->uncertain;
}

static bool is_any_open(const Gate *g) {
        for (uint32_t i = 0; i < g->n_cards; i++)
                if (g->cards[i].good)
                        return true;
        return false;
}

/* What this process has of it, whoever it was before. The parent's rows are not a child's; its
 * driver's files are. */
static void begin(Gate *g, bool by_pid) {
        const char *log = look_environment(LOG_NAME);

        g->log = log && log[0] >= '2' && log[0] <= '9' && log[1] == '\0';
        g->pid = sys_call(SYS_getpid);
        objects_after_fork(&g->objects);
        exports_after_fork(&g->exports);
        uvm_after_fork(&g->uvm);
        slots_after_fork();
        gate_rows_after_fork(g, by_pid);
}

/* The stage that it has then. */
static uintptr_t fill(Gate *g, int fd) {
        const char *directory;
        Look look;

        look = look_for_slices(&directory);
        if (!is_any_open(g) && ((look == LOOK_NONE && g->n_cards == 0) || look == LOOK_OPEN)) {
                atomic_store_explicit(&off, 1, memory_order_relaxed);
                return STAGE_NEW;
        }
        return open_cards(g, directory, fd) ? STAGE_READY : STAGE_AGAIN;
}

/* ---- the first call ---- */

/* A page of its own that fork() leaves behind. Kernels before 4.14 cannot, and there may be no
 * memory: there the process asks who it is each time. */
static _Atomic uintptr_t *new_stage(void) {
        long p =
                sys_call(SYS_mmap, 0, STAGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        _Atomic uintptr_t *stage = &stage_here, *first = NULL;

        if (p > 0 || p <= -4096) {
                if (sys_call(SYS_madvise, p, STAGE_PAGE, MADV_WIPEONFORK) == 0)
                        stage = (_Atomic uintptr_t *) p;
                else
                        (void) sys_call(SYS_munmap, p, STAGE_PAGE); /* ours */
        }
        if (atomic_compare_exchange_strong(&the_stage, &first, stage))
                return stage;
        if (stage != &stage_here)
                (void) sys_call(SYS_munmap, stage, STAGE_PAGE); /* another thread was first; this is ours */
        return first;
}

/* Of this process: a child that is told apart by its number begins anew. */
static uintptr_t stage_of(const Gate *g, _Atomic uintptr_t *stage) {
        uintptr_t now = atomic_load_explicit(stage, memory_order_acquire);

        if (stage == &stage_here && (now == STAGE_READY || now == STAGE_AGAIN) &&
            g->pid != sys_call(SYS_getpid) && atomic_compare_exchange_strong(stage, &now, STAGE_NEW))
                return STAGE_NEW;
        return now;
}

/* The thread that finds it new makes it, the others wait. A signal handler of the maker cannot, and
 * gets it as it is: with fewer cards, or none, what it allocates is refused. So do those who waited
 * too long. */
static Gate *make(Gate *g, _Atomic uintptr_t *stage, int fd) {
        uintptr_t self = spin_self(), now;

        for (unsigned turn = 0; turn < MAKING_YIELDS; turn++) {
                now = stage_of(g, stage);
                if (now == STAGE_READY || now == self)
                        break;
                if (atomic_load_explicit(&off, memory_order_relaxed))
                        return NULL;
                if (now != STAGE_NEW && now != STAGE_AGAIN) {
                        (void) sys_call(SYS_sched_yield);
                } else if (atomic_compare_exchange_strong(stage, &now, self)) {
                        if (now == STAGE_NEW)
                                begin(g, stage == &stage_here);
                        atomic_store_explicit(stage, fill(g, fd), memory_order_release);
                        break;
                }
        }
        return atomic_load_explicit(&off, memory_order_relaxed) ? NULL : g;
}

Gate *gate_get(void) {
        return gate_get_for(-1);
}

Gate *gate_get_for(int fd) {
        _Atomic uintptr_t *stage = atomic_load_explicit(&the_stage, memory_order_acquire);

        if (stage && stage_of(&the_gate, stage) == STAGE_READY)
                return &the_gate;
        if (atomic_load_explicit(&off, memory_order_relaxed))
                return NULL;
        return make(&the_gate, stage ? stage : new_stage(), fd);
}

/* What is known of the files of simulated drivers holds from the first call on, and in children;
 * the device's number always. */
Gate *gate_get_of_driver(int fd) {
        return gate_is_driver(&the_gate, fd) ? gate_get_for(fd) : NULL;
}

Gate *gate_get_mapped(int fd) {
        _Atomic uintptr_t *stage = atomic_load_explicit(&the_stage, memory_order_acquire);

        /* What the parent knew of files still holds. */
        if (stage && stage_of(&the_gate, stage) == STAGE_NEW && (fd < 0 || !gate_is_uvm(&the_gate, fd)))
                return NULL;
        return gate_get();
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
