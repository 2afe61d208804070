/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The daemon as a supervised child: the parent only restarts the child when it exits. */

#include <stdint.h>

/* Runs the daemon in a child, under a supervisor that restarts it when it dies. Both end with the
 * caller, or when *ret_stop is closed. The caller has one thread. Returns the supervisor's pid, or
 * negative errno. */
int respawn_daemon(const char *slicedir, int *ret_stop);

/* The same. A line for each kernel that will not end (overrun_limit: as in DaemonOptions) is also
 * written to `report_fd`, without waiting for its reader; it stays the caller's; -1: none is written.
 * A line is "VERB NSEC SLICE UUID CONTAINER", shorter than PIPE_BUF. VERB is "hung", or "part" where
 * other processes of the container go on; "still-hung" and "still-part" each `overrun_limit` that it
 * lasts. */
int respawn_daemon_reporting(const char *slicedir, int report_fd, uint64_t overrun_limit, int *ret_stop);
