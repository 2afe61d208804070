/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Rows of the report: pods and nodes reduced to what the printers need. */

#include "base/str.h"

typedef struct InspectUse {
        uint32_t card;
        uint64_t mem, core;                   /* units and percent, by the limits */
        uint64_t mem_in_force, core_in_force; /* of a resized pod; otherwise mem and core */
} InspectUse;

typedef struct InspectPod {
        Str node, namespace_, name, uid;
        InspectUse *uses; /* by card */
        size_t n_uses;
        /* The pod is deleted, and processes of it still hold these slices. Its node's annotation
         * says so: `of` is the order of that node's row. It counts nothing while the pod of its UID
         * has slices there, as in the ledger: n_uses is 0 then, and n_held otherwise. */
        bool deleted;
        size_t n_held, of;
        uint64_t pending_mem, pending_core; /* not placed on a card yet */
        bool resized;                       /* a slice has another size than its limit */
        /* how annotations and limits differ; empty: they agree */
        Str difference;
        size_t order; /* of arrival: a later object replaces an earlier one */
} InspectPod;

typedef struct InspectCard {
        uint64_t total_mem, used_mem; /* units */
        uint64_t total_core, used_core;
        size_t n_pods;
} InspectCard;

/* What the node's description and ConfigMaps say of a card besides its units. */
typedef struct InspectCardFacts {
        Str model;
        bool known, healthy, cordoned, fenced;
        bool used_known;
        uint64_t used_mib;     /* memory that processes hold, by the driver */
        const uint16_t *peers; /* GB/s to the card of each index; 0: not known */
        size_t n_peers;
} InspectCardFacts;

/* Something about a node that users should see: a condition, or what its agent waits for. detail:
 * nothing is wrong, and it is shown with -d only. */
typedef struct InspectNote {
        Str type, message;
        bool detail;
} InspectNote;

enum { INSPECT_NOTES_MAX = 8 };

typedef struct InspectNode {
        Str name, ip;
        Str unit_text; /* "GiB", "128MiB"; "card" where cards are whole */
        uint32_t unit_mib;
        bool whole;                     /* mode topology: memory is counted in cards */
        uint64_t total_mem, total_core; /* allocatable */
        uint64_t *card_units;           /* by card index, as the node describes them */
        size_t n_described;
        InspectCardFacts *facts;    /* n_described, or NULL */
        const InspectUse *grown;    /* what slices may hold above their limits, by card */
        const InspectUse *given_up; /* what they have given up of their limits, as many entries */
        size_t n_grown;
        Str mode; /* in force; empty: not known */
        bool change_pending;
        InspectNote *notes;
        size_t n_notes;
        size_t order;

        /* set by inspect_view() */
        const InspectPod *pods;
        size_t n_pods;
        InspectCard *cards; /* its own, and those that its pods claim */
        size_t n_cards;
        uint64_t used_mem, pending_mem, used_core, pending_core; /* used includes pending and grown */
} InspectNode;
