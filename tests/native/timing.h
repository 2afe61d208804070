/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Launches take time on the simulated card's compute engine (sim/engine), which all processes share
 * by time slices of their channel groups. The caller holds kernel.h's lock. */

#include <stdbool.h>
#include <stdint.h>

/* A channel group, by its handles, of the card nvidiaN. Opens the card's engine at the first
 * call. */
typedef struct TimingGroup {
        uint32_t client, group, minor;
} TimingGroup;

/* Submits a launch that computes for so many ns. *ret_position: not 0. false: not now; the server
 * has not entered the group yet, or the ring is full. */
bool timing_begin(TimingGroup g, unsigned channel, uint64_t ns, uint64_t *ret_position);
/* Whether that launch has ended. */
bool timing_is_done(TimingGroup g, unsigned channel, uint64_t position);
