/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which modes of nodes a pod's node affinity lets it on, by the label LABEL_SCHEDULE. Rules on
 * other labels and on names of nodes are taken to hold. */

#include <stdint.h>

#include "base/str.h"

/* affinity: the JSON text of a pod's spec.affinity; empty: none. Returns a set: bit m for the
 * ShareMode m, of those that are values of the label. All of them where nothing is required of the
 * label, and where the text is malformed or memory is out. */
uint32_t affinity_modes(Str affinity);
