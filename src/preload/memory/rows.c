/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/rows.h"

#include <errno.h>

#include "slice/pin.h"

enum {
        MORE_NONE = 0,
        MORE_OPENING, /* a thread is */
        MORE_OPEN,
        MORE_NEVER, /* the page has no row left */
};

/* Neighbours can lock all of an inode that they share with us. Nobody is refused for that. */
static bool is_in_the_way(int r) {
        return r == -EAGAIN || r == -EACCES;
}

/* ---- rows ---- */

static uint64_t shared_key(Gate *g) {
        uint64_t key = atomic_load(&g->keys[GATE_ROW_SHARED]);
        GateCard *first = NULL;

        for (uint32_t i = 0; i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].good && (!first || g->cards[i].number < first->number))
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
        return row == GATE_ROW_OWN ? &card->slice : &card->more[row - 1].slice;
}

static bool is_open(GateCard *card, GateRow row) {
        return card->good && (row == GATE_ROW_OWN || atomic_load(&card->more[row - 1].state) == MORE_OPEN);
}

SliceUser *gate_slice(Gate *g, int card, GateRow row) {
        GateCard *c = &g->cards[card];

        return slice_of(c, is_open(c, row) ? row : GATE_ROW_OWN);
}

static void note_inode(Gate *g, GateCard *card, GateRow row) {
        uint64_t inode = atomic_load(&g->inodes[row]);
        SliceUser *slice = slice_of(card, row);

        if (inode != 0)
                pin_note_inode(&slice->counters->rows[slice->row], inode);
}

void gate_begin_row(Gate *g, GateCard *card, GateRow row) {
        note_inode(g, card, row);
        if (atomic_load(&g->unpinned))
                slice_inherit_on_fork(slice_of(card, row));
}

/* Once, by the first who needs it; who comes meanwhile does without. */
bool gate_open_row(Gate *g, int card, GateRow row, int fd) {
        GateCard *c = &g->cards[card];
        int state = MORE_NONE, r;

        if (is_open(c, row))
                return true;
        if (!c->good || row == GATE_ROW_OWN || key_of(g, row) == 0 ||
            !atomic_compare_exchange_strong(&c->more[row - 1].state, &state, MORE_OPENING))
                return false;
        r = slice_open_row(&c->slice, fd, key_of(g, row), row == GATE_ROW_SHARED, &c->more[row - 1].slice);
        atomic_store(&c->more[row - 1].state, r == 0 ? MORE_OPEN : r == -EUSERS ? MORE_NEVER : MORE_NONE);
        if (r == 0)
                gate_begin_row(g, c, row);
        else
                gate_say(g, "a further row cannot be had; error", c->number, (uint64_t) -r);
        return r == 0;
}

void gate_rows_after_fork(Gate *g, bool by_pid) {
        for (uint32_t i = 0; i < g->n_cards; i++) {
                GateCard *card = &g->cards[i];

                for (unsigned row = GATE_ROW_OWN; row < GATE_ROWS; row++) {
                        /* Who is told apart by his number only may be one that shares this memory.
                         * They stay mapped then. */
                        if (is_open(card, (GateRow) row) && !by_pid)
                                slice_close_after_fork(slice_of(card, (GateRow) row));
                        if (row != GATE_ROW_OWN)
                                atomic_store(&card->more[row - 1].state, MORE_NONE);
                }
                card->good = false;
        }
        for (unsigned row = GATE_ROW_OWN; row < GATE_ROWS; row++) {
                atomic_store(&g->keys[row], row == GATE_ROW_SHARED ? 0 : pin_key_new());
                atomic_store(&g->inodes[row], 0);
        }
        atomic_store(&g->unpinned, false);
}

/* ---- locks ---- */

/* The inode first, in all rows: a lock that nobody knows of would not be looked for. A row that is
 * opened later gets it then. */
static int pin_in(Gate *g, int fd, GateRow row) {
        uint64_t inode = pin_inode(fd), old = 0;

        if (inode == 0 || key_of(g, row) == 0)
                return -EBADF;
        if (!atomic_compare_exchange_strong(&g->inodes[row], &old, inode) && old != inode)
                atomic_store(&g->inodes[row], UINT64_MAX);
        for (uint32_t i = 0; i < g->n_cards; i++)
                if (is_open(&g->cards[i], row))
                        note_inode(g, &g->cards[i], row);
        return pin_file(fd, key_of(g, row));
}

/* What is exported leaves the process's own row, and not the files that it is in: those keep that
 * of the exports, too, from the beginning. By the time of an export nobody knows any more in which
 * files there are duplicates. */
static int pin(Gate *g, int fd, GateRow row) {
        int r = pin_in(g, fd, row);

        return r == 0 && row == GATE_ROW_OWN ? pin_in(g, fd, GATE_ROW_EXPORTS) : r;
}

/* What keeps a row then is its own lock, in a file that no other container can open: by the
 * mapping, which children have again. */
static void go_unpinned(Gate *g) {
        atomic_store(&g->unpinned, true);
        for (uint32_t i = 0; i < g->n_cards; i++)
                for (unsigned row = GATE_ROW_OWN; row < GATE_ROWS; row++)
                        if (is_open(&g->cards[i], (GateRow) row))
                                slice_inherit_on_fork(slice_of(&g->cards[i], (GateRow) row));
}

bool gate_pin(Gate *g, int fd, GateRow row) {
        int r = pin(g, fd, row);

        if (r < 0)
                gate_say(g, "a file cannot be pinned; error", (uint64_t) fd, (uint64_t) -r);
        if (is_in_the_way(r))
                go_unpinned(g);
        return r == 0 || is_in_the_way(r);
}

bool gate_pin_client(Gate *g, int fd, uint8_t *ret_row) {
        const uint64_t own[] = {key_of(g, GATE_ROW_OWN), key_of(g, GATE_ROW_EXPORTS)};

        *ret_row = GATE_ROW_OWN;
        if (pin_is_shared(fd, own, sizeof own / sizeof *own) && pin(g, fd, GATE_ROW_SHARED) == 0) {
                *ret_row = GATE_ROW_SHARED;
                return true;
        }
        return gate_pin(g, fd, GATE_ROW_OWN);
}

/* A client that was not made here, or was forgotten, is on a file of somebody else, which is this
 * one: the driver serves no client on another's file. Those that were made here have theirs pinned,
 * unless that could not be had then. */
bool gate_pin_row(Gate *g, int fd, const ObjectSeat *seat, GateRow row) {
        if (seat->up[0] != 0 && seat->row == row && !atomic_load_explicit(&g->unpinned, memory_order_relaxed))
                return true;
        return gate_pin(g, fd, row);
}

bool gate_pin_seat(Gate *g, int card, int fd, ObjectSeat *seat) {
        if (seat->row == GATE_ROW_SHARED && gate_open_row(g, card, GATE_ROW_SHARED, fd) &&
            ((seat->up[0] != 0 && !atomic_load(&g->unpinned)) || pin(g, fd, GATE_ROW_SHARED) == 0))
                return true;
        if (seat->row == GATE_ROW_OWN)
                return gate_pin_row(g, fd, seat, GATE_ROW_OWN);
        seat->row = GATE_ROW_OWN;
        return gate_pin(g, fd, GATE_ROW_OWN);
}

bool gate_pin_export(Gate *g, int fd) {
        return !atomic_load(&g->unpinned) && pin(g, fd, GATE_ROW_EXPORTS) == 0;
}
