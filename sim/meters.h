/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the engines of mounted cards have done, as JSON: seen from outside, by a mapping of each
 * card's file. */

#include "base/buf.h"

/* Appends one object for the cards nvidia0, nvidia1, ... in dir, up to the first that is not there.
 * 0, -ENOENT when there is none, or another negative errno. */
int sim_meters_write(const char *dir, Buf *out);
