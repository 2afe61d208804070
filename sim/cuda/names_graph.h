/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The functions that are served for graphs: see names.h. */

/* Several to a line: clang-format would give each its own. */
/* clang-format off */
#define SERVED_GRAPH(X)                                                                                      \
        X(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040, false)                                          \
        X(cuGraphAddDependencies, cuGraphAddDependencies, 10000, false)                                      \
        X(cuGraphAddDependencies, cuGraphAddDependencies_v2, 12030, false)                                   \
        X(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, false)                                      \
        X(cuGraphAddMemsetNode, cuGraphAddMemsetNode, 10000, false)                                          \
        X(cuGraphCreate, cuGraphCreate, 10000, false) X(cuGraphDestroy, cuGraphDestroy, 10000, false)        \
        X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, false)                                              \
        X(cuGraphGetNodes, cuGraphGetNodes, 10000, false)                                                    \
        X(cuGraphInstantiate, cuGraphInstantiate, 10000, false)                                              \
        X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, false)                            \
        X(cuGraphInstantiate, cuGraphInstantiateWithFlags, 12000, false)                                     \
        X(cuGraphInstantiate, cuGraphInstantiate_v2, 11000, false)                                           \
        X(cuGraphLaunch, cuGraphLaunch, 10000, false) X(cuGraphLaunch, cuGraphLaunch_ptsz, 10000, true)
/* clang-format on */
