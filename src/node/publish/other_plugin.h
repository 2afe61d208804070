/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a Node offers NVIDIA's cards by another device plugin, too: NVIDIA's own, also as the GPU
 * Operator deploys it, HAMi's, or vgpu-manager's. Pure. */

#include "base/buf.h"
#include "base/str.h"

/* Appends what is allocatable of the other plugin's resources: "4 nvidia.com/gpu". Nothing when
 * there is nothing, or all of it is 0, as the kubelet reports it after a plugin has gone; or where
 * the text is no Node. */
void other_plugin_find(Str node, Buf *out);
