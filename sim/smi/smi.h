/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The simulated nvidia-smi: the answers of libnvidia-ml.so.1 in the known layout. It opens that
 * library and nothing else, so anything between the library and the driver shows here as with the
 * real one. */

#include <stdbool.h>
#include <stdio.h>

#include "sim/nvml/api.h"

enum { SMI_CARDS = 32, SMI_PROCESSES = 950, SMI_NAME = 256 };

/* member, symbol, parameters */
#define SMI_CALLS(X)                                                                                         \
        X(init, "nvmlInit_v2", (void) )                                                                      \
        X(driver_version, "nvmlSystemGetDriverVersion", (char *ret, unsigned size))                          \
        X(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", (int *ret))                                     \
        X(process_name, "nvmlSystemGetProcessName", (unsigned pid, char *ret, unsigned size))                \
        X(count, "nvmlDeviceGetCount_v2", (unsigned *ret))                                                   \
        X(handle, "nvmlDeviceGetHandleByIndex_v2", (unsigned index, NvmlHandle *ret))                        \
        X(name, "nvmlDeviceGetName", (NvmlHandle h, char *ret, unsigned size))                               \
        X(uuid, "nvmlDeviceGetUUID", (NvmlHandle h, char *ret, unsigned size))                               \
        X(pci, "nvmlDeviceGetPciInfo_v3", (NvmlHandle h, NvmlPci3 * ret))                                    \
        X(memory, "nvmlDeviceGetMemoryInfo_v2", (NvmlHandle h, NvmlMemory2 * ret))                           \
        X(utilization, "nvmlDeviceGetUtilizationRates", (NvmlHandle h, NvmlUtilization * ret))               \
        X(temperature, "nvmlDeviceGetTemperature", (NvmlHandle h, int sensor, unsigned *ret))                \
        X(power, "nvmlDeviceGetPowerUsage", (NvmlHandle h, unsigned *ret))                                   \
        X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (NvmlHandle h, unsigned *ret))                     \
        X(processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                              \
          (NvmlHandle h, unsigned *count, NvmlProcess2 *ret))

#define SMI_MEMBER(member, symbol, parameters) NvmlReturn(*member) parameters;

typedef struct SmiCard {
        NvmlHandle handle;
        unsigned index;
        char name[96], uuid[96];
        NvmlPci3 pci;
        NvmlMemory2 memory;
        NvmlUtilization utilization;
        unsigned celsius, milliwatts, milliwatts_limit;
        unsigned n;
        NvmlProcess2 processes[SMI_PROCESSES];
} SmiCard;

typedef struct Smi {
        SMI_CALLS(SMI_MEMBER)
        const char *(*error_string)(NvmlReturn);
        char version[80];
        int cuda;
        unsigned n;
        SmiCard cards[SMI_CARDS];
} Smi;

/* Reads everything once. 0, or an exit status, after printing an error message. */
int smi_read(Smi *s);
/* Keeps one card only, by its index or UUID. false: there is no such card. */
bool smi_select(Smi *s, const char *id);
void smi_name_of(const Smi *s, unsigned pid, char (*ret)[SMI_NAME]);

void smi_print_table(const Smi *s, FILE *out);
void smi_print_list(const Smi *s, FILE *out);

typedef struct SmiQuery {
        const char *cards, *apps; /* lists of fields, or NULL */
        bool noheader, nounits;
} SmiQuery;

int smi_print_query(const Smi *s, const SmiQuery *q, FILE *out);
