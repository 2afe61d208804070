/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The functions that are served for graphs: see names.h. */

/* Several to a line: clang-format would give each its own. */
/* clang-format off */
#define SERVED_GRAPH(X)                                                                                      \
        X(cuDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute, 11040, false)                          \
        X(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040, false)                                          \
        X(cuDeviceSetGraphMemAttribute, cuDeviceSetGraphMemAttribute, 11040, false)                          \
        X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode, 10000, false)                                  \
        X(cuGraphAddDependencies, cuGraphAddDependencies, 10000, false)                                      \
        X(cuGraphAddDependencies, cuGraphAddDependencies_v2, 12030, false)                                   \
        X(cuGraphAddEmptyNode, cuGraphAddEmptyNode, 10000, false)                                            \
        X(cuGraphAddEventRecordNode, cuGraphAddEventRecordNode, 11010, false)                                \
        X(cuGraphAddEventWaitNode, cuGraphAddEventWaitNode, 11010, false)                                    \
        X(cuGraphAddHostNode, cuGraphAddHostNode, 10000, false)                                              \
        X(cuGraphAddKernelNode, cuGraphAddKernelNode, 10000, false)                                          \
        X(cuGraphAddKernelNode, cuGraphAddKernelNode_v2, 12000, false)                                       \
        X(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, false)                                      \
        X(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040, false)                                        \
        X(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode, 10000, false)                                          \
        X(cuGraphAddMemsetNode, cuGraphAddMemsetNode, 10000, false)                                          \
        X(cuGraphAddNode, cuGraphAddNode, 12020, false) X(cuGraphAddNode, cuGraphAddNode_v2, 12030, false)   \
        X(cuGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, 10000, false)                        \
        X(cuGraphClone, cuGraphClone, 10000, false) X(cuGraphCreate, cuGraphCreate, 10000, false)            \
        X(cuGraphDestroy, cuGraphDestroy, 10000, false)                                                      \
        X(cuGraphDestroyNode, cuGraphDestroyNode, 10000, false)                                              \
        X(cuGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeGetEvent, 11010, false)                      \
        X(cuGraphEventRecordNodeSetEvent, cuGraphEventRecordNodeSetEvent, 11010, false)                      \
        X(cuGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeGetEvent, 11010, false)                          \
        X(cuGraphEventWaitNodeSetEvent, cuGraphEventWaitNodeSetEvent, 11010, false)                          \
        X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, false)                                              \
        X(cuGraphExecEventRecordNodeSetEvent, cuGraphExecEventRecordNodeSetEvent, 11010, false)              \
        X(cuGraphExecEventWaitNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, 11010, false)                  \
        X(cuGraphExecGetFlags, cuGraphExecGetFlags, 12000, false)                                            \
        X(cuGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams, 10020, false)                          \
        X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams, 10010, false)                      \
        X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2, 12000, false)                   \
        X(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, 10020, false)                      \
        X(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams, 10020, false)                      \
        X(cuGraphExecNodeSetParams, cuGraphExecNodeSetParams, 12020, false)                                  \
        X(cuGraphExecUpdate, cuGraphExecUpdate, 10020, false)                                                \
        X(cuGraphExecUpdate, cuGraphExecUpdate_v2, 12000, false)                                             \
        X(cuGraphGetEdges, cuGraphGetEdges, 10000, false)                                                    \
        X(cuGraphGetEdges, cuGraphGetEdges_v2, 12030, false)                                                 \
        X(cuGraphGetNodes, cuGraphGetNodes, 10000, false)                                                    \
        X(cuGraphGetRootNodes, cuGraphGetRootNodes, 10000, false)                                            \
        X(cuGraphHostNodeGetParams, cuGraphHostNodeGetParams, 10000, false)                                  \
        X(cuGraphHostNodeSetParams, cuGraphHostNodeSetParams, 10000, false)                                  \
        X(cuGraphInstantiate, cuGraphInstantiate, 10000, false)                                              \
        X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, false)                            \
        X(cuGraphInstantiate, cuGraphInstantiateWithFlags, 12000, false)                                     \
        X(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, false)                          \
        X(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz, 12000, true)                      \
        X(cuGraphInstantiate, cuGraphInstantiate_v2, 11000, false)                                           \
        X(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams, 10000, false)                              \
        X(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams_v2, 12000, false)                           \
        X(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams, 10000, false)                              \
        X(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams_v2, 12000, false)                           \
        X(cuGraphLaunch, cuGraphLaunch, 10000, false) X(cuGraphLaunch, cuGraphLaunch_ptsz, 10000, true)      \
        X(cuGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams, 11040, false)                          \
        X(cuGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, 11040, false)                            \
        X(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeGetParams, 10000, false)                              \
        X(cuGraphMemcpyNodeSetParams, cuGraphMemcpyNodeSetParams, 10000, false)                              \
        X(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, 10000, false)                              \
        X(cuGraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams, 10000, false)                              \
        X(cuGraphNodeFindInClone, cuGraphNodeFindInClone, 10000, false)                                      \
        X(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies, 10000, false)                              \
        X(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies_v2, 12030, false)                           \
        X(cuGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes, 10000, false)                          \
        X(cuGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes_v2, 12030, false)                       \
        X(cuGraphNodeGetEnabled, cuGraphNodeGetEnabled, 11060, false)                                        \
        X(cuGraphNodeGetType, cuGraphNodeGetType, 10000, false)                                              \
        X(cuGraphNodeSetEnabled, cuGraphNodeSetEnabled, 11060, false)                                        \
        X(cuGraphNodeSetParams, cuGraphNodeSetParams, 12020, false)                                          \
        X(cuGraphRemoveDependencies, cuGraphRemoveDependencies, 10000, false)                                \
        X(cuGraphRemoveDependencies, cuGraphRemoveDependencies_v2, 12030, false)                             \
        X(cuGraphUpload, cuGraphUpload, 11010, false) X(cuGraphUpload, cuGraphUpload_ptsz, 11010, true)
/* clang-format on */
