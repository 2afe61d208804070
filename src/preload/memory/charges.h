/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Charges with several holders: duplicates of one object, and open files that it was exported to.
 * The last holder gives the bytes back. The row of the object counts them; while a file is among
 * the holders, the files' row does (GateRow in gate.h). The caller that adds the first file or
 * drops the last one moves the bytes.
 *
 * Memory comes from mmap. Any thread and any signal handler may call these functions. A caller that
 * does not get the lock leaves a holder too many, and the bytes stay charged until the process
 * ends. Charges begin zeroed; the number of a charge is never 0. */

#include "preload/inject/spin.h"

typedef struct Charge {
        uint32_t refs;    /* holders; of an unused charge: the number of the next unused one */
        uint32_t exports; /* files among the holders */
} Charge;

typedef struct Charges {
        Spin lock;
        uint32_t size, n, free; /* free: the first unused one, linked by refs */
        Charge *list;
} Charges;

/* A charge with two holders; 0: no memory or no lock. */
uint32_t charges_new(Charges *s);
/* Adds a holder to a charge that has one; false: no lock. */
bool charges_ref(Charges *s, uint32_t charge);
bool charges_drop(Charges *s, uint32_t charge); /* ends a holder; true: it was the last one */

/* What happens to the bytes when a file ends as a holder. */
typedef enum ChargeEnd {
        CHARGE_STAYS,      /* other files hold them, or there is no lock */
        CHARGE_MOVES_BACK, /* it was the last file: they move to the row of the object */
        CHARGE_FREED,      /* it was the last holder */
} ChargeEnd;
bool charges_is_exported(Charges *s, uint32_t charge);
int charges_add_export(Charges *s, uint32_t charge); /* 1: the first file, 0: not the first, -1: no lock */
ChargeEnd charges_drop_export(Charges *s, uint32_t charge);

void charges_after_fork(Charges *s); /* in the child, by its only thread: forgets all */
