/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs the daemon under a supervisor: the parent only restarts the child when it exits. */

#include <stdint.h>

/* Starts a supervisor, which starts the daemon and restarts it when it ends. Both end with the
 * caller, or when *ret_stop, a pipe that the caller then owns, is closed. The caller must have one
 * thread. Returns the supervisor's pid, or negative errno.
 *
 * report_fd: gets a line for each report of overdue work (overrun_limit: as in DaemonOptions). It
 * stays the caller's; a full pipe loses the line; -1: none is written. A line is "VERB NSEC SLICE
 * UUID CONTAINER", shorter than PIPE_BUF. VERB is "hung", or "part" if other processes of the
 * container go on; "still-hung" and "still-part" after each further overrun_limit. */
int respawn_daemon(const char *slicedir, int report_fd, uint64_t overrun_limit, int *ret_stop);
