/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The reports of aliquot-smi: a table with the cards first, and JSON. */

#include "base/buf.h"
#include "base/grid.h"
#include "cli/run/host_cards.h"
#include "cli/run/smi_slices.h"

/* cards: what the driver reports; NULL inside a slice, where only the process's own slices are
 * known. Cards that only slices name are added. out_of_service: which cards take no new slice, as
 * the node agent wrote it (gpu/cards/out_of_service.h). Return 0 or -ENOMEM. */
int smi_print_table(const HostCards *cards, Str out_of_service, const SmiSlices *slices,
                    const GridStyle *style, Buf *out);
int smi_print_json(const HostCards *cards, Str out_of_service, const SmiSlices *slices, Buf *out);

/* Appends a line for each card of which processes in none of these slices hold memory: how much,
 * and which processes the driver names. Returns 0 or -ENOMEM. */
int smi_print_outside(const HostCards *cards, const SmiSlices *slices, Buf *out);
