/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/directory.h"

#include <errno.h>

/* Open addressing with linear probing, at most half full. A removal moves later entries back, so
 * that there are no tombstones: a look-up of an unknown name ends at the first free slot. */

typedef struct DirectorySlot {
        uint64_t hash; /* kept here so that a probe of another name does not read the node */
        DirectoryNode *node;
} DirectorySlot;

struct Directory {
        DirectorySlot *slots;
        size_t mask; /* number of slots - 1, a power of two - 1 */
        DirectoryNode **nodes;
        size_t n, capacity;
};

enum { SLOTS_MIN = 64, NAME_MAX_LEN = 253 };

static uint64_t mix_hash(uint64_t a, uint64_t b) {
        __extension__ unsigned __int128 product = (unsigned __int128) a * b;

        return (uint64_t) product ^ (uint64_t) (product >> 64);
}

/* Hashes eight bytes at a time; the last eight may overlap. It is not keyed: only names of Node
 * objects are inserted, and a user with the right to create nodes can do more harm than slow
 * look-ups. */
static uint64_t name_hash(Str name) {
        const uint64_t k0 = UINT64_C(0x9e3779b97f4a7c15), k1 = UINT64_C(0xd6e8feb86659fd93);
        uint64_t h = name.len * k0, word = 0;

        if (name.len < 8) {
                if (name.len > 0)
                        memcpy(&word, name.data, name.len);
                return mix_hash(h ^ word ^ k1, k0);
        }
        for (size_t i = 0; i + 8 < name.len; i += 8) {
                memcpy(&word, name.data + i, 8);
                h = mix_hash(h ^ word, k1);
        }
        memcpy(&word, name.data + name.len - 8, 8);
        return mix_hash(h ^ word, k0);
}

int directory_new(Directory **ret) {
        _cleanup_(directory_freep) Directory *d = calloc(1, sizeof *d);

        if (!d)
                return -ENOMEM;
        d->slots = calloc(SLOTS_MIN, sizeof *d->slots);
        if (!d->slots)
                return -ENOMEM;
        d->mask = SLOTS_MIN - 1;
        *ret = TAKE_PTR(d);
        return 0;
}

Directory *directory_free(Directory *d) {
        if (!d)
                return NULL;
        for (size_t i = 0; i < d->n; i++)
                free(d->nodes[i]);
        free(d->nodes);
        free(d->slots);
        free(d);
        return NULL;
}

static bool is_name(const DirectoryNode *n, Str name) {
        return n->name_len == name.len && memcmp(n->name, name.data, name.len) == 0;
}

static DirectorySlot *slot_of(const Directory *d, Str name, uint64_t hash) {
        for (size_t i = hash & d->mask;; i = (i + 1) & d->mask) {
                DirectorySlot *s = &d->slots[i];

                if (!s->node || (s->hash == hash && is_name(s->node, name)))
                        return s;
        }
}

static int grow_slots(Directory *d) {
        size_t n = (d->mask + 1) * 2;
        DirectorySlot *old = d->slots, *slots = calloc(n, sizeof *slots);

        if (!slots)
                return -ENOMEM;
        d->slots = slots;
        d->mask = n - 1;
        for (size_t i = 0; i < d->n; i++)
                *slot_of(d, directory_name(d->nodes[i]), d->nodes[i]->hash) =
                        (DirectorySlot){d->nodes[i]->hash, d->nodes[i]};
        free(old);
        return 0;
}

static int make_room(Directory *d) {
        size_t capacity = d->capacity > 0 ? d->capacity * 2 : SLOTS_MIN / 2;
        DirectoryNode **nodes;

        if (d->n == d->capacity) {
                nodes = realloc(d->nodes, capacity * sizeof(DirectoryNode *));
                if (!nodes)
                        return -ENOMEM;
                d->nodes = nodes;
                d->capacity = capacity;
        }
        return (d->n + 1) * 2 > d->mask + 1 ? grow_slots(d) : 0;
}

int directory_put(Directory *d, Str name, LedgerNode *ledger_node, DirectoryNode **ret) {
        uint64_t hash = name_hash(name);
        DirectorySlot *s = slot_of(d, name, hash);
        DirectoryNode *n;
        int r;

        if (s->node) {
                s->node->ledger_node = ledger_node;
                *ret = s->node;
                return 0;
        }
        if (str_is_empty(name) || name.len > NAME_MAX_LEN)
                return -E2BIG;
        r = make_room(d);
        if (r < 0)
                return r;
        n = malloc(sizeof *n + name.len);
        if (!n)
                return -ENOMEM;
        *n = (DirectoryNode){.ledger_node = ledger_node, .hash = hash, .name_len = (uint16_t) name.len};
        memcpy(n->name, name.data, name.len);
        *slot_of(d, name, hash) = (DirectorySlot){hash, n};
        d->nodes[d->n++] = n;
        *ret = n;
        return 0;
}

/* Frees slot i and moves a later entry of its run there, unless its home slot is behind i; then the
 * same for the slot of that entry. */
static void close_hole(Directory *d, size_t i) {
        for (size_t k = (i + 1) & d->mask; d->slots[k].node; k = (k + 1) & d->mask) {
                size_t home = d->slots[k].hash & d->mask;

                if (((k - home) & d->mask) < ((k - i) & d->mask))
                        continue;
                d->slots[i] = d->slots[k];
                i = k;
        }
        d->slots[i] = (DirectorySlot){0};
}

void directory_remove(Directory *d, DirectoryNode *n) {
        size_t at = 0;

        while (d->nodes[at] != n)
                at++;
        d->nodes[at] = d->nodes[--d->n];
        close_hole(d, (size_t) (slot_of(d, directory_name(n), n->hash) - d->slots));
        free(n);
}

DirectoryNode *directory_find(const Directory *d, Str name) {
        return slot_of(d, name, name_hash(name))->node;
}

void directory_find_batch(const Directory *d, const Str *names, size_t n, DirectoryNode **ret) {
        LedgerNode *ledger_nodes[DIRECTORY_BATCH];
        uint64_t hashes[DIRECTORY_BATCH];

        for (size_t i = 0; i < n; i++) {
                hashes[i] = name_hash(names[i]);
                __builtin_prefetch(&d->slots[hashes[i] & d->mask]);
        }
        for (size_t i = 0; i < n; i++)
                /* Prefetching another node, or NULL, does no harm. */
                __builtin_prefetch(d->slots[hashes[i] & d->mask].node);
        for (size_t i = 0; i < n; i++) {
                ret[i] = slot_of(d, names[i], hashes[i])->node;
                ledger_nodes[i] = ret[i] ? ret[i]->ledger_node : NULL;
        }
        ledger_prefetch(ledger_nodes, n);
}

size_t directory_size(const Directory *d) {
        return d->n;
}

DirectoryNode *directory_at(const Directory *d, size_t i) {
        return d->nodes[i];
}
