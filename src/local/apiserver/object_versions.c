/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/object_versions.h"

#include <assert.h>
#include <errno.h>

/* one entry in four is in the next level: enough for 4^12 objects of a kind */
enum { HEIGHT_MAX = 12 };

typedef struct StoreTable {
        StoreEntry *head[HEIGHT_MAX];
} StoreTable;

struct StoreObjects {
        StoreTable tables[STORE_N_KINDS];
        /* the remembered changes; numbers are consecutive, so an index is a subtraction */
        StoreVersion **ring;
        size_t capacity, first, n;
        uint64_t version;
        uint64_t random;
};

int store_objects_new(size_t history, StoreObjects **ret) {
        _cleanup_(store_objects_freep) StoreObjects *o = calloc(1, sizeof *o);

        if (!o)
                return -ENOMEM;
        o->capacity = history > 0 ? history : 1;
        o->ring = calloc(o->capacity, sizeof(StoreVersion *));
        if (!o->ring)
                return -ENOMEM;
        o->version = 1; /* "0" means "any version" in requests and must not be used */
        o->random = UINT64_C(0x9e3779b97f4a7c15);
        *ret = TAKE_PTR(o);
        return 0;
}

static void versions_free(StoreVersion *v) {
        while (v) {
                StoreVersion *older = v->older;
                free(v);
                v = older;
        }
}

StoreObjects *store_objects_free(StoreObjects *o) {
        if (!o)
                return NULL;
        for (size_t i = 0; i < STORE_N_KINDS; i++)
                for (StoreEntry *e = o->tables[i].head[0], *next; e; e = next) {
                        next = e->next[0];
                        versions_free(e->newest);
                        free(e);
                }
        free(o->ring);
        free(o);
        return NULL;
}

uint64_t store_version(const StoreObjects *o) {
        return o->version;
}

uint64_t store_horizon(const StoreObjects *o) {
        return o->version - o->n;
}

/* ---- the order of keys ---- */

/* Points path[level] at the link to the first entry at or after the key. */
static void table_find(StoreTable *t, Str key, StoreEntry **path[HEIGHT_MAX]) {
        StoreEntry **links = t->head;

        for (unsigned level = HEIGHT_MAX; level-- > 0;) {
                while (links[level] && str_compare(links[level]->key, key) < 0)
                        links = links[level]->next;
                path[level] = &links[level];
        }
}

StoreEntry *store_seek(const StoreObjects *o, const StoreKind *kind, Str key) {
        StoreEntry *const *links = o->tables[store_kind_index(kind)].head;

        for (unsigned level = HEIGHT_MAX; level-- > 0;)
                while (links[level] && str_compare(links[level]->key, key) < 0)
                        links = links[level]->next;
        return links[0];
}

static unsigned random_height(StoreObjects *o) {
        unsigned height = 1;

        o->random ^= o->random << 13;
        o->random ^= o->random >> 7;
        o->random ^= o->random << 17;
        for (uint64_t bits = o->random; height < HEIGHT_MAX && (bits & 3) == 0; bits >>= 2)
                height++;
        return height;
}

static StoreEntry *entry_new(StoreObjects *o, const StoreKind *kind, Str key) {
        StoreEntry **path[HEIGHT_MAX], *e;
        unsigned height = random_height(o);
        size_t links = height * sizeof(StoreEntry *);
        char *bytes;

        e = calloc(1, sizeof *e + links + key.len);
        if (!e)
                return NULL;
        bytes = (char *) e->next + links;
        memcpy(bytes, key.data, key.len);
        e->kind = kind;
        e->key = (Str){bytes, key.len};
        e->height = height;
        table_find(&o->tables[store_kind_index(kind)], key, path);
        for (unsigned level = 0; level < height; level++) {
                e->next[level] = *path[level];
                *path[level] = e;
        }
        return e;
}

static void entry_free(StoreObjects *o, StoreEntry *e) {
        StoreEntry **path[HEIGHT_MAX];

        table_find(&o->tables[store_kind_index(e->kind)], e->key, path);
        for (unsigned level = 0; level < e->height; level++)
                *path[level] = e->next[level];
        free(e);
}

/* ---- versions ---- */

static StoreEntry *entry_find(const StoreObjects *o, const StoreKind *kind, Str key) {
        StoreEntry *e = store_seek(o, kind, key);

        return e && str_eq(e->key, key) ? e : NULL;
}

StoreVersion *store_find(const StoreObjects *o, const StoreKind *kind, Str key) {
        const StoreEntry *e = entry_find(o, kind, key);

        return e && e->newest->change != STORE_DELETED ? e->newest : NULL;
}

StoreVersion *store_at(const StoreEntry *entry, uint64_t number) {
        StoreVersion *v = entry->newest;

        while (v && v->number > number)
                v = v->older;
        return v && v->change != STORE_DELETED ? v : NULL;
}

StoreVersion *store_event(const StoreObjects *o, uint64_t number) {
        uint64_t back = o->version - number; /* wraps to a large value for a future number */

        if (back >= o->n)
                return NULL;
        return o->ring[(o->first + o->n - 1 - (size_t) back) % o->capacity];
}

static StoreVersion *version_new(StoreChange change, uint64_t number, Str text) {
        static const Str heads[] = {
                [STORE_CREATED] = STR("{\"type\":\"ADDED\",\"object\":"),
                [STORE_MODIFIED] = STR("{\"type\":\"MODIFIED\",\"object\":"),
                [STORE_DELETED] = STR("{\"type\":\"DELETED\",\"object\":"),
        };
        Str head = heads[change];
        StoreVersion *v = malloc(sizeof *v + head.len + text.len + 2);

        if (!v)
                return NULL;
        memcpy(v->bytes, head.data, head.len);
        memcpy(v->bytes + head.len, text.data, text.len);
        memcpy(v->bytes + head.len + text.len, "}\n", 2);
        v->number = number;
        v->change = change;
        v->older = NULL;
        v->entry = NULL;
        v->line = (Str){v->bytes, head.len + text.len + 2};
        v->text = (Str){v->bytes + head.len, text.len};
        return v;
}

/* The oldest remembered change becomes the oldest remembered state, and earlier states can no
 * longer be read. A deletion is not a state, so it is dropped, and its entry with it when no change
 * followed. */
static void forget_oldest(StoreObjects *o) {
        StoreVersion *v = o->ring[o->first], *newer;
        StoreEntry *e = v->entry;

        o->first = (o->first + 1) % o->capacity;
        o->n--;
        versions_free(TAKE_PTR(v->older));
        if (v->change != STORE_DELETED)
                return;
        if (e->newest == v) {
                entry_free(o, e);
        } else {
                for (newer = e->newest; newer->older != v; newer = newer->older)
                        ;
                newer->older = NULL;
        }
        free(v);
}

void store_objects_forget(StoreObjects *o) {
        while (o->n > 0)
                forget_oldest(o);
}

int store_commit(StoreObjects *o, const StoreKind *kind, Str key, StoreChange change, Str text) {
        _cleanup_free_ StoreVersion *v = version_new(change, o->version + 1, text);
        StoreEntry *e;

        if (!v)
                return -ENOMEM;
        if (o->n == o->capacity) /* first, because it may drop the entry of a deleted object */
                forget_oldest(o);
        e = entry_find(o, kind, key);
        assert((change == STORE_CREATED) == (!e || e->newest->change == STORE_DELETED));
        if (!e)
                e = entry_new(o, kind, key);
        if (!e)
                return -ENOMEM;
        v->entry = e;
        v->older = e->newest;
        e->newest = v;
        o->version = v->number;
        o->ring[(o->first + o->n++) % o->capacity] = TAKE_PTR(v);
        return 0;
}
