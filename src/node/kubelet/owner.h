/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose is a process? By its cgroup, which a container cannot leave: the pod, and below it the
 * container. Known are version 1 and 2, both drivers of the kubelet, and the names of containerd,
 * CRI-O and docker:
 *
 *     kubepods/burstable/podUID/ID                                       cgroupfs; CRI-O's is crio-ID
 *     kubepods.slice/.../kubepods-burstable-podUID.slice/PREFIX-ID.scope systemd ("-" of the UID is "_"), PREFIX cri-containerd, crio, docker
 *     .../kubepods-burstable-podUID.slice:cri-containerd:ID              a kubelet with systemd and a containerd without
 *
 * What stands above the pod (a --cgroup-root, the scope of a machine within this one, the ".." of a
 * cgroup namespace) and below the container (its own cgroups, a docker in it) is passed over. */

#include "base/str.h"

enum { POD_UID_SIZE = 64, CONTAINER_ID_SIZE = 129 };

typedef struct ProcessOwner {
        char uid[POD_UID_SIZE]; /* as the kubelet knows it */
        char container
                [CONTAINER_ID_SIZE]; /* as status.containerStatuses[].containerID has it behind "://"; "": not told */
} ProcessOwner;

/* Of the text of /proc/PID/cgroup, any bytes. Returns false, *ret untouched, when it is in no
 * pod. */
bool cgroup_owner(Str text, ProcessOwner *ret);

/* proc: where the host's proc is mounted. False as well when the process is gone. */
bool process_owner(const char *proc, uint32_t pid, ProcessOwner *ret);

/* When it was started, in the kernel's ticks since boot: with the pid it names one process for
 * ever. False when the process is gone. */
bool process_start(const char *proc, uint32_t pid, uint64_t *ret);
bool process_stat_start(Str text, uint64_t *ret); /* of the text of /proc/PID/stat, any bytes */
