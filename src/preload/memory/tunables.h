/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The time constants of the room. */

/* The longest time slice that a program may set for its channels: what libcuda sets for each
 * context; the driver's default is shorter. measured on RTX 3060, 580.159 (the public trace
 * reindertpelsma/nvkvm-old, traces/host_reference_ga106). */
#define TIMESLICE_MAX_USEC 2048
