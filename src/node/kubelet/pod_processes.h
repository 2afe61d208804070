/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether any process of a pod still runs. The cgroup tree is the only source once the pod object
 * is gone: a forced deletion removes the object while the containers still run. */

#include "base/str.h"

typedef enum PodProcesses {
        POD_PROCESSES_NONE, /* the pod has no cgroup, or an empty one */
        POD_PROCESSES_SOME,
        POD_PROCESSES_UNKNOWN, /* the tree cannot be read: the processes must be taken as alive */
} PodProcesses;

/* root: where the host's cgroup tree is mounted (/sys/fs/cgroup), version 1 with any controller or
 * version 2. Both cgroup drivers of the kubelet are supported, with or without --cgroup-root and a
 * parent scope: kubepods/burstable/podUID, and
 * kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice with "-" of the UID as
 * "_".
 *
 * Returns POD_PROCESSES_UNKNOWN for a tree without any kubepods: a container that has only its own
 * cgroup sees such a tree. Returns POD_PROCESSES_NONE for a UID with characters other than letters,
 * digits and "-". Links are not followed. Version 1 without the pids controller needs the host's
 * PID namespace, because cgroup.procs does not list processes of other namespaces. */
PodProcesses pod_processes(const char *root, Str uid);

/* The path of the pod's cgroup below root, version 2 only: "/kubepods/podUID". 0; -ENOENT: it has
 * none, or the tree is not that of the kubelet; -EOPNOTSUPP: it is version 1; -ENAMETOOLONG, or
 * another negative errno. */
int pod_processes_path(const char *root, Str uid, char *ret, size_t size);
