/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container as a local process: the first process of namespaces of its own (user, mount, pid,
 * net, ipc, uts), which runs the command and stays until it is stopped, so that its slice is held
 * whatever the command does. The command sees this machine's files read-only and a private /tmp,
 * has no network, no privileges and no way to gain any, and is an unprivileged user of this
 * machine. Output is kept up to a bound; all processes of the container die with it, and with
 * us. */

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"
#include "local/sandbox.h"

typedef struct Container Container;

typedef enum ContainerState {
        CONTAINER_RUNNING,      /* starting, or its command has not ended */
        CONTAINER_HOLDING,      /* there is no command: it holds its slice */
        CONTAINER_EXITED,       /* detail: exit code */
        CONTAINER_KILLED,       /* detail: signal */
        CONTAINER_TIMED_OUT,    /* its command was still running; everything in it has been killed */
        CONTAINER_NO_PROGRAM,   /* detail: errno of execve() */
        CONTAINER_NO_ISOLATION, /* detail: errno of the step container_failed_step() names; nothing was run */
} ContainerState;

typedef struct ContainerSpec {
        const char *hostname;
        char *const *argv; /* NULL: hold only */
        char *const *envp;
        const char *workdir;        /* NULL: / */
        const SandboxMount *mounts; /* its cards and what belongs to them */
        size_t n_mounts;
} ContainerSpec;

enum { CONTAINER_MAX_OUTPUT = 1024 * 1024 };

/* 0 (also when it could not be isolated: see the state), or negative errno. */
int container_new(const ContainerSpec *spec, Container **ret);
Container *container_free(Container *c); /* kills everything in it and waits for its end */

ContainerState container_state(const Container *c);
int container_detail(const Container *c);
const char *container_failed_step(const Container *c);
const Buf *container_output(const Container *c);
bool container_output_was_cut(const Container *c);

/* Takes in output until each of `list` that has a command has ended, or until the deadline
 * (CLOCK_MONOTONIC): those that still run then are stopped if `stop`. 0 or negative errno. */
int container_wait_all(Container *const *list, size_t n, usec_t deadline, bool stop);

DEFINE_CLEANUP(Container *, container_free)
