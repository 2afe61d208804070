/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The nodes that have a Node object, by name. The ledger can be asked for a name as well, but a
 * scheduling cycle brings 5,000 of them twice, and the order is nearly that of the last cycle: each
 * node remembers who followed it, so that most look-ups are one comparison with a name that is
 * already in the cache, and the rest one good hash. */

#include "share/ledger.h"

typedef struct Directory Directory;

typedef struct DirectoryNode {
        LedgerNode *ledger_node;
        uint64_t hash;
        uint32_t generation; /* of the list that it came by in; the owner's */
        uint8_t mode_told;   /* ShareMode that an Event was written about; the owner's */
        uint64_t wrong_told; /* hash of what was last said of its keys, 0 for nothing; the owner's */
        uint16_t name_len;
        char name[];
} DirectoryNode;

int directory_new(Directory **ret);
Directory *directory_free(Directory *d);

/* The node of that name, made when it is new. -ENOMEM, or -E2BIG for names that
 * Kubernetes would not allow either. */
int directory_put(Directory *d, Str name, LedgerNode *ledger_node, DirectoryNode **ret);
void directory_remove(Directory *d, DirectoryNode *n);

/* NULL for unknown names. */
DirectoryNode *directory_find(const Directory *d, Str name);

/* The same for several names. A look-up waits three times for memory, one wait behind the other;
 * the waits of a batch overlap, and what the caller will look at first in each ledger node is on
 * its way when this returns. n: at most DIRECTORY_BATCH. */
enum { DIRECTORY_BATCH = 16 };
void directory_find_batch(const Directory *d, const Str *names, size_t n, DirectoryNode **ret);

size_t directory_size(const Directory *d);
DirectoryNode *directory_at(const Directory *d,
                            size_t i); /* 0..size-1; a removal moves the last one into its place */

static inline Str directory_name(const DirectoryNode *n) {
        return (Str){n->name, n->name_len};
}

DEFINE_CLEANUP(Directory *, directory_free)
