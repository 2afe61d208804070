/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container as a local process. It is the first process of its own namespaces (user, mount, pid,
 * net, ipc, uts), runs the command, and stays until it is stopped, so that its slice stays held.
 * The command sees this machine's files read-only and a private /tmp. It has no network and no
 * privileges, and is an unprivileged user of this machine.
 *
 * Output is kept up to a bound. All processes of the container end with it, and with
 * this process. */

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"
#include "local/sandbox.h"

typedef struct Container Container;

typedef enum ContainerState {
        CONTAINER_RUNNING, /* starting, or its command has not ended */
        CONTAINER_HOLDING, /* no command; it only holds its slice */
        CONTAINER_EXITED,  /* detail: exit code */
        CONTAINER_KILLED,  /* detail: signal */
        /* the command ran into the deadline; all processes were killed */
        CONTAINER_TIMED_OUT,
        CONTAINER_NO_PROGRAM, /* detail: errno of execve() */
        /* detail: errno of the step container_failed_step(); no command was run */
        CONTAINER_NO_ISOLATION,
} ContainerState;

typedef struct ContainerSpec {
        const char *hostname;
        char *const *argv; /* NULL: only hold the slice */
        char *const *envp;
        /* NULL: /; also where it cannot be entered, which the output then says */
        const char *workdir;
        const SandboxMount *mounts; /* files of its cards, to be mounted */
        size_t n_mounts;
} ContainerSpec;

enum { CONTAINER_MAX_OUTPUT = 1024 * 1024 };

/* Returns 0, also when it could not be isolated (see the state), or negative errno. */
int container_new(const ContainerSpec *spec, Container **ret);
Container *container_free(Container *c); /* kills all its processes and waits for their end */

ContainerState container_state(const Container *c);
int container_detail(const Container *c);
const char *container_failed_step(const Container *c);
const Buf *container_output(const Container *c);
bool container_output_was_cut(const Container *c);

/* Reads output until every command of `list` has ended, or until the deadline (CLOCK_MONOTONIC);
 * `stop` then kills the containers whose command still runs. Returns 0 or negative errno. */
int container_wait_all(Container *const *list, size_t n, usec_t deadline, bool stop);

DEFINE_CLEANUP(Container *, container_free)
