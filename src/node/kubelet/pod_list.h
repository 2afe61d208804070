/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The answer of PodResources v1 List, decoded: which device IDs the kubelet has assigned to which
 * container of which pod. */

#include "base/arena.h"
#include "base/fault.h"
#include "base/str.h"

/* The IDs of one resource that a container holds. The kubelet sends one entry per ID; they are
 * merged. */
typedef struct HeldDevices {
        Str resource;
        Str *ids;
        size_t n;
} HeldDevices;

typedef struct ListedContainer {
        Str name;
        HeldDevices *devices;
        size_t n_devices;
} ListedContainer;

typedef struct ListedPod {
        Str namespace_, name;
        ListedContainer *containers; /* main ones and sidecars; ordinary init containers are never listed */
        size_t n_containers;
} ListedPod;

typedef struct PodList {
        ListedPod *pods;
        size_t n;
} PodList;

/* Decodes the message, as views of it. Resources outside `prefix` ("aliyun.com/") are left out.
 * Returns 0, -ENOMEM, or PODLIST_E_MALFORMED with a fault. Also refused are more than 16,384 pods,
 * 65,536 containers, 600,000 IDs, or 32 resources of one container. */
enum { PODLIST_E_MALFORMED = 1 };
int pod_list_decode(Str message, Str prefix, Arena *arena, PodList *ret, Fault *fault);
