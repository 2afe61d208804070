/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The links of a machine's cards as the annotation ANNOTATION_CARDS has them. */

#include "gpu/cards/card_list.h"
#include "wire/card_info.h"

/* Sets the peers of infos[i], which is the card l->cards[i], when some pair is faster than another.
 * Without such a pair they stay absent. The caller frees *ret_rates, which holds them. Returns 0 or
 * -ENOMEM. */
int card_rates_describe(const CardList *l, CardInfo *infos, uint16_t **ret_rates);
