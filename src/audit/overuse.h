/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Does somebody have more of a card's time than his share, by the driver's numbers? Judged window by window; one is over that shows more
 * than the share and 5 points. Three in a row are told, once what was had beyond that is more than a window's length; and who rests in
 * between, once it is more than two.
 *
 * A window's length is what an honest container can be beyond its share: a kernel cannot be cut, and is waited off. With windows of 10 s
 * that is the longest kernel that does not count as hung (arbiter/account.h). Who has all of the card at a share of 30 % is told after
 * three windows, at 45 % of it after eleven, at 36 % after a hundred; at 35 % never. What was told is over when it is waited off.
 * Pure; times are ns. */

#include <stdbool.h>
#include <stdint.h>

enum { OVERUSE_PPM = 1000000, OVERUSE_TOLERANCE = 50000, OVERUSE_ROW = 3 };

typedef struct Overuse {
        uint64_t owed; /* had beyond share and tolerance, and not waited off; OVERUSE_OWED windows at most */
        uint64_t span, used; /* of the windows that were over in a row, the newest among them */
        unsigned row;        /* how many */
        bool told;
} Overuse;

enum { OVERUSE_OWED = 6 };

/* A window of that length in which it had so much; share: ppm. length: of an ordinary window, which this one is not shorter than.
 * True: it is to be told now. */
bool overuse_window(Overuse *o, uint64_t length, uint64_t span, uint64_t used, uint32_t share);

/* It was told, and the newest window is over. */
bool overuse_lasts(const Overuse *o);

/* ppm of the card's time that it had in these windows. */
uint32_t overuse_ppm(const Overuse *o);
