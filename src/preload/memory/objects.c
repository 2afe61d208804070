/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/objects.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

enum {
        UNIT = 4096,
        TABLE_MIN = 64,
        TABLE_MAX = 1 << 26,
};

static void *map(size_t size) {
        long p = sys_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p < 0 && p > -4096 ? NULL : (void *) p;
}

static void unmap(void *p, size_t size) {
        if (p)
                (void) sys_call(SYS_munmap, p, size); /* it is ours: this does not fail */
}

/* ---- one shard: a client's objects are all in the same one, so that one lock covers whatever belongs together ---- */

static ObjectShard *shard_of(Objects *o, uint32_t client) {
        return &o->shards[(client * 2654435761u) >> 29];
}

_Static_assert(OBJECTS_SHARDS == 8, "shard_of() takes three bits");

static uint32_t slot_of(const ObjectShard *s, uint32_t client, uint32_t handle) {
        uint64_t key = ((uint64_t) client << 32 | handle) * UINT64_C(0x9E3779B97F4A7C15);

        return (uint32_t) (key >> 32) & (s->size - 1);
}

static void put(ObjectShard *s, const Object *object) {
        uint32_t at = slot_of(s, object->client, object->handle);

        while (s->table[at].kind != 0)
                at = (at + 1) & (s->size - 1);
        s->table[at] = *object;
        s->n++;
}

static int grow(ObjectShard *s) {
        ObjectShard bigger = {.size = s->size == 0 ? TABLE_MIN : s->size * 2};

        if (s->size >= TABLE_MAX)
                return -ENOMEM;
        bigger.table = map(bigger.size * sizeof(Object));
        if (!bigger.table)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->size; i++)
                if (s->table[i].kind != 0)
                        put(&bigger, &s->table[i]);
        unmap(s->table, s->size * sizeof(Object));
        s->table = bigger.table;
        s->size = bigger.size;
        return 0;
}

/* Three quarters full is full: a search ends at an empty place. */
static int insert(ObjectShard *s, const Object *object) {
        if (s->n + s->n / 3 + 1 >= s->size && grow(s) < 0 && s->n + 1 >= s->size)
                return -ENOMEM;
        put(s, object);
        return 0;
}

/* Those behind it that would not be found across the gap move into it. */
static void take_out(ObjectShard *s, uint32_t at) {
        uint32_t mask = s->size - 1, gap = at;

        for (uint32_t i = (at + 1) & mask; s->table[i].kind != 0; i = (i + 1) & mask) {
                uint32_t home = slot_of(s, s->table[i].client, s->table[i].handle);

                if (((i - home) & mask) >= ((i - gap) & mask)) {
                        s->table[gap] = s->table[i];
                        gap = i;
                }
        }
        s->table[gap] = (Object){0};
        s->n--;
}

/* Serials go round after 2^32 objects; what is compared was made within the same half of that. */
static bool newer(uint32_t a, uint32_t b) {
        return (int32_t) (a - b) > 0;
}

static Object *find(const ObjectShard *s, uint32_t client, uint32_t handle) {
        Object *best = NULL;

        if (s->size == 0 || handle == 0)
                return NULL;
        for (uint32_t i = slot_of(s, client, handle); s->table[i].kind != 0; i = (i + 1) & (s->size - 1)) {
                Object *e = &s->table[i];

                if (e->client == client && e->handle == handle && (!best || newer(e->serial, best->serial)))
                        best = e;
        }
        return best;
}

static uint32_t next_serial(Objects *o) {
        uint32_t serial = atomic_fetch_add_explicit(&o->serial, 1, memory_order_relaxed) + 1;

        return serial != 0 ? serial : atomic_fetch_add_explicit(&o->serial, 1, memory_order_relaxed) + 1;
}

/* ---- bytes ---- */

static void give_back(Objects *o, const Object *e, ObjectBytes *freed) {
        if (e->units == 0 || e->card >= OBJECTS_CARDS || e->row >= OBJECTS_ROWS)
                return;
        if (e->share != 0 && !shares_drop(&o->shares, e->share))
                return;
        if (!(freed->cards[e->row] >> e->card & 1))
                freed->card[e->row][e->card] = 0;
        freed->cards[e->row] |= 1u << e->card;
        freed->card[e->row][e->card] += (uint64_t) e->units * UNIT;
}

uint32_t objects_share(Objects *o, uint32_t client, uint32_t handle, Object *ret) {
        ObjectShard *s = shard_of(o, client);
        uint32_t share = 0;
        Object *e;

        if (!spin_take(&s->lock))
                return 0;
        e = find(s, client, handle);
        if (e && e->kind == OBJECT_LEAF) {
                if (e->share == 0)
                        share = e->share = shares_new(&o->shares);
                else if (shares_ref(&o->shares, e->share))
                        share = e->share;
                *ret = *e;
        }
        spin_drop(&s->lock);
        return share;
}

void objects_drop_share(Objects *o, uint32_t share, const Object *source, ObjectBytes *freed) {
        Object holder = {.share = share, .card = source->card, .row = source->row, .units = source->units};

        give_back(o, &holder, freed);
}

/* ---- making and freeing ---- */

static void seat_below(ObjectSeat *seat, const Object *parent) {
        for (unsigned i = 0; i < 3; i++)
                seat->up[i] = parent->up[i];
        if (parent->kind >= OBJECT_CLIENT && parent->kind <= OBJECT_SUBDEVICE)
                seat->up[parent->kind - OBJECT_CLIENT] = parent->serial;
        seat->serial = parent->serial;
        seat->card = parent->card;
        seat->row = parent->row;
        seat->known = true;
}

static ObjectSeat seat_in(const ObjectShard *s, uint32_t client, uint32_t parent) {
        ObjectSeat seat = {
                .client = client, .parent = parent, .card = OBJECTS_NO_CARD, .row = OBJECTS_SHARED};
        const Object *e = find(s, client, parent);

        if (e) {
                seat_below(&seat, e);
                return seat;
        }
        e = find(s, client, client);
        if (e) {
                seat.up[0] = e->serial;
                seat.row = e->row;
        }
        return seat;
}

ObjectSeat objects_seat(Objects *o, uint32_t client, uint32_t parent) {
        ObjectShard *s = shard_of(o, client);
        ObjectSeat seat = {
                .client = client, .parent = parent, .card = OBJECTS_NO_CARD, .row = OBJECTS_SHARED};

        if (!spin_take(&s->lock))
                return seat;
        seat = seat_in(s, client, parent);
        spin_drop(&s->lock);
        return seat;
}

static bool is_still(const ObjectShard *s, const ObjectSeat *seat) {
        const Object *e = find(s, seat->client, seat->parent);

        return seat->known && e && e->serial == seat->serial && e->leaving == 0;
}

bool objects_still(Objects *o, const ObjectSeat *seat) {
        ObjectShard *s = shard_of(o, seat->client);
        bool still;

        if (!spin_take(&s->lock))
                return false;
        still = is_still(s, seat);
        spin_drop(&s->lock);
        return still;
}

static bool below(const Object *e, uint32_t serial) {
        return e->up[0] == serial || e->up[1] == serial || e->up[2] == serial;
}

/* Those of a freed client of which it was not known that they are its. */
static bool orphan_of(const Object *e, const ObjectMark *mark) {
        return mark->object.kind == OBJECT_CLIENT && e->client == mark->object.handle && e->up[0] == 0 &&
               e->kind != OBJECT_CLIENT && !newer(e->serial, mark->now);
}

static bool goes_with(const Object *e, const ObjectMark *mark) {
        if (e->serial == mark->object.serial && e->client == mark->object.client)
                return true;
        return mark->object.kind != OBJECT_LEAF && (below(e, mark->object.serial) || orphan_of(e, mark));
}

static void forget_at(Objects *o, ObjectShard *s, uint32_t at, ObjectBytes *freed) {
        give_back(o, &s->table[at], freed);
        if (s->table[at].kind == OBJECT_CLIENT)
                atomic_fetch_sub_explicit(&o->clients, 1, memory_order_relaxed);
        take_out(s, at);
}

static void forget_leaf(Objects *o, ObjectShard *s, const ObjectMark *mark, ObjectBytes *freed) {
        uint32_t i = slot_of(s, mark->object.client, mark->object.handle);

        for (; s->table[i].kind != 0; i = (i + 1) & (s->size - 1))
                if (goes_with(&s->table[i], mark)) {
                        forget_at(o, s, i, freed);
                        return;
                }
}

/* take_out() moves others towards the gap, so the same place is looked at again. What comes round
 * the table's end into a gap there was seen at its beginning, and stays. */
static void forget_in(Objects *o, ObjectShard *s, const ObjectMark *mark, ObjectBytes *freed) {
        if (s->size == 0)
                return;
        if (mark->object.kind == OBJECT_LEAF) {
                forget_leaf(o, s, mark, freed);
                return;
        }
        for (uint32_t i = 0; i < s->size; i++)
                while (s->table[i].kind != 0 && goes_with(&s->table[i], mark))
                        forget_at(o, s, i, freed);
}

static Object make(Objects *o, const ObjectSeat *seat, uint32_t handle, ObjectKind kind) {
        return (Object){.client = seat->client,
                        .handle = handle,
                        .serial = next_serial(o),
                        .up = {seat->up[0], seat->up[1], seat->up[2]},
                        .kind = (uint8_t) kind,
                        .card = seat->card,
                        .row = seat->row};
}

/* One that nobody knows has a serial that nothing is below of, and orphans all the same. */
static ObjectMark client_in(Objects *o, const ObjectShard *s, uint32_t client) {
        const Object *e = find(s, client, client);
        ObjectMark mark = {.object = {.client = client, .handle = client, .kind = OBJECT_CLIENT}};

        mark.object.serial = e ? e->serial : next_serial(o);
        mark.now = atomic_load_explicit(&o->serial, memory_order_relaxed);
        return mark;
}

static bool still_there(const ObjectShard *s, uint32_t serial) {
        for (uint32_t i = 0; i < s->size; i++)
                if (s->table[i].serial == serial && s->table[i].kind != 0 && s->table[i].kind != OBJECT_LEAF)
                        return true;
        return serial == 0;
}

/* The parent was freed while the driver made the child. Either the driver has freed that, too, or
 * there is a new parent with the same handle; where neither can be told, the client keeps it. */
static void sit_down(const ObjectShard *s, ObjectSeat *seat) {
        const Object *parent = find(s, seat->client, seat->parent);
        uint32_t top = seat->up[2] ? seat->up[2] : seat->up[1] ? seat->up[1] : seat->up[0];
        uint8_t card = seat->card, row = seat->row;

        if (!seat->known || (parent && parent->serial == top) || still_there(s, top))
                return;
        *seat = seat_in(s, seat->client, seat->parent);
        seat->card = card;
        seat->row = row; /* where its bytes are */
}

int objects_add(Objects *o, const ObjectSeat *seat, uint32_t handle, ObjectKind kind, uint64_t bytes,
                uint32_t share, ObjectBytes *freed) {
        ObjectShard *s = shard_of(o, seat->client);
        ObjectSeat at = *seat;
        ObjectMark mark;
        Object object;
        int r;

        if (!spin_take(&s->lock))
                return -ENOMEM;
        if (kind == OBJECT_CLIENT) {
                mark = client_in(o, s, seat->client);
                forget_in(o, s, &mark, freed);
        } else {
                if (kind != OBJECT_LEAF && !is_still(s, &at))
                        at.card = OBJECTS_NO_CARD; /* whose it is then is asked again */
                sit_down(s, &at);
        }
        object = make(o, &at, handle, kind);
        object.units = (uint32_t) (bytes / UNIT);
        object.share = share;
        r = insert(s, &object);
        if (r == 0 && (kind == OBJECT_CLIENT ||
                       object.up[0] == 0)) /* an orphan may be of any client: count it as one */
                atomic_fetch_add_explicit(&o->clients, 1, memory_order_relaxed);
        spin_drop(&s->lock);
        return r;
}

bool objects_find(Objects *o, uint32_t client, uint32_t handle, ObjectMark *ret) {
        ObjectShard *s = shard_of(o, client);
        const Object *e;

        if (!spin_take(&s->lock))
                return false;
        e = find(s, client, handle);
        if (e)
                *ret = (ObjectMark){.object = *e,
                                    .now = atomic_load_explicit(&o->serial, memory_order_relaxed)};
        spin_drop(&s->lock);
        return e != NULL;
}

static void change_leaving(Objects *o, const ObjectMark *mark, bool leaves) {
        ObjectShard *s = shard_of(o, mark->object.client);

        if (mark->object.kind == OBJECT_LEAF || !spin_take(&s->lock))
                return;
        for (uint32_t i = 0; i < s->size; i++) {
                Object *e = &s->table[i];

                if (e->kind == 0 || e->kind == OBJECT_LEAF || !goes_with(e, mark))
                        continue;
                if (leaves && e->leaving < UINT8_MAX)
                        e->leaving++;
                else if (!leaves && e->leaving > 0)
                        e->leaving--;
        }
        spin_drop(&s->lock);
}

void objects_leave(Objects *o, const ObjectMark *mark) {
        change_leaving(o, mark, true);
}

void objects_left(Objects *o, const ObjectMark *mark) {
        change_leaving(o, mark, false);
}

void objects_forget(Objects *o, const ObjectMark *mark, ObjectBytes *freed) {
        ObjectShard *s = shard_of(o, mark->object.client);

        if (!spin_take(&s->lock))
                return;
        forget_in(o, s, mark, freed);
        spin_drop(&s->lock);
}

/* A parent that was not known. */
static void enter(Objects *o, ObjectShard *s, ObjectSeat *seat) {
        Object object = make(o, seat, seat->parent, OBJECT_DEVICE);

        object.up[1] = object.up[2] = 0;
        if (insert(s, &object) < 0)
                return;
        seat->up[1] = seat->serial = object.serial;
        seat->known = true;
        if (object.up[0] == 0)
                atomic_fetch_add_explicit(&o->clients, 1, memory_order_relaxed);
}

void objects_set_card(Objects *o, ObjectSeat *seat, uint8_t card) {
        ObjectShard *s = shard_of(o, seat->client);
        Object *e;

        seat->card = card;
        if (seat->parent == 0 || !spin_take(&s->lock))
                return;
        e = find(s, seat->client, seat->parent);
        if (e && seat->known) {
                if (e->serial == seat->serial)
                        e->card = card;
        } else if (e) {
                if (e->card == card) /* another thread has asked as well */
                        seat_below(seat, e);
        } else if (!seat->known) {
                enter(o, s, seat);
        }
        spin_drop(&s->lock);
}

/* ---- clients ---- */

/* In its place among the lowest ones. */
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

unsigned objects_clients(Objects *o, uint32_t after, uint32_t *ret, unsigned max) {
        unsigned n = 0;

        for (unsigned k = 0; k < OBJECTS_SHARDS; k++) {
                ObjectShard *s = &o->shards[k];

                if (!spin_take(&s->lock))
                        continue;
                for (uint32_t i = 0; i < s->size; i++)
                        if (s->table[i].client > after && (s->table[i].kind == OBJECT_CLIENT ||
                                                           (s->table[i].kind != 0 && s->table[i].up[0] == 0)))
                                n = note_client(ret, n, max, s->table[i].client);
                spin_drop(&s->lock);
        }
        return n;
}

ObjectMark objects_client(Objects *o, uint32_t client) {
        ObjectShard *s = shard_of(o, client);
        ObjectMark mark = {.object = {.client = client, .handle = client, .kind = OBJECT_CLIENT}};

        if (!spin_take(&s->lock))
                return mark;
        mark = client_in(o, s, client);
        spin_drop(&s->lock);
        return mark;
}

void objects_after_fork(Objects *o) {
        for (unsigned k = 0; k < OBJECTS_SHARDS; k++) {
                ObjectShard *s = &o->shards[k];

                /* One that was being changed keeps its memory: who knows what was being done to
                 * it. */
                if (atomic_load_explicit(&s->lock.owner, memory_order_relaxed) == 0)
                        unmap(s->table, s->size * sizeof(Object));
                s->table = NULL;
                s->size = s->n = 0;
                spin_drop(&s->lock);
        }
        shares_after_fork(&o->shares);
        atomic_store_explicit(&o->clients, 0, memory_order_relaxed);
}
