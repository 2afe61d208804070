/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pod and the container that a process belongs to, from its cgroup, which a container cannot
 * leave. Supported are cgroup versions 1 and 2, both cgroup drivers of the kubelet, and the cgroup
 * names of containerd, CRI-O and docker:
 *
 *     kubepods/burstable/podUID/ID                  cgroupfs driver; CRI-O writes crio-ID
 *     .../kubepods-burstable-podUID.slice/PREFIX-ID.scope
 *             systemd driver; "-" of the UID is "_"; PREFIX is cri-containerd, crio or docker
 *     .../kubepods-burstable-podUID.slice:cri-containerd:ID
 *             kubelet with the systemd driver, containerd with cgroupfs
 *
 * Parts of the path above the pod are ignored: a --cgroup-root, the scope of an outer machine, the
 * ".." of a cgroup namespace. So are parts below the container, such as a docker inside it. */

#include "base/str.h"

enum { POD_UID_SIZE = 64, CONTAINER_ID_SIZE = 129 };

/* uid: as the kubelet knows the pod. container: the part behind "://" of
 * status.containerStatuses[].containerID; "" when the cgroup does not tell. */
typedef struct ProcessOwner {
        char uid[POD_UID_SIZE];
        char container[CONTAINER_ID_SIZE];
} ProcessOwner;

/* Parses the text of /proc/PID/cgroup, which may be any bytes. Returns false and leaves *ret as it
 * was when the process is in no pod. */
bool process_owner_parse(Str text, ProcessOwner *ret);

/* The same for a process. proc: where the host's proc is mounted. Also returns false when the
 * process has ended. */
bool process_owner_of(const char *proc, uint32_t pid, ProcessOwner *ret);

/* The part of a cgroup's path that ends with the container: without the cgroups that a program made
 * below it. Returns an empty string where the path names no container. */
Str process_owner_container_path(Str path);
