/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Nodes, requests and grants for the tests of the ledger, in one line each. */

#include "share/ledger.h"
#include "share/ledger_check.h"
#include "share/placement.h"
#include "test.h"

/* Metadata without its closing brace, then status: the `members` of set_node() in most tests. */
#define EQUAL(mem, count)                                                                                    \
        "},\"status\":{\"allocatable\":{\"aliyun.com/gpu-mem\":\"" #mem                                      \
        "\",\"aliyun.com/gpu-count\":\"" #count "\"}}}"
#define ANNOTATIONS(text) ",\"annotations\":{" text "}"

/* mode and placement: labels; members: the rest of the object, from within metadata. Checks every
 * sum. */
int try_node(Ledger *l, const char *name, const char *mode, const char *placement, const char *members,
             Fault *fault);
void set_node(Ledger *l, const char *name, const char *mode, const char *placement, const char *members);

/* A pod of one main container, kept in *c. */
Request simple(RequestContainer *c, uint32_t mem, uint32_t core);

/* The choice of cards that these annotations say. */
const CardChoice *choose(Arena *arena, PodAnnotations keys);

/* A grant as a bind makes it, with a UID of its own. */
Grant *give(Ledger *l, const LedgerNode *n, const Placement *p, const Request *r);

/* Places the request on this node. NULL and the text of the refusal when it does not fit. */
Grant *place(Ledger *l, const char *node, const Request *r, char words[static 512]);

const LedgerCard *card_at(const Ledger *l, const char *node, size_t i);
