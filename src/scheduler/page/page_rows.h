/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The JSON that the page's script (web/page.js) reads. It is no interface for other programs: those
 * use GET /inspect. Memory is in units of the node, compute in percent of a card. A card's state is
 * a CardState (share/card_state.h). */

#include "base/arena.h"
#include "base/buf.h"
#include "scheduler/page/page_resizes.h"
#include "scheduler/view/fences.h"

/* Whether the page shows this node: it has cards, pods with grants, or a mode that shares cards. */
bool page_rows_shows(const LedgerNode *node);

/* Appends the row of one node:
 *     {"name","mode","unit":MiB,"core":1,"spread":1,"pending":UNITS,"change":TEXT,"resizes":N,
 *      "mark":N,"limits":N,
 *      "namespaces":[[NAME,PODS,UNITS,PERCENT],...],
 *      "cards":[[INDEX,UNITS,USED,PERCENT USED,PODS,STATE],...]}
 * Members that are 0 or empty are left out, and so is a STATE of 0. resizes: pods whose resize was
 * refused, waits or is not answered. mark changes when a slice of the node, its size or
 * what isolates memory does.
 * limits: a MemoryLimiting (share/mode.h). namespaces: by name, at most 64 and one without a name
 * for the rest. A pod counts once there, and for each of its cards in PODS of cards. */
void page_rows_node(const LedgerNode *node, const PageResizes *resizes, Buf *out);

/* Appends all slices of one node, by card, then namespace and name of the pod:
 *     {"name","slices":[{"card","namespace","name","mem","core","kind","container","gone",
 *                        "resize":TEXT}],
 *      "pending":[{"namespace","name","mem","core"}],"models":{"INDEX":MODEL},
 *      "fences":{"INDEX":CONFIGMAP},"fences_wrong":TEXT,"isolation":TEXT}
 * gone: the pod was deleted, and its processes still hold the slice. fences_wrong: what of the
 * node's ConfigMaps is not understood. isolation: what isolates memory there, and why it is not
 * more; without it nothing does. 0 or -ENOMEM. */
int page_rows_slices(const LedgerNode *node, const PageResizes *resizes, const Fences *fences, Arena *arena,
                     Buf *out);
