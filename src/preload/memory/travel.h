/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What duplicate.c, export.c and import.c have together: memory that comes from elsewhere, by a
 * duplicate or by a descriptor, and what is exported to a descriptor. */

#include "preload/memory/call.h"

/* Bytes of the card behind an object; 0 where it is none of the card's memory. */
uint64_t call_measure(const Call *c, uint32_t object);

/* What a duplicate of something charged has, as the driver tells: what is no memory is a channel
 * group. A handle may be another object's by the time the driver looks, and a larger one's. */
uint64_t call_measure_charged(const Call *c, uint32_t object, uint8_t card);

/* What the driver has just made below c->seat. false: there is no room for it, and it is freed
 * again. */
bool call_charge(Call *c, uint32_t object, uint64_t bytes);

/* Another process's memory counts here as well, for as long as it is here: nobody in this process
 * can know whether the other one still has it. So it is counted twice while both have it, and never
 * not at all. */
bool call_charge_foreign(Call *c, uint32_t object);

/* One more holder of a share, whose reference it gets; or none, after all. source: row, card and
 * units of what is shared. */
void call_add_holder(Call *c, uint32_t object, uint32_t share, const Object *source);
void gate_drop_share(Gate *g, uint32_t share, const Object *source);

/* ---- what is exported (filed.c) ---- */

static inline Object filed_source(const Export *x) {
        return (Object){.units = x->units, .card = x->card, .row = x->row};
}

/* The bytes are with the files as long as there is one; they are moved before that is said, so that
 * no thread goes on to the driver while they are not: who was second moves them back. */
bool filed_set_apart(Gate *g, Export *x);

/* Gives back what was exported to files that are no longer open. It sees that through fd, held by
 * the gate, for files of the same inode. */
void filed_drop_closed(Gate *g, int fd);

void filed_drop(Gate *g, const Export *x);    /* a file is a holder no longer */
void filed_drop_call(Gate *g, uint64_t call); /* the driver has refused it */

/* What was in these places of the file before that turn: what came later may be what is there
 * now. */
void filed_drop_replaced(Gate *g, int fd, uint32_t first, uint32_t n, uint64_t turn);

/* A descriptor of one's own for the same file, in place of the program's, which the driver is
 * given: by the time it looks, another thread may have closed that, and opened something else under
 * its number. -1: it is none. false: there is no descriptor left. */
bool filed_hold(int *fd);
void filed_let_go(int fd);

/* The lock by which this process is known to have exported to the file: made now, if there is none.
 * 0: it cannot be had, because somebody has locked more than the byte, or the file is open for
 * neither reading nor writing. false: for another reason, as that the locks of the file cannot be
 * read. */
bool filed_key(Gate *g, int fd, uint64_t *ret);

bool filed_inode(int fd, uint64_t *ret_dev,
                 uint64_t *ret_ino); /* which one it is; false: it cannot be told */
