/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Does any process of a pod still live? Asked of the cgroup tree, because it is the only one who
 * knows when the pod object is gone: deletion by force takes the object away while the containers
 * run on. */

#include "base/str.h"

typedef enum PodProcesses {
        POD_PROCESSES_NONE, /* no cgroup of that pod, or an empty one */
        POD_PROCESSES_SOME,
        POD_PROCESSES_UNKNOWN, /* the tree cannot be read: nobody may conclude that they ended */
} PodProcesses;

/* root: where the host's cgroup tree is mounted (/sys/fs/cgroup): version 1 (any controller) or 2.
 * Both drivers of the kubelet are known: kubepods/burstable/podUID and
 * kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice (with "-" of the UID as
 * "_"), with or without --cgroup-root and a parent scope. A tree without any kubepods, as a
 * container sees that has only its own, is UNKNOWN. A UID that is none (letters, digits, "-") is
 * nobody's. No link is followed. Version 1 without the pids controller needs the host's pid
 * namespace: others' processes are not seen there. */
PodProcesses pod_processes(const char *root, Str uid);
