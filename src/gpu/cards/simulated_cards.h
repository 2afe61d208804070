/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cards for a node without a driver, made from one line of text. */

#include "gpu/cards/card_list.h"

/* Makes a list from CARDS of the command line and of aliquot.dev/simulated-cards: groups such as
 * "4xTesla-V100-SXM2-16GB:16160MiB", separated by commas, and after "/" the links between the
 * cards (simulated_links.h). seed: the node's name; the same text and
 * seed give the same UUIDs. Returns 0, CARDS_E_MALFORMED with a fault, or -ENOMEM. */
int cards_simulate(Str text, Str seed, CardList *ret, Fault *fault);
