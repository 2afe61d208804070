/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where NVML's process sees cgroup version 2: NVML takes the literal path of a cgroup there. */
#define CGROUP_MOUNT "/sys/fs/cgroup"
