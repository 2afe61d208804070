/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A hash table of the nodes that have a Node object, by name. The ledger finds a node by name as
 * well, but a scheduling cycle brings 5,000 names twice, in no order (docs/internals/decisions.md).
 * This table looks names up in batches. */

#include "share/ledger.h"

typedef struct Directory Directory;

typedef struct DirectoryNode {
        LedgerNode *ledger_node;
        uint64_t hash;
        uint32_t generation;       /* of the last list that had the node; set by the view */
        uint8_t mode_reported;     /* the ShareMode about which an Event was written; set by the view */
        uint64_t wrong_reported;   /* hash of the last report about its keys, 0: none; set by the view */
        struct NodeLabels *labels; /* those that a ResourcePolicy selects by; owned by the policy table */
        uint16_t name_len;
        char name[];
} DirectoryNode;

int directory_new(Directory **ret);
Directory *directory_free(Directory *d);

/* Finds the node of that name, or adds it, and sets its ledger_node. Returns 0, -ENOMEM, or -E2BIG
 * for a name that is empty or longer than Kubernetes allows. */
int directory_put(Directory *d, Str name, LedgerNode *ledger_node, DirectoryNode **ret);
void directory_remove(Directory *d, DirectoryNode *n);

/* NULL for unknown names. */
DirectoryNode *directory_find(const Directory *d, Str name);

/* The same for n names, at most DIRECTORY_BATCH; ret[i] belongs to names[i]. A look-up waits for
 * memory three times in a row. In a batch these waits overlap. The part of each ledger node that
 * placement reads first is prefetched. */
enum { DIRECTORY_BATCH = 16 };
void directory_find_batch(const Directory *d, const Str *names, size_t n, DirectoryNode **ret);

size_t directory_size(const Directory *d);

/* i < directory_size(). A removal moves the last node to the index that becomes free. */
DirectoryNode *directory_at(const Directory *d, size_t i);

static inline Str directory_name(const DirectoryNode *n) {
        return (Str){n->name, n->name_len};
}

DEFINE_CLEANUP(Directory *, directory_free)
