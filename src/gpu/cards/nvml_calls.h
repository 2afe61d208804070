/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The NVML functions that are called here; the types are in nvml.h. */

/* member, required, symbol, parameters; each returns an nvmlReturn_t, which is an int */
#define NVML_CALLS(X)                                                                                        \
        X(init, true, "nvmlInit_v2", (void) )                                                                \
        X(shutdown, true, "nvmlShutdown", (void) )                                                           \
        X(driver, false, "nvmlSystemGetDriverVersion", (char *ret, unsigned size))                           \
        X(conf_compute, false, "nvmlSystemGetConfComputeState", (NvmlConfComputeState * ret))                \
        X(count, true, "nvmlDeviceGetCount_v2", (unsigned *ret))                                             \
        X(handle, true, "nvmlDeviceGetHandleByIndex_v2", (unsigned index, NvmlDevice *ret))                  \
        X(uuid, true, "nvmlDeviceGetUUID", (NvmlDevice d, char *ret, unsigned size))                         \
        X(name, true, "nvmlDeviceGetName", (NvmlDevice d, char *ret, unsigned size))                         \
        X(minor, true, "nvmlDeviceGetMinorNumber", (NvmlDevice d, unsigned *ret))                            \
        X(memory, true, "nvmlDeviceGetMemoryInfo", (NvmlDevice d, NvmlMemory * ret))                         \
        X(memory2, false, "nvmlDeviceGetMemoryInfo_v2", (NvmlDevice d, NvmlMemory2 * ret))                   \
        X(pci, true, "nvmlDeviceGetPciInfo_v3", (NvmlDevice d, NvmlPci * ret))                               \
        X(mig, false, "nvmlDeviceGetMigMode", (NvmlDevice d, unsigned *ret_now, unsigned *ret_pending))      \
        X(architecture, false, "nvmlDeviceGetArchitecture", (NvmlDevice d, unsigned *ret))                   \
        X(ancestor, false, "nvmlDeviceGetTopologyCommonAncestor",                                            \
          (NvmlDevice d, NvmlDevice other, unsigned *ret_level))                                             \
        X(p2p, false, "nvmlDeviceGetP2PStatus",                                                              \
          (NvmlDevice d, NvmlDevice other, int index, unsigned *ret_status))                                 \
        X(link_state, false, "nvmlDeviceGetNvLinkState", (NvmlDevice d, unsigned link, unsigned *ret))       \
        X(link_version, false, "nvmlDeviceGetNvLinkVersion", (NvmlDevice d, unsigned link, unsigned *ret))   \
        X(link_remote, false, "nvmlDeviceGetNvLinkRemotePciInfo_v2",                                         \
          (NvmlDevice d, unsigned link, NvmlPci *ret))                                                       \
        X(link_remote_type, false, "nvmlDeviceGetNvLinkRemoteDeviceType",                                    \
          (NvmlDevice d, unsigned link, unsigned *ret))                                                      \
        X(compute, false, "nvmlDeviceGetComputeRunningProcesses_v3",                                         \
          (NvmlDevice d, unsigned *count, NvmlProcess *ret))                                                 \
        X(graphics, false, "nvmlDeviceGetGraphicsRunningProcesses_v3",                                       \
          (NvmlDevice d, unsigned *count, NvmlProcess *ret))                                                 \
        X(use, false, "nvmlDeviceGetProcessUtilization",                                                     \
          (NvmlDevice d, NvmlUse * ret, unsigned *count, unsigned long long since))                          \
        X(set_limits, false, "nvmlDeviceSetMemoryLimits_v1", (NvmlDevice d, NvmlSetLimits * p))              \
        X(get_limits, false, "nvmlDeviceGetMemoryLimits_v1", (NvmlDevice d, NvmlGetLimits * p))              \
        X(events_new, false, "nvmlEventSetCreate", (NvmlEventSet * ret))                                     \
        X(events_free, false, "nvmlEventSetFree", (NvmlEventSet s))                                          \
        X(events_add, false, "nvmlDeviceRegisterEvents",                                                     \
          (NvmlDevice d, unsigned long long types, NvmlEventSet s))                                          \
        X(events_wait, false, "nvmlEventSetWait_v2", (NvmlEventSet s, NvmlEvent * ret, unsigned msec))
