/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes a compute policy into the agent's slices while their containers run. A policy applies to a
 * whole card. If the node's policy `yields`, a container with a weight above 1 or with high
 * priority makes all slices of its card weighted, as long as it has its slice. Slices of `aliquot
 * run` are left alone. */

#include "slicedir/slicedir.h"

/* Writes policy into the agent's slices of the card uuid, or of all cards if uuid is NULL. Pages
 * that cannot be written are skipped. Returns 0; negative errno: the directory cannot be read; or
 * the error of the last page that was skipped, as slice_files_set_compute() returns it; all with a
 * fault. */
int slice_policy_apply(Slicedir *d, const CardCompute *policy, const char *uuid, Fault *fault);
