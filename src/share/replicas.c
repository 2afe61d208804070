/* SPDX-License-Identifier: Apache-2.0 */
#include "share/replicas.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The index of the slot in the list, or where it would be inserted. */
static size_t position(const Replicas *r, uint32_t slot) {
        size_t low = 0, high = r->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (r->nodes[middle].slot < slot)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool stands_at(const Replicas *r, size_t i, uint32_t slot) {
        return i < r->n && r->nodes[i].slot == slot;
}

static Replicas *find(const Replicas *table, uint64_t app) {
        Replicas *r;

        HASH_FIND(hh, table, &app, sizeof app, r);
        return r;
}

static Replicas *ensure(Replicas **table, uint64_t app) {
        Replicas *r = find(*table, app);

        if (r)
                return r;
        r = calloc(1, sizeof *r);
        if (!r)
                return NULL;
        r->app = app;
        HASH_ADD(hh, *table, app, sizeof r->app, r);
        if (hash_added(r, hh))
                return r;
        free(r);
        return NULL;
}

static void drop_if_empty(Replicas **table, Replicas *r) {
        if (r->n > 0)
                return;
        HASH_DEL(*table, r);
        free(r->nodes);
        free(r);
}

static int reserve(Replicas *r) {
        /* A pod of a Job is mostly the only replica of its application. */
        size_t room = r->room > 0 ? 2 * r->room : 1;
        ReplicasOnNode *nodes;

        if (r->n < r->room)
                return 0;
        nodes = realloc(r->nodes, room * sizeof *nodes);
        if (!nodes)
                return -ENOMEM;
        r->nodes = nodes;
        r->room = room;
        return 0;
}

static void insert(Replicas *r, size_t i, ReplicasOnNode entry) {
        memmove(&r->nodes[i + 1], &r->nodes[i], (r->n - i) * sizeof *r->nodes);
        r->nodes[i] = entry;
        r->n++;
}

static void take_out(Replicas *r, size_t i) {
        r->n--;
        memmove(&r->nodes[i], &r->nodes[i + 1], (r->n - i) * sizeof *r->nodes);
}

int replicas_add(Replicas **table, uint64_t app, uint32_t slot) {
        Replicas *r;
        size_t i;

        if (app == 0)
                return 0;
        r = ensure(table, app);
        if (!r)
                return -ENOMEM;
        i = position(r, slot);
        if (stands_at(r, i, slot)) {
                r->nodes[i].count++;
                return 0;
        }
        if (reserve(r) < 0) {
                drop_if_empty(table, r);
                return -ENOMEM;
        }
        insert(r, i, (ReplicasOnNode){.slot = slot, .count = 1});
        return 0;
}

void replicas_remove(Replicas **table, uint64_t app, uint32_t slot) {
        Replicas *r;
        size_t i;

        if (app == 0)
                return;
        r = find(*table, app);
        assert(r);
        i = position(r, slot);
        assert(stands_at(r, i, slot));
        if (--r->nodes[i].count == 0)
                take_out(r, i);
        drop_if_empty(table, r);
}

void replicas_move(Replicas *table, uint64_t app, uint32_t from, uint32_t to) {
        Replicas *r = app > 0 ? find(table, app) : NULL;
        ReplicasOnNode entry;
        size_t i;

        if (!r)
                return;
        i = position(r, from);
        if (!stands_at(r, i, from))
                return;
        entry = (ReplicasOnNode){.slot = to, .count = r->nodes[i].count};
        take_out(r, i);
        insert(r, position(r, to), entry); /* take_out() has made room for it */
}

const Replicas *replicas_of(const Replicas *table, uint64_t app) {
        return app > 0 ? find(table, app) : NULL;
}

uint32_t replicas_on(const Replicas *r, uint32_t slot) {
        size_t i = r ? position(r, slot) : 0;

        return r && stands_at(r, i, slot) ? r->nodes[i].count : 0;
}
