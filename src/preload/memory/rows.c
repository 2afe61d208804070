/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/rows.h"

#include <errno.h>

#include "preload/memory/driver_fd.h"
#include "slice/pin.h"

enum {
        EXTRA_NONE = 0,
        EXTRA_OPENING, /* one thread is opening the row; others do without it */
        EXTRA_OPEN,
        EXTRA_NEVER, /* the page has no free row */
};

/* Whether another container has locked the byte: it can lock all of an inode that it shares with
 * this one. No call is refused for that. */
static bool is_locked_by_another(int r) {
        return r == -EAGAIN || r == -EACCES;
}

/* ---- rows ---- */

static uint64_t shared_key(Gate *g) {
        uint64_t key = atomic_load(&g->keys[GATE_ROW_SHARED]);
        GateCard *first = NULL;

        for (uint32_t i = 0; i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].usable && (!first || g->cards[i].number < first->number))
                        first = &g->cards[i];
        if (key != 0 || !first)
                return key;
        return atomic_compare_exchange_strong(&g->keys[GATE_ROW_SHARED], &key,
                                              slice_shared_key(&first->slice))
                       ? atomic_load(&g->keys[GATE_ROW_SHARED])
                       : key;
}

static uint64_t key_of(Gate *g, GateRow row) {
        return row == GATE_ROW_SHARED ? shared_key(g) : atomic_load(&g->keys[row]);
}

static SliceUser *slice_of(GateCard *card, GateRow row) {
        return row == GATE_ROW_OWN ? &card->slice : &card->extra[row - 1].slice;
}

static bool is_open(GateCard *card, GateRow row) {
        return card->usable &&
               (row == GATE_ROW_OWN || atomic_load(&card->extra[row - 1].state) == EXTRA_OPEN);
}

SliceUser *gate_slice(Gate *g, int card, GateRow row) {
        GateCard *c = &g->cards[card];

        return slice_of(c, is_open(c, row) ? row : GATE_ROW_OWN);
}

/* Records the inodes in the row. If there is no row yet, gate_need_row() does it later. */
static void note_inodes(Gate *g, GateCard *card, GateRow row) {
        SliceUser *slice = slice_of(card, row);
        uint32_t number = atomic_load(&slice->row);
        uint64_t inodes = atomic_load(&g->inodes[row]);

        if (inodes != 0 && number != SLICE_NO_ROW)
                pin_note_inodes(&slice->counters->rows[number], inodes);
}

void gate_note_files(Gate *g, GateCard *card, GateRow row) {
        note_inodes(g, card, row);
        if (atomic_load(&g->unpinned))
                slice_inherit_on_fork(slice_of(card, row));
}

static int take_own_row(Gate *g, GateCard *c, int fd) {
        int r = slice_need_row(&c->slice, fd, key_of(g, GATE_ROW_OWN));

        if (r == 0)
                gate_note_files(g, c, GATE_ROW_OWN);
        return r;
}

static void refuse_rowless(Gate *g, GateCard *c, int r) {
        atomic_fetch_add_explicit(&c->slice.counters->refused, 1, memory_order_relaxed);
        gate_log(g, "refused: the slice gives no row; error", c->number, (uint64_t) -r);
        if (r != -EUSERS)
                return;
        atomic_fetch_add_explicit(&c->slice.counters->rowless, 1, memory_order_relaxed);
        gate_say_rowless(g, c);
}

bool gate_need_row(Gate *g, int card, int fd) {
        GateCard *c = &g->cards[card];
        int r = -EBUSY;

        if (!c->usable)
                return false;
        if (atomic_load(&c->slice.row) != SLICE_NO_ROW)
                return true;
        if (spin_take(&c->taking)) {
                r = take_own_row(g, c, fd);
                spin_drop(&c->taking);
        }
        if (r < 0)
                refuse_rowless(g, c, r);
        return r == 0;
}

/* The first thread that needs the row opens it. Other threads use the own row meanwhile. */
bool gate_open_row(Gate *g, int card, GateRow row, int fd) {
        GateCard *c = &g->cards[card];
        int state = EXTRA_NONE, r;

        if (is_open(c, row))
                return true;
        if (!c->usable || row == GATE_ROW_OWN || key_of(g, row) == 0 ||
            !atomic_compare_exchange_strong(&c->extra[row - 1].state, &state, EXTRA_OPENING))
                return false;
        r = slice_open_row(&c->slice, fd, key_of(g, row), row == GATE_ROW_SHARED, &c->extra[row - 1].slice);
        atomic_store(&c->extra[row - 1].state, r == 0 ? EXTRA_OPEN : r == -EUSERS ? EXTRA_NEVER : EXTRA_NONE);
        if (r == 0)
                gate_note_files(g, c, row);
        else
                gate_log(g, "a further row cannot be had; error", c->number, (uint64_t) -r);
        return r == 0;
}

void gate_rows_after_fork(Gate *g, bool by_pid) {
        for (uint32_t i = 0; i < g->n_cards; i++) {
                GateCard *card = &g->cards[i];

                for (unsigned row = GATE_ROW_OWN; row < GATE_ROWS; row++) {
                        /* A process that is known by its number only may share this memory with its
                         * parent: the pages stay mapped. */
                        if (is_open(card, (GateRow) row) && !by_pid)
                                slice_close_after_fork(slice_of(card, (GateRow) row));
                        if (row != GATE_ROW_OWN)
                                atomic_store(&card->extra[row - 1].state, EXTRA_NONE);
                }
                spin_drop(&card->taking);
                card->usable = false;
        }
        for (unsigned row = GATE_ROW_OWN; row < GATE_ROWS; row++) {
                atomic_store(&g->keys[row], row == GATE_ROW_SHARED ? 0 : pin_key_new());
                atomic_store(&g->inodes[row], 0);
        }
        atomic_store(&g->unpinned, false);
}

/* ---- locks ---- */

static uint64_t inode_of(const Gate *g, int fd) {
        GateFile file = gate_file(g, fd);

        return pin_inode(fd, file == GATE_FILE_RM ? PIN_RM : file == GATE_FILE_UVM ? PIN_UVM : PIN_OTHER);
}

/* Records the inode first, in the rows of all cards: a lock on an unknown inode would not be looked
 * for. A row that is opened later records it then. */
static int pin_in(Gate *g, int fd, GateRow row) {
        uint64_t inode = inode_of(g, fd), old = atomic_load(&g->inodes[row]);

        if (inode == 0 || key_of(g, row) == 0)
                return -EBADF;
        while (!atomic_compare_exchange_strong(&g->inodes[row], &old, pin_merge_inodes(old, inode)))
                ; /* a half only becomes "several", so this ends */
        for (uint32_t i = 0; i < g->n_cards; i++)
                if (is_open(&g->cards[i], row))
                        note_inodes(g, &g->cards[i], row);
        return pin_file(fd, key_of(g, row));
}

/* Locks the file for the row, and for the exports' row. An export moves bytes from the process's
 * own row to the exports' row, and duplicates of them stay in other files. At the time of an export
 * it is not known which files these are, so every file of the own row keeps the exports' row, too,
 * from the beginning. */
static int pin_with_exports(Gate *g, int fd, GateRow row) {
        int r = pin_in(g, fd, row);

        return r == 0 && row == GATE_ROW_OWN ? pin_in(g, fd, GATE_ROW_EXPORTS) : r;
}

/* Lets children inherit the mapping: from now on a row is kept by its own lock, in a file that no
 * other container can open. */
static void go_unpinned(Gate *g) {
        atomic_store(&g->unpinned, true);
        for (uint32_t i = 0; i < g->n_cards; i++)
                for (unsigned row = GATE_ROW_OWN; row < GATE_ROWS; row++)
                        if (is_open(&g->cards[i], (GateRow) row))
                                slice_inherit_on_fork(slice_of(&g->cards[i], (GateRow) row));
}

bool gate_pin(Gate *g, int fd, GateRow row) {
        int r = pin_with_exports(g, fd, row);

        if (r < 0)
                gate_log(g, "a file cannot be pinned; error", (uint64_t) fd, (uint64_t) -r);
        if (is_locked_by_another(r))
                go_unpinned(g);
        return r == 0 || is_locked_by_another(r);
}

bool gate_pin_client(Gate *g, int fd, uint8_t *ret_row) {
        const uint64_t own[] = {key_of(g, GATE_ROW_OWN), key_of(g, GATE_ROW_EXPORTS)};

        *ret_row = GATE_ROW_OWN;
        if (pin_is_shared(fd, own, sizeof own / sizeof *own) &&
            pin_with_exports(g, fd, GATE_ROW_SHARED) == 0) {
                *ret_row = GATE_ROW_SHARED;
                return true;
        }
        return gate_pin(g, fd, GATE_ROW_OWN);
}

/* A client that this process has not made, or has forgotten, lives on this file, because the driver
 * serves a client on its own file only. Clients that this process made have their file pinned,
 * unless it could not be locked. */
bool gate_pin_row(Gate *g, int fd, const RmParent *parent, GateRow row) {
        if (parent->up[0] != 0 && parent->row == row &&
            !atomic_load_explicit(&g->unpinned, memory_order_relaxed))
                return true;
        return gate_pin(g, fd, row);
}

bool gate_pin_parent(Gate *g, int card, int fd, RmParent *parent) {
        if (parent->row == GATE_ROW_SHARED && gate_open_row(g, card, GATE_ROW_SHARED, fd) &&
            ((parent->up[0] != 0 && !atomic_load(&g->unpinned)) ||
             pin_with_exports(g, fd, GATE_ROW_SHARED) == 0))
                return true;
        if (parent->row == GATE_ROW_OWN)
                return gate_pin_row(g, fd, parent, GATE_ROW_OWN);
        parent->row = GATE_ROW_OWN;
        return gate_pin(g, fd, GATE_ROW_OWN);
}

bool gate_pin_export(Gate *g, int fd) {
        return !atomic_load(&g->unpinned) && pin_with_exports(g, fd, GATE_ROW_EXPORTS) == 0;
}

/* ---- bytes ---- */

void gate_release_bytes(Gate *g, const FreedBytes *bytes) {
        for (unsigned row = 0; row < RM_OBJECTS_ROWS; row++)
                for (uint32_t left = bytes->cards[row], i; left != 0; left &= left - 1) {
                        i = (uint32_t) __builtin_ctz(left);
                        if (g->cards[i].usable)
                                slice_release(gate_slice(g, (int) i, (GateRow) row), bytes->card[row][i]);
                }
}

void gate_drop_charge(Gate *g, uint32_t charge, const RmObject *source) {
        FreedBytes freed;

        freed_bytes_clear(&freed);
        rm_objects_drop_charge(&g->objects, charge, source, &freed);
        gate_release_bytes(g, &freed);
}
