/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The nodes that have a Node object, by name. The ledger finds a node by name as well, but a
 * scheduling cycle brings 5,000 names twice, in no order (docs/internals/decisions.md). This table
 * is a hash of its own, whose names are looked up in batches. */

#include "share/ledger.h"

typedef struct Directory Directory;

typedef struct DirectoryNode {
        LedgerNode *ledger_node;
        uint64_t hash;
        uint32_t generation;       /* of the list that last had the node; the owner's */
        uint8_t mode_reported;     /* ShareMode that an Event was written for; the owner's */
        uint64_t wrong_reported;   /* hash of the last report about its keys, 0: none; the owner's */
        struct NodeLabels *labels; /* that some ResourcePolicy selects by; of its table */
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

/* The same for several names. A look-up waits for memory three times, one after the other. In a
 * batch these waits overlap, and the part of each ledger node that placement reads first is
 * prefetched. n: at most DIRECTORY_BATCH. */
enum { DIRECTORY_BATCH = 16 };
void directory_find_batch(const Directory *d, const Str *names, size_t n, DirectoryNode **ret);

size_t directory_size(const Directory *d);

/* i: from 0 to the size minus 1. A removal moves the last node to the index that becomes free. */
DirectoryNode *directory_at(const Directory *d, size_t i);

static inline Str directory_name(const DirectoryNode *n) {
        return (Str){n->name, n->name_len};
}

DEFINE_CLEANUP(Directory *, directory_free)
