/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The child's side. Only the child calls NVML, one call after another, and any call may hang or
 * crash.
 *
 * A session of the library (nvmlInit to nvmlShutdown) stays open between scans. XIDs are reported
 * to open sessions only, and a driver without persistence mode would set up each card anew. But a
 * session knows only the cards of its beginning. A new one is begun when the agent asks for it and
 * when the number of cards in /proc/driver/nvidia/gpus has changed. */

#include "base/clock.h"

typedef struct ProbeOptions {
        const char *library;   /* as nvml_load() takes it */
        const char *host_root; /* "" for "/" */
        const char *ctl;       /* path of nvidiactl as this process sees it */
        usec_t turn;           /* between two polls for XIDs; 1 ms at least */
        usec_t census;         /* between two censuses; 0: none */
} ProbeOptions;

/* Serves requests on the socket until the other end closes it. Returns the exit status of the
 * process. */
int probe_run(int fd, const ProbeOptions *options);
