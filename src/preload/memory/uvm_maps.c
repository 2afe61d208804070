/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/uvm_maps.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

enum { NOTES_MIN = 64, NOTES_MAX = 1 << 24 };

static uint32_t count_notes(UvmMaps *m) {
        return atomic_load_explicit(&m->n, memory_order_relaxed);
}

static int grow_notes(UvmMaps *m) {
        uint32_t size = m->size == 0 ? NOTES_MIN : m->size * 2, n = count_notes(m);
        UvmNote *notes;
        long p;

        if (size > NOTES_MAX)
                return -ENOMEM;
        p = sys_call(SYS_mmap, 0, size * sizeof *notes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
        if (p < 0 && p > -4096)
                return -ENOMEM;
        notes = (UvmNote *) p;
        for (uint32_t i = 0; i < n; i++)
                notes[i] = m->notes[i];
        if (m->notes)
                (void) sys_call(SYS_munmap, m->notes, m->size * sizeof *notes); /* our own mapping */
        m->notes = notes;
        m->size = size;
        return 0;
}

static int append_note(UvmMaps *m, const UvmNote *note) {
        uint32_t n = count_notes(m);

        if (n == m->size && grow_notes(m) < 0)
                return -ENOMEM;
        m->notes[n] = *note;
        atomic_store_explicit(&m->n, n + 1, memory_order_relaxed);
        return 0;
}

static void take_out(UvmMaps *m, uint32_t i) {
        uint32_t n = count_notes(m);

        m->notes[i] = m->notes[n - 1];
        atomic_store_explicit(&m->n, n - 1, memory_order_relaxed);
}

static int add_now(UvmMaps *m, const UvmNote *note) {
        UvmNote added = *note;

        added.serial = atomic_fetch_add(&m->serial, 1) + 1;
        return append_note(m, &added);
}

int uvm_maps_add(UvmMaps *m, const UvmNote *note) {
        int r;

        if (!spin_take(&m->lock))
                return -ENOMEM;
        r = add_now(m, note);
        spin_drop(&m->lock);
        return r;
}

/* ---- pools ---- */

int uvm_maps_add_pool(UvmMaps *m, const UvmNote *note, uint32_t frees) {
        int r = -ENOMEM;

        if (!spin_take(&m->lock))
                return r;
        if (atomic_load(&m->frees_begun) == frees)
                r = add_now(m, note);
        spin_drop(&m->lock);
        return r;
}

bool uvm_maps_begin_free(UvmMaps *m) {
        if (!spin_take(&m->lock))
                return false;
        atomic_fetch_add(&m->frees_begun, 1);
        spin_drop(&m->lock);
        return true;
}

void uvm_maps_end_free(UvmMaps *m) {
        atomic_fetch_add(&m->frees_ended, 1);
}

uint32_t uvm_maps_frees(UvmMaps *m) {
        return atomic_load(&m->frees_ended);
}

/* ---- ends ---- */

static bool is_mapping(const UvmNote *note) {
        return note->kind == UVM_NOTE_MAP;
}

/* Whether a note ends. Serials wrap, as those of objects do. */
static bool note_ends(const UvmNote *note, const UvmEnd *what) {
        if (note->key != what->key || !(what->kinds >> note->kind & 1) ||
            (int32_t) (note->serial - what->now) > 0)
                return false;
        if (note->kind == UVM_NOTE_P2P && !(what->gpus >> note->gpu & 1))
                return false;
        if (!is_mapping(note))
                return note->start >= what->start && note->start < what->end;
        return (what->gpus >> note->gpu & 1) && note->start < what->end && what->start < note->end;
}

/* Takes the part out of a mapping. Returns true if nothing is left of the note. Without memory for
 * a second piece, or without a reference for it, the whole mapping stays. */
static bool cut_note(UvmMaps *m, Charges *charges, uint32_t i, const UvmEnd *what) {
        UvmNote *note = &m->notes[i], after = *note;

        if (!is_mapping(note) || (note->start >= what->start && note->end <= what->end))
                return true;
        after.start = what->end;
        if (note->start >= what->start) {
                note->start = what->end;
        } else if (note->end <= what->end) {
                note->end = what->start;
        } else if (count_notes(m) < m->size || grow_notes(m) == 0) {
                if (after.charge == 0 || charges_ref(charges, after.charge)) {
                        m->notes[i].end = what->start;
                        (void) append_note(m, &after); /* there is room */
                }
        }
        return false;
}

uint32_t uvm_maps_take(UvmMaps *m, Charges *charges, const UvmEnd *what, UvmNote *ret, uint32_t max) {
        uint32_t taken = 0;

        if (count_notes(m) == 0 || !spin_take(&m->lock))
                return 0;
        for (uint32_t i = count_notes(m); i-- > 0 && taken < max;)
                if (note_ends(&m->notes[i], what) && cut_note(m, charges, i, what)) {
                        ret[taken++] = m->notes[i];
                        take_out(m, i);
                }
        spin_drop(&m->lock);
        return taken;
}

/* ---- questions ---- */

uint64_t uvm_maps_range_end(UvmMaps *m, uint64_t key, uint64_t base) {
        uint64_t end = 0;

        if (count_notes(m) == 0 || !spin_take(&m->lock))
                return 0;
        for (uint32_t i = 0; i < count_notes(m); i++) {
                const UvmNote *note = &m->notes[i];

                if (note->key == key && note->kind == UVM_NOTE_RANGE && note->start == base &&
                    (end == 0 || note->end < end))
                        end = note->end;
        }
        spin_drop(&m->lock);
        return end;
}

uint32_t uvm_maps_pool(UvmMaps *m, uint64_t key, uint64_t start, uint64_t end) {
        uint32_t serial = 0;

        if (count_notes(m) == 0 || !spin_take(&m->lock))
                return 0;
        for (uint32_t i = 0; i < count_notes(m) && serial == 0; i++) {
                const UvmNote *note = &m->notes[i];

                if (note->key == key && note->kind == UVM_NOTE_POOL && note->start == start &&
                    note->end == end)
                        serial = note->serial;
        }
        spin_drop(&m->lock);
        return serial;
}

static bool may_lack_holder(const UvmNote *note, uint32_t since) {
        return note->memory != 0 && (int32_t) (note->serial - since) > 0;
}

/* Takes the objects' lock inside this one, which never happens the other way round. Without memory
 * for a note the charge stays until the process ends. */
void uvm_maps_recheck(UvmMaps *m, RmObjects *objects, uint32_t since) {
        uint32_t n;

        if (uvm_maps_now(m) == since || !spin_take(&m->lock))
                return;
        n = count_notes(m);
        for (uint32_t i = 0; i < n; i++) {
                UvmNote note = m->notes[i];
                RmObject source;
                uint32_t charge = 0;

                if (may_lack_holder(&note, since))
                        charge = rm_objects_ref_charge(objects, note.client, note.memory, &source);
                if (charge != 0 && charge == note.charge) {
                        /* the note holds the charge already */
                        (void) charges_drop(&objects->charges, charge);
                } else if (charge != 0) {
                        uvm_note_hold(&note, charge, &source);
                        (void) add_now(m, &note);
                }
        }
        spin_drop(&m->lock);
}

/* ---- files ---- */

int uvm_maps_add_file(UvmMaps *m, const UvmFile *file) {
        int r = -ENOMEM;

        if (!spin_take(&m->lock))
                return r;
        for (uint32_t i = 0; i < UVM_MAPS_FILES && r < 0; i++) {
                if (m->files[i].key != 0)
                        continue;
                m->files[i] = *file;
                atomic_fetch_add_explicit(&m->n_files, 1, memory_order_relaxed);
                r = 0;
        }
        spin_drop(&m->lock);
        return r;
}

bool uvm_maps_file_at(UvmMaps *m, uint32_t i, UvmFile *ret) {
        if (!spin_take(&m->lock))
                return false;
        *ret = m->files[i];
        spin_drop(&m->lock);
        return ret->key != 0;
}

void uvm_maps_set_use(UvmMaps *m, uint64_t key, UvmFileUse use, bool alone) {
        if (!spin_take(&m->lock))
                return; /* then no range of it is freed */
        for (uint32_t i = 0; i < UVM_MAPS_FILES; i++)
                if (m->files[i].key == key) {
                        m->files[i].use = use;
                        m->files[i].alone = alone;
                }
        spin_drop(&m->lock);
}

bool uvm_maps_is_sole(UvmMaps *m, uint64_t key) {
        bool sole = false;

        if (key == 0 || !spin_take(&m->lock))
                return false;
        for (uint32_t i = 0; i < UVM_MAPS_FILES; i++)
                sole |= m->files[i].key == key && m->files[i].use == UVM_FILE_SOLE;
        spin_drop(&m->lock);
        return sole;
}

void uvm_maps_note_row(UvmMaps *m, uint64_t key, uint32_t row) {
        if (!spin_take(&m->lock))
                return; /* then it is pinned once more */
        for (uint32_t i = 0; i < UVM_MAPS_FILES; i++)
                if (m->files[i].key == key)
                        m->files[i].rows |= 1u << row;
        spin_drop(&m->lock);
}

void uvm_maps_drop_file(UvmMaps *m, uint64_t key) {
        if (!spin_take(&m->lock))
                return; /* then it is looked at again */
        for (uint32_t i = 0; i < UVM_MAPS_FILES; i++)
                if (m->files[i].key == key) {
                        m->files[i] = (UvmFile){.key = 0};
                        atomic_fetch_sub_explicit(&m->n_files, 1, memory_order_relaxed);
                }
        spin_drop(&m->lock);
}

/* Forgets the notes. A list that another thread was changing stays mapped. */
void uvm_maps_after_fork(UvmMaps *m) {
        if (m->notes && atomic_load_explicit(&m->lock.owner, memory_order_relaxed) == 0)
                (void) sys_call(SYS_munmap, m->notes, m->size * sizeof *m->notes); /* our own mapping */
        m->notes = NULL;
        m->size = 0;
        atomic_store_explicit(&m->n, 0, memory_order_relaxed);
        atomic_store_explicit(&m->n_files, 0, memory_order_relaxed);
        /* calls of other threads, which the child does not have */
        atomic_store(&m->frees_ended, atomic_load(&m->frees_begun));
        for (uint32_t i = 0; i < UVM_MAPS_FILES; i++)
                m->files[i] = (UvmFile){.key = 0};
        spin_drop(&m->lock);
}
