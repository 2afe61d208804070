/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a container has more of a card's time than its share, by the driver's numbers. It is
 * checked window by window. A window counts as over when it shows more than the share and 5 points.
 * The time beyond that is owed. Three windows over in a row are reported once more than a window's
 * length is owed, and others once more than two are.
 *
 * A window's length is what an honest container can be beyond its share: a kernel cannot be ended,
 * so the card waits for it. With windows of 10 s that is the longest kernel that does not count as
 * hung. All of the card at a share of 30 % is reported after three windows, 45 % after eleven, 36 %
 * after a hundred, 35 % never. A reported overuse ends when the container has left as much time
 * unused as it owes.
 *
 * Where a share is no cap, a container may also have what others do not want: overuse_due(). Pure;
 * times are ns. */

#include <stdbool.h>
#include <stdint.h>

enum { OVERUSE_PPM = 1000000, OVERUSE_TOLERANCE = 50000, OVERUSE_ROW = 3 };

typedef struct Overuse {
        /* ns used beyond share and tolerance, less what was left unused since; at most OVERUSE_OWED
         * windows */
        uint64_t owed;
        /* ns, summed over the windows in a row that were over: their length, the time used, and the
         * share */
        uint64_t span, used, due;
        unsigned row; /* windows in a row that were over */
        bool reported;
} Overuse;

enum { OVERUSE_OWED = 6 };

/* Adds a window of `span` in which it used `used`. share: ppm. length: of an ordinary window; this
 * one is not shorter. Returns true when it is to be reported now. */
bool overuse_window(Overuse *o, uint64_t length, uint64_t span, uint64_t used, uint32_t share);

/* Whether it was reported and the newest window is over. */
bool overuse_lasts(const Overuse *o);

/* What the container had of the card's time in these windows, in ppm. */
uint32_t overuse_ppm(const Overuse *o);
uint32_t overuse_due_ppm(const Overuse *o); /* what it was allowed in them */

/* What a container without a cap is allowed of a window of `span`. It is the largest of three
 * times: what the arbiter gave it, what the arbiter gave no other container, and its part where all
 * want the card (floor, ppm). None of them is a report of a container, except that reports ask for
 * windows. */
uint64_t overuse_due(uint64_t span, uint64_t granted, uint64_t others, uint32_t floor);
