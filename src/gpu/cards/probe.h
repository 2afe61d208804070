/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The child's side: it alone calls NVML, one call after another, and may hang or crash at any of
 * them. A session of the library's (nvmlInit to nvmlShutdown) stays open between scans, because
 * XIDs are told to open sessions only and because a driver without persistence mode would set up
 * each card anew; but a session knows the cards of its beginning. It is begun anew when the agent
 * says so and when the number of cards in /proc/driver/nvidia/gpus has changed. */

#include "base/clock.h"

typedef struct ProbeOptions {
        const char *library;   /* as nvml_load() takes it */
        const char *host_root; /* "" for "/" */
        usec_t turn;           /* between two looks for XIDs; 1 ms at least */
        usec_t census;         /* between two counts of what processes hold; 0: none */
} ProbeOptions;

/* Serves requests on the socket until the other end closes it. Returns the exit status of the
 * process. */
int probe_run(int fd, const ProbeOptions *options);
