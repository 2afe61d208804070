/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The work of the engines of mounted cards, as JSON: seen from outside, by a mapping of each card's
 * file. */

#include "base/buf.h"

/* Appends an object with the cards nvidia0, nvidia1, ... in dir, up to the first that does not
 * exist. 0, -ENOENT if there is none, or another negative errno. */
int sim_meters_write(const char *dir, Buf *out);
