/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Labels of files that containers get by mounts. The kubelet does not label the mounts of a device
 * plugin (SELinuxRelabel in pkg/kubelet/cm/devicemanager/pod_devices.go), and a container may use
 * files of the type container_file_t alone. glibc passes over an /etc/ld.so.preload that it may not
 * read, so without the label a program would run without the library. */

#include <stdbool.h>

#include "base/fault.h"

/* The label for such files. Its level has no categories, so every container may use them. */
#define SELINUX_CONTAINER_FILE "system_u:object_r:container_file_t:s0"

/* Whether SELinux is on and has loaded a policy, enforcing or permissive. proc: a proc file system,
 * with this process as its `self`. */
bool selinux_is_on(const char *proc);

/* Gives an open file or directory that label. What is made later in the directory inherits the
 * type. path: for the fault. Returns 0, or negative errno with a fault. */
int selinux_label(int fd, const char *path, Fault *fault);

/* Whether the file has the type container_file_t. False also where its label cannot be read. */
bool selinux_is_labelled(const char *path);
