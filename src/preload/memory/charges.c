/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/charges.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

enum { CHARGES_MIN = 512, CHARGES_MAX = 1 << 26 };

static int grow(Charges *s) {
        uint32_t size = s->size == 0 ? CHARGES_MIN : s->size * 2;
        Charge *list;
        long p;

        if (size >= CHARGES_MAX)
                return -ENOMEM;
        p = sys_call(SYS_mmap, 0, size * sizeof *list, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
        if (p < 0 && p > -4096)
                return -ENOMEM;
        list = (Charge *) p;
        for (uint32_t i = 1; i <= s->n && s->list; i++)
                list[i] = s->list[i];
        if (s->list)
                (void) sys_call(SYS_munmap, s->list, s->size * sizeof *list); /* our own mapping */
        s->list = list;
        s->size = size;
        return 0;
}

uint32_t charges_new(Charges *s) {
        uint32_t charge = 0;

        if (!spin_take(&s->lock))
                return 0;
        if (s->free != 0) {
                charge = s->free;
                s->free = s->list[charge].refs;
        } else if (s->n + 1 < s->size || grow(s) == 0) {
                charge = ++s->n;
        }
        if (charge != 0)
                s->list[charge] = (Charge){.refs = 2};
        spin_drop(&s->lock);
        return charge;
}

bool charges_ref(Charges *s, uint32_t charge) {
        if (!spin_take(&s->lock))
                return false;
        s->list[charge].refs++;
        spin_drop(&s->lock);
        return true;
}

static bool drop_in(Charges *s, uint32_t charge) {
        if (--s->list[charge].refs > 0)
                return false;
        s->list[charge] = (Charge){.refs = s->free};
        s->free = charge;
        return true;
}

bool charges_drop(Charges *s, uint32_t charge) {
        bool last;

        if (!spin_take(&s->lock))
                return false;
        last = drop_in(s, charge);
        spin_drop(&s->lock);
        return last;
}

/* ---- files ---- */

bool charges_is_exported(Charges *s, uint32_t charge) {
        bool exported;

        if (!spin_take(&s->lock))
                return false;
        exported = s->list[charge].exports > 0;
        spin_drop(&s->lock);
        return exported;
}

int charges_add_export(Charges *s, uint32_t charge) {
        int first;

        if (!spin_take(&s->lock))
                return -1;
        first = s->list[charge].exports++ == 0;
        spin_drop(&s->lock);
        return first;
}

ChargeEnd charges_drop_export(Charges *s, uint32_t charge) {
        bool last, freed;

        if (!spin_take(&s->lock))
                return CHARGE_STAYS;
        last = --s->list[charge].exports == 0;
        freed = drop_in(s, charge);
        spin_drop(&s->lock);
        if (freed)
                return CHARGE_FREED;
        return last ? CHARGE_MOVES_BACK : CHARGE_STAYS;
}

/* Forgets the list. One that another thread was changing stays mapped. */
void charges_after_fork(Charges *s) {
        if (s->list && atomic_load_explicit(&s->lock.owner, memory_order_relaxed) == 0)
                (void) sys_call(SYS_munmap, s->list, s->size * sizeof *s->list); /* our own mapping */
        s->list = NULL;
        s->size = s->n = s->free = 0;
        spin_drop(&s->lock);
}
