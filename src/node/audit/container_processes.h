/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The processes of a container, by their cgroups as they are now. Callers ask again before they
 * act: a pid may belong to another process by then. */

#include "node/kubelet/process_owner.h"
#include "node/records/roster.h"

typedef struct ContainerProcesses {
        const char *proc;
        const RosterPod *pod;
        const char *container; /* NULL: any container of the pod */
} ContainerProcesses;

/* Whether a process of that owner is one of the container. */
bool container_processes_is_of(const ContainerProcesses *c, const ProcessOwner *owner);

/* Whether the pid is a process of the container. */
bool container_processes_has(const ContainerProcesses *c, uint32_t pid);

void container_processes_each(const ContainerProcesses *c, void (*visit)(void *userdata, uint32_t pid),
                              void *userdata);
