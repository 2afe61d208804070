/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/rm_objects.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

enum {
        UNIT = 4096,
        TABLE_MIN = 64,
        TABLE_MAX = 1 << 26,
};

static void *map_pages(size_t size) {
        long p = sys_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p < 0 && p > -4096 ? NULL : (void *) p;
}

static void unmap_pages(void *p, size_t size) {
        if (p)
                (void) sys_call(SYS_munmap, p, size); /* our own mapping: this does not fail */
}

/* ---- shards: one holds all objects of a client, under one lock ---- */

static RmObjectShard *shard_of(RmObjects *o, uint32_t client) {
        return &o->shards[(client * 2654435761u) >> 29];
}

_Static_assert(RM_OBJECTS_SHARDS == 8, "shard_of() takes three bits");

static uint32_t slot_of(const RmObjectShard *s, uint32_t client, uint32_t handle) {
        uint64_t key = ((uint64_t) client << 32 | handle) * UINT64_C(0x9E3779B97F4A7C15);

        return (uint32_t) (key >> 32) & (s->size - 1);
}

static void put_entry(RmObjectShard *s, const RmObject *object) {
        uint32_t at = slot_of(s, object->client, object->handle);

        while (s->table[at].kind != 0)
                at = (at + 1) & (s->size - 1);
        s->table[at] = *object;
        s->n++;
}

static int grow_table(RmObjectShard *s) {
        RmObjectShard bigger = {.size = s->size == 0 ? TABLE_MIN : s->size * 2};

        if (s->size >= TABLE_MAX)
                return -ENOMEM;
        bigger.table = map_pages(bigger.size * sizeof(RmObject));
        if (!bigger.table)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->size; i++)
                if (s->table[i].kind != 0)
                        put_entry(&bigger, &s->table[i]);
        unmap_pages(s->table, s->size * sizeof(RmObject));
        s->table = bigger.table;
        s->size = bigger.size;
        return 0;
}

/* Adds an entry. A table grows when it is three quarters full: a search ends at an empty entry. */
static int insert_entry(RmObjectShard *s, const RmObject *object) {
        if (s->n + s->n / 3 + 1 >= s->size && grow_table(s) < 0 && s->n + 1 >= s->size)
                return -ENOMEM;
        put_entry(s, object);
        return 0;
}

/* Removes an entry. Entries behind the gap that would not be found across it move into it. */
static void take_out(RmObjectShard *s, uint32_t at) {
        uint32_t mask = s->size - 1, gap = at;

        for (uint32_t i = (at + 1) & mask; s->table[i].kind != 0; i = (i + 1) & mask) {
                uint32_t home = slot_of(s, s->table[i].client, s->table[i].handle);

                if (((i - home) & mask) >= ((i - gap) & mask)) {
                        s->table[gap] = s->table[i];
                        gap = i;
                }
        }
        s->table[gap] = (RmObject){0};
        s->n--;
}

/* Serials wrap after 2^32 objects; those that are compared lie within half of that range. */
static bool is_newer(uint32_t a, uint32_t b) {
        return (int32_t) (a - b) > 0;
}

static RmObject *find_entry(const RmObjectShard *s, uint32_t client, uint32_t handle) {
        RmObject *best = NULL;

        if (s->size == 0 || handle == 0)
                return NULL;
        for (uint32_t i = slot_of(s, client, handle); s->table[i].kind != 0; i = (i + 1) & (s->size - 1)) {
                RmObject *e = &s->table[i];

                if (e->client == client && e->handle == handle &&
                    (!best || is_newer(e->serial, best->serial)))
                        best = e;
        }
        return best;
}

static uint32_t next_serial(RmObjects *o) {
        uint32_t serial = atomic_fetch_add_explicit(&o->serial, 1, memory_order_relaxed) + 1;

        return serial != 0 ? serial : atomic_fetch_add_explicit(&o->serial, 1, memory_order_relaxed) + 1;
}

/* ---- bytes ---- */

static void give_back(RmObjects *o, const RmObject *e, FreedBytes *freed) {
        if (e->units == 0 || e->card >= RM_OBJECTS_CARDS || e->row >= RM_OBJECTS_ROWS)
                return;
        if (e->charge != 0 && !charges_drop(&o->charges, e->charge))
                return;
        if (!(freed->cards[e->row] >> e->card & 1))
                freed->card[e->row][e->card] = 0;
        freed->cards[e->row] |= 1u << e->card;
        freed->card[e->row][e->card] += (uint64_t) e->units * UNIT;
}

uint32_t rm_objects_ref_charge(RmObjects *o, uint32_t client, uint32_t handle, RmObject *ret) {
        RmObjectShard *s = shard_of(o, client);
        uint32_t charge = 0;
        RmObject *e;

        if (!spin_take(&s->lock))
                return 0;
        e = find_entry(s, client, handle);
        if (e && e->kind == RM_OBJECT_LEAF) {
                if (e->charge == 0)
                        charge = e->charge = charges_new(&o->charges);
                else if (charges_ref(&o->charges, e->charge))
                        charge = e->charge;
                *ret = *e;
        }
        spin_drop(&s->lock);
        return charge;
}

void rm_objects_drop_charge(RmObjects *o, uint32_t charge, const RmObject *source, FreedBytes *freed) {
        RmObject holder = {
                .charge = charge, .card = source->card, .row = source->row, .units = source->units};

        give_back(o, &holder, freed);
}

/* ---- making and freeing ---- */

static void set_parent(RmParent *parent, const RmObject *entry) {
        for (unsigned i = 0; i < 3; i++)
                parent->up[i] = entry->up[i];
        if (entry->kind >= RM_OBJECT_CLIENT && entry->kind <= RM_OBJECT_SUBDEVICE)
                parent->up[entry->kind - RM_OBJECT_CLIENT] = entry->serial;
        parent->serial = entry->serial;
        parent->card = entry->card;
        parent->row = entry->row;
        parent->known = true;
}

static RmParent parent_in(const RmObjectShard *s, uint32_t client, uint32_t handle) {
        RmParent parent = {
                .client = client, .handle = handle, .card = RM_OBJECTS_NO_CARD, .row = RM_OBJECTS_SHARED};
        const RmObject *e = find_entry(s, client, handle);

        if (e) {
                set_parent(&parent, e);
                return parent;
        }
        e = find_entry(s, client, client);
        if (e) {
                parent.up[0] = e->serial;
                parent.row = e->row;
        }
        return parent;
}

RmParent rm_objects_parent(RmObjects *o, uint32_t client, uint32_t handle) {
        RmObjectShard *s = shard_of(o, client);
        RmParent parent = {
                .client = client, .handle = handle, .card = RM_OBJECTS_NO_CARD, .row = RM_OBJECTS_SHARED};

        if (!spin_take(&s->lock))
                return parent;
        parent = parent_in(s, client, handle);
        spin_drop(&s->lock);
        return parent;
}

static bool is_still(const RmObjectShard *s, const RmParent *parent) {
        const RmObject *e = find_entry(s, parent->client, parent->handle);

        return parent->known && e && e->serial == parent->serial && e->freeing == 0;
}

bool rm_objects_is_valid(RmObjects *o, const RmParent *parent) {
        RmObjectShard *s = shard_of(o, parent->client);
        bool still;

        if (!spin_take(&s->lock))
                return false;
        still = is_still(s, parent);
        spin_drop(&s->lock);
        return still;
}

static bool is_below(const RmObject *e, uint32_t serial) {
        return e->up[0] == serial || e->up[1] == serial || e->up[2] == serial;
}

/* Whether it is an object of a freed client that was not known to be below it. */
static bool orphan_of(const RmObject *e, const RmObjectMark *mark) {
        return mark->object.kind == RM_OBJECT_CLIENT && e->client == mark->object.handle && e->up[0] == 0 &&
               e->kind != RM_OBJECT_CLIENT && !is_newer(e->serial, mark->now);
}

static bool goes_with(const RmObject *e, const RmObjectMark *mark) {
        if (e->serial == mark->object.serial && e->client == mark->object.client)
                return true;
        return mark->object.kind != RM_OBJECT_LEAF &&
               (is_below(e, mark->object.serial) || orphan_of(e, mark));
}

static void forget_at(RmObjects *o, RmObjectShard *s, uint32_t at, FreedBytes *freed) {
        give_back(o, &s->table[at], freed);
        if (s->table[at].kind == RM_OBJECT_CLIENT)
                atomic_fetch_sub_explicit(&o->clients, 1, memory_order_relaxed);
        take_out(s, at);
}

static void forget_leaf(RmObjects *o, RmObjectShard *s, const RmObjectMark *mark, FreedBytes *freed) {
        uint32_t i = slot_of(s, mark->object.client, mark->object.handle);

        for (; s->table[i].kind != 0; i = (i + 1) & (s->size - 1))
                if (goes_with(&s->table[i], mark)) {
                        forget_at(o, s, i, freed);
                        return;
                }
}

/* take_out() moves entries towards the gap, so the same entry is looked at again. An entry that
 * moves across the end of the table was seen at the beginning, and stays. */
static void forget_in(RmObjects *o, RmObjectShard *s, const RmObjectMark *mark, FreedBytes *freed) {
        if (s->size == 0)
                return;
        if (mark->object.kind == RM_OBJECT_LEAF) {
                forget_leaf(o, s, mark, freed);
                return;
        }
        for (uint32_t i = 0; i < s->size; i++)
                while (s->table[i].kind != 0 && goes_with(&s->table[i], mark))
                        forget_at(o, s, i, freed);
}

static RmObject make_entry(RmObjects *o, const RmParent *parent, uint32_t handle, RmObjectKind kind) {
        return (RmObject){.client = parent->client,
                          .handle = handle,
                          .serial = next_serial(o),
                          .up = {parent->up[0], parent->up[1], parent->up[2]},
                          .kind = (uint8_t) kind,
                          .card = parent->card,
                          .row = parent->row};
}

/* Marks a client. An unknown one gets a new serial, which no object is below of; it may have
 * orphans. */
static RmObjectMark client_in(RmObjects *o, const RmObjectShard *s, uint32_t client) {
        const RmObject *e = find_entry(s, client, client);
        RmObjectMark mark = {.object = {.client = client, .handle = client, .kind = RM_OBJECT_CLIENT}};

        mark.object.serial = e ? e->serial : next_serial(o);
        mark.now = atomic_load_explicit(&o->serial, memory_order_relaxed);
        return mark;
}

static bool still_there(const RmObjectShard *s, uint32_t serial) {
        for (uint32_t i = 0; i < s->size; i++)
                if (s->table[i].serial == serial && s->table[i].kind != 0 &&
                    s->table[i].kind != RM_OBJECT_LEAF)
                        return true;
        return serial == 0;
}

/* Finds the parent of a new child again. If it was freed while the driver made the child, either
 * the driver has freed the child, too, or there is a new parent with the same handle. The child
 * goes below that one, or below the client if there is none. */
static void reattach_child(const RmObjectShard *s, RmParent *parent) {
        const RmObject *entry = find_entry(s, parent->client, parent->handle);
        uint32_t top = parent->up[2] ? parent->up[2] : parent->up[1] ? parent->up[1] : parent->up[0];
        uint8_t card = parent->card, row = parent->row;

        if (!parent->known || (entry && entry->serial == top) || still_there(s, top))
                return;
        *parent = parent_in(s, parent->client, parent->handle);
        parent->card = card;
        parent->row = row; /* the row that counts its bytes */
}

int rm_objects_add(RmObjects *o, const RmParent *parent, uint32_t handle, RmObjectKind kind, uint64_t bytes,
                   uint32_t charge, FreedBytes *freed) {
        RmObjectShard *s = shard_of(o, parent->client);
        RmParent at = *parent;
        RmObjectMark mark;
        RmObject object;
        int r;

        if (!spin_take(&s->lock))
                return -ENOMEM;
        if (kind == RM_OBJECT_CLIENT) {
                mark = client_in(o, s, parent->client);
                forget_in(o, s, &mark, freed);
        } else {
                if (kind != RM_OBJECT_LEAF && !is_still(s, &at))
                        at.card = RM_OBJECTS_NO_CARD; /* the driver is asked again */
                reattach_child(s, &at);
        }
        object = make_entry(o, &at, handle, kind);
        object.units = (uint32_t) (bytes / UNIT);
        object.charge = charge;
        r = insert_entry(s, &object);
        /* An orphan may belong to any client, and counts as one. */
        if (r == 0 && (kind == RM_OBJECT_CLIENT || object.up[0] == 0))
                atomic_fetch_add_explicit(&o->clients, 1, memory_order_relaxed);
        spin_drop(&s->lock);
        return r;
}

bool rm_objects_find(RmObjects *o, uint32_t client, uint32_t handle, RmObjectMark *ret) {
        RmObjectShard *s = shard_of(o, client);
        const RmObject *e;

        if (!spin_take(&s->lock))
                return false;
        e = find_entry(s, client, handle);
        if (e)
                *ret = (RmObjectMark){.object = *e,
                                      .now = atomic_load_explicit(&o->serial, memory_order_relaxed)};
        spin_drop(&s->lock);
        return e != NULL;
}

static void count_free(RmObject *e, bool begins) {
        if (begins && e->freeing < UINT8_MAX)
                e->freeing++;
        else if (!begins && e->freeing > 0)
                e->freeing--;
}

static void change_freeing(RmObjects *o, const RmObjectMark *mark, bool begins) {
        RmObjectShard *s = shard_of(o, mark->object.client);

        if (!spin_take(&s->lock))
                return;
        if (mark->object.kind == RM_OBJECT_LEAF) {
                RmObject *e = find_entry(s, mark->object.client, mark->object.handle);

                if (e && e->serial == mark->object.serial)
                        count_free(e, begins);
        } else {
                for (uint32_t i = 0; i < s->size; i++)
                        if (s->table[i].kind != 0 && goes_with(&s->table[i], mark))
                                count_free(&s->table[i], begins);
        }
        spin_drop(&s->lock);
}

bool rm_objects_is_kept(RmObjects *o, const RmObject *object) {
        RmObjectMark mark;

        return rm_objects_find(o, object->client, object->handle, &mark) &&
               mark.object.serial == object->serial && mark.object.freeing == 0;
}

void rm_objects_begin_free(RmObjects *o, const RmObjectMark *mark) {
        change_freeing(o, mark, true);
}

void rm_objects_cancel_free(RmObjects *o, const RmObjectMark *mark) {
        change_freeing(o, mark, false);
}

void rm_objects_remove(RmObjects *o, const RmObjectMark *mark, FreedBytes *freed) {
        RmObjectShard *s = shard_of(o, mark->object.client);

        if (!spin_take(&s->lock))
                return;
        forget_in(o, s, mark, freed);
        spin_drop(&s->lock);
}

/* Adds a parent that was not in the table. */
static void enter_parent(RmObjects *o, RmObjectShard *s, RmParent *parent) {
        RmObject object = make_entry(o, parent, parent->handle, RM_OBJECT_DEVICE);

        object.up[1] = object.up[2] = 0;
        if (insert_entry(s, &object) < 0)
                return;
        parent->up[1] = parent->serial = object.serial;
        parent->known = true;
        if (object.up[0] == 0)
                atomic_fetch_add_explicit(&o->clients, 1, memory_order_relaxed);
}

void rm_objects_set_card(RmObjects *o, RmParent *parent, uint8_t card) {
        RmObjectShard *s = shard_of(o, parent->client);
        RmObject *e;

        parent->card = card;
        if (parent->handle == 0 || !spin_take(&s->lock))
                return;
        e = find_entry(s, parent->client, parent->handle);
        if (e && parent->known) {
                if (e->serial == parent->serial)
                        e->card = card;
        } else if (e) {
                if (e->card == card) /* another thread has asked as well */
                        set_parent(parent, e);
        } else if (!parent->known) {
                enter_parent(o, s, parent);
        }
        spin_drop(&s->lock);
}

/* ---- clients ---- */

/* Inserts the client among the lowest ones, in order. */
static unsigned note_client(uint32_t *ret, unsigned n, unsigned max, uint32_t client) {
        unsigned at = n;

        while (at > 0 && ret[at - 1] > client)
                at--;
        if (at == max || (at > 0 && ret[at - 1] == client))
                return n;
        if (n < max)
                n++;
        for (unsigned i = n - 1; i > at; i--)
                ret[i] = ret[i - 1];
        ret[at] = client;
        return n;
}

unsigned rm_objects_clients(RmObjects *o, uint32_t after, uint32_t *ret, unsigned max) {
        unsigned n = 0;

        for (unsigned k = 0; k < RM_OBJECTS_SHARDS; k++) {
                RmObjectShard *s = &o->shards[k];

                if (!spin_take(&s->lock))
                        continue;
                for (uint32_t i = 0; i < s->size; i++)
                        if (s->table[i].client > after && (s->table[i].kind == RM_OBJECT_CLIENT ||
                                                           (s->table[i].kind != 0 && s->table[i].up[0] == 0)))
                                n = note_client(ret, n, max, s->table[i].client);
                spin_drop(&s->lock);
        }
        return n;
}

RmObjectMark rm_objects_mark_client(RmObjects *o, uint32_t client) {
        RmObjectShard *s = shard_of(o, client);
        RmObjectMark mark = {.object = {.client = client, .handle = client, .kind = RM_OBJECT_CLIENT}};

        if (!spin_take(&s->lock))
                return mark;
        mark = client_in(o, s, client);
        spin_drop(&s->lock);
        return mark;
}

void rm_objects_after_fork(RmObjects *o) {
        for (unsigned k = 0; k < RM_OBJECTS_SHARDS; k++) {
                RmObjectShard *s = &o->shards[k];

                /* A table that another thread was changing stays mapped. */
                if (atomic_load_explicit(&s->lock.owner, memory_order_relaxed) == 0)
                        unmap_pages(s->table, s->size * sizeof(RmObject));
                s->table = NULL;
                s->size = s->n = 0;
                spin_drop(&s->lock);
        }
        charges_after_fork(&o->charges);
        atomic_store_explicit(&o->clients, 0, memory_order_relaxed);
}
