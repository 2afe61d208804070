/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Does somebody have more of a card's time than his share, by the driver's numbers? Judged window
 * by window; one is over that shows more than the share and 5 points. Three in a row are told, once
 * what was had beyond that is more than a window's length; and who rests in between, once it is
 * more than two.
 *
 * A window's length is what an honest container can be beyond its share: a kernel cannot be cut,
 * and is waited off. With windows of 10 s that is the longest kernel that does not count as hung
 * (arbiter/account.h). Who has all of the card at a share of 30 % is told after three windows, at
 * 45 % of it after eleven, at 36 % after a hundred; at 35 % never. What was told is over when it is
 * waited off.
 *
 * Where a share is no cap, what others do not want may be had as well: overuse_due(). Pure; times
 * are ns. */

#include <stdbool.h>
#include <stdint.h>

enum { OVERUSE_PPM = 1000000, OVERUSE_TOLERANCE = 50000, OVERUSE_ROW = 3 };

typedef struct Overuse {
        uint64_t owed; /* had beyond share and tolerance, and not waited off; OVERUSE_OWED windows at most */
        uint64_t span, used,
                due; /* of the windows that were over in a row, the newest among them; due: its share of them */
        unsigned row; /* how many */
        bool told;
} Overuse;

enum { OVERUSE_OWED = 6 };

/* A window of that length in which it had so much; share: ppm. length: of an ordinary window, which
 * this one is not shorter than. True: it is to be told now. */
bool overuse_window(Overuse *o, uint64_t length, uint64_t span, uint64_t used, uint32_t share);

/* It was told, and the newest window is over. */
bool overuse_lasts(const Overuse *o);

/* ppm of the card's time that it had in these windows. */
uint32_t overuse_ppm(const Overuse *o);
uint32_t overuse_due_ppm(const Overuse *o); /* and of it that it might have had */

/* What one may have of a window whose share is no cap: what the arbiter gave him windows for, by
 * its own clock; what it left, as it gave the others so much; and his part where all want the card
 * (floor, ppm). The largest of them: no word of any container is among these, but for whose sake
 * windows are given. */
uint64_t overuse_due(uint64_t span, uint64_t granted, uint64_t others, uint32_t floor);
