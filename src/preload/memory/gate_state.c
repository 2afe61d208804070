/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/gate_state.h"

#include <errno.h>
#include <sys/mman.h>

#include "preload/inject/slots.h"
#include "preload/memory/discover.h"
#include "preload/memory/driver_fd.h"
#include "preload/memory/rows.h"

#define LOG_NAME "ALIQUOT_LOG"

enum {
        STAGE_PAGE = 4096,
        STAGE_NEW = 0, /* values above 2: the thread that makes the state */
        STAGE_READY = 1,
        STAGE_AGAIN = 2, /* a slice could not be read or opened: the next call tries again */
        MAKING_YIELDS = 1000000,
};

/* Static memory: a process without free memory must not get around the gate. */
static Gate the_gate;
static _Atomic uintptr_t stage_here; /* in place of a page that fork() does not copy */
static _Atomic(_Atomic uintptr_t *) the_stage;
static _Atomic int off; /* 1: nothing is isolated, for this process and its children */

/* ---- the slices ---- */

/* Reads the files and the UUID of the card, also if its slice cannot be opened. A call on the files
 * of the card can only be refused if they are known. */
static void read_identity(const char *directory, GateCard *card) {
        SliceLimits limits;

        if (card->known || discover_limits(directory, card->number, &limits) < 0)
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

/* Returns true if the card is final, and not tried again. A file that is not a page will not become
 * one. */
static bool open_card(Gate *g, const char *directory, unsigned number, int fd) {
        GateCard *card = card_of(g, number);
        char path[DISCOVER_PATH];
        int r = -ENAMETOOLONG;

        if (!card) {
                card = &g->cards[g->n_cards];
                card->number = number;
                g->n_cards++;
        }
        if (card->usable)
                return true;
        read_identity(directory, card);
        if (discover_path(directory, number, "", path))
                r = slice_open_early(path, fd, g->keys[GATE_ROW_OWN], &card->slice);
        if (r == 0) {
                card->usable = true;
                gate_note_files(g, card, GATE_ROW_OWN);
        }
        gate_log(g, r == 0 ? "slice" : "slice cannot be used; error", number, (uint64_t) -r);
        return r == 0 || r == -EPROTO;
}

/* Opens all slices that are not open yet. Returns true if all of them are final. */
static bool open_cards(Gate *g, const char *directory, int fd) {
        uint32_t slices = 0;
        bool all = directory && discover_numbers(directory, &slices), known = true;

        for (unsigned n = 0; n < GATE_CARDS; n++)
                if (slices >> n & 1)
                        all = open_card(g, directory, n, fd) && all;
        for (uint32_t i = 0; i < g->n_cards; i++) {
                known = known && g->cards[i].known;
                all = all && (g->cards[i].usable || (slices >> g->cards[i].number & 1));
        }
        g->files_unknown = !known || g->n_cards == 0;
        return all && !g->files_unknown;
}

static bool is_any_open(const Gate *g) {
        for (uint32_t i = 0; i < g->n_cards; i++)
                if (g->cards[i].usable)
                        return true;
        return false;
}

/* Resets what belongs to one process. A child keeps what its parent knew of the driver's files, and
 * gets rows of its own. */
static void reset_process(Gate *g, bool by_pid) {
        const char *log = discover_environment(LOG_NAME);

        g->log = log && log[0] >= '0' && log[0] <= '9' && log[1] == '\0' ? (unsigned) (log[0] - '0') : 1;
        atomic_store(&g->said_rowless, false);
        atomic_store(&g->said_refused, false);
        g->pid = sys_call(SYS_getpid);
        rm_objects_after_fork(&g->objects);
        export_table_after_fork(&g->exports);
        uvm_after_fork(&g->uvm);
        uvm_maps_after_fork(&g->maps);
        slots_after_fork();
        gate_rows_after_fork(g, by_pid);
}

/* Finds and opens the slices. Returns the new stage. */
static uintptr_t open_slices(Gate *g, int fd) {
        const char *directory;
        Discovery found;

        found = discover_slices(&directory);
        if (!is_any_open(g) && ((found == DISCOVERY_NONE && g->n_cards == 0) || found == DISCOVERY_OPEN)) {
                atomic_store_explicit(&off, 1, memory_order_relaxed);
                return STAGE_NEW;
        }
        return open_cards(g, directory, fd) ? STAGE_READY : STAGE_AGAIN;
}

/* ---- the first call ---- */

/* Returns a page that fork() clears in the child (MADV_WIPEONFORK, Linux 4.14). Without it, or
 * without memory, each call compares the process's number. */
static _Atomic uintptr_t *new_stage(void) {
        long p =
                sys_call(SYS_mmap, 0, STAGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        _Atomic uintptr_t *stage = &stage_here, *first = NULL;

        if (p > 0 || p <= -4096) {
                if (sys_call(SYS_madvise, p, STAGE_PAGE, MADV_WIPEONFORK) == 0)
                        stage = (_Atomic uintptr_t *) p;
                else
                        (void) sys_call(SYS_munmap, p, STAGE_PAGE); /* our own mapping */
        }
        if (atomic_compare_exchange_strong(&the_stage, &first, stage))
                return stage;
        if (stage != &stage_here)
                (void) sys_call(SYS_munmap, stage, STAGE_PAGE); /* another thread was first */
        return first;
}

/* Returns the stage of this process. A child that is recognised by its number begins at
 * STAGE_NEW. */
static uintptr_t stage_of(const Gate *g, _Atomic uintptr_t *stage) {
        uintptr_t now = atomic_load_explicit(stage, memory_order_acquire);

        if (stage == &stage_here && (now == STAGE_READY || now == STAGE_AGAIN) &&
            g->pid != sys_call(SYS_getpid) && atomic_compare_exchange_strong(stage, &now, STAGE_NEW))
                return STAGE_NEW;
        return now;
}

/* Makes the state in the first thread, while others wait. A signal handler of the first thread
 * cannot wait, and gets the state as it is, with fewer cards or none: its allocations are refused.
 * The same holds for a thread that has waited too long. */
static Gate *make_once(Gate *g, _Atomic uintptr_t *stage, int fd) {
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
                                reset_process(g, stage == &stage_here);
                        atomic_store_explicit(stage, open_slices(g, fd), memory_order_release);
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
        return make_once(&the_gate, stage ? stage : new_stage(), fd);
}

/* The driver's major number is always known. The files of simulated drivers are known from the
 * first call on, and in children. */
Gate *gate_get_for_driver(int fd) {
        return gate_is_driver(&the_gate, fd) ? gate_get_for(fd) : NULL;
}

Gate *gate_get_for_mapping(int fd) {
        _Atomic uintptr_t *stage = atomic_load_explicit(&the_stage, memory_order_acquire);

        /* In a child, the files that its parent knew are still right. */
        if (stage && stage_of(&the_gate, stage) == STAGE_NEW && (fd < 0 || !gate_is_uvm(&the_gate, fd)))
                return NULL;
        return gate_get();
}
