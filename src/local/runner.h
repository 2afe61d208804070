/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs the containers of placed pods on this machine and prints their slices and logs. Init
 * containers run one after another before the others, as in a cluster; pods run side by side. */

#include "base/buf.h"
#include "base/clock.h"
#include "local/tree.h"

/* Further containers are listed, but not started: each is a process that stays. */
enum { RUNNER_MAX_CONTAINERS = 256 };

typedef struct RunnerOptions {
        usec_t timeout;       /* time limit for the commands of one stage */
        bool ignores_disable; /* CGPU_DISABLE is not honoured */
} RunnerOptions;

/* pods: the placed pods, in the order of the output. nodes: Node objects. *notes gets a line for
 * whatever containers lack here. Returns 0 or negative errno; all containers and simulated drivers
 * have ended then. */
int runner_run(const json_t *pods, const json_t *nodes, const RunnerOptions *options, Buf *out, Buf *notes);
