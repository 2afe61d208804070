/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pods of the node hold slices, as text for people. */

#include "base/buf.h"
#include "node/records/records.h"
#include "node/records/roster.h"
#include "share/card_indexes.h"

/* Whether the grant has a slice of one of the cards; false for NULL. */
bool holders_is_on(const Grant *grant, const CardIndexes *cards);

/* The same for a record: what the kubelet gave to a pod. */
bool holders_record_is_on(const Record *record, const CardIndexes *cards);

/* Counts deleted pods that still have processes, and hold a slice of one of the cards. The ledger
 * learns of them later, by ANNOTATION_HELD_SLICES of the Node object. */
size_t holders_count_gone(const Records *records, const CardIndexes *cards);

/* Appends the first pods that hold a slice of one of the cards (NULL: of any card), as "default/a,
 * default/b and 3 more", and then n_gone deleted pods. They are sorted, so that the text does not
 * change when a pod is only updated. */
void holders_write(const Roster *roster, const CardIndexes *cards, size_t n_gone, Buf *out);
