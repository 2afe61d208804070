/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The reasons of the agent's Events (core/v1 Event.reason), and the note that each reason of the
 * node last had. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"

/* Events of a pod. */
#define REASON_MEMORY_EXCEEDED       "GPUMemoryExceeded"
#define REASON_COMPUTE_EXCEEDED      "GPUComputeExceeded"
#define REASON_KERNEL_HUNG           "GPUKernelHung"
#define REASON_COMPUTE_REFUSED       "GPUComputeRefused"
#define REASON_ALLOCATION_TAMPERED   "GPUAllocationTampered"
#define REASON_PLACE_IMPOSSIBLE      "GPUPlaceImpossible"
#define REASON_SLICE_FILE_GROWN      "SliceFileGrown"
#define REASON_SLICE_FILE_REWRITTEN  "SliceFileRewritten"
#define REASON_SLICE_ROWS_TAKEN      "SliceRowsTaken"
#define REASON_MEMORY_REFUSED        "GPUMemoryRefused"
#define REASON_CARD_FENCED           "GPUCardFenced"
#define REASON_CARD_RECOVERED        "GPUCardRecovered"
#define REASON_RESIZE_REFUSED        "GPUResizeRefused"
#define REASON_MEMORY_LIMIT_RESTORED "GPUMemoryLimitRestored"
#define REASON_MEMORY_LIMIT_FAILED   "GPUMemoryLimitFailed"

/* Events of the node. */
#define REASON_MISCONFIGURED       "GPUShareMisconfigured"
#define REASON_MEMORY_UNACCOUNTED  "GPUMemoryUnaccounted"
#define REASON_FOREIGN_SLICE       "ForeignSlice"
#define REASON_CPU_MANAGER_STATIC  "CPUManagerStatic"
#define REASON_DRIVER_TROUBLE      "GPUDriverTrouble"
#define REASON_DRIVER_UNSUPPORTED  "GPUDriverUnsupported"
#define REASON_USE_UNTOLD          "GPUUseUntold"
#define REASON_PROCESSES_UNTOLD    "GPUProcessesUntold"
#define REASON_SLICE_DIR_UNBOUNDED "SliceDirUnbounded"
#define REASON_OTHER_PLUGIN        "GPUOtherPlugin"             /* and of its condition GPUShareOtherPlugin */
#define REASON_CARDS_OUT           "GPUCardsOutOfService"       /* and of GPUShareCardsOutOfService */
#define REASON_NO_MEMORY_LIMITS    "GPUMemoryLimitsUnavailable" /* and of GPUShareMemoryLimitsUnavailable */

/* Events of the node, and reasons of its condition GPUShareCardsCordoned. */
#define REASON_CARDS_DRAINING "GPUCardsDraining"
#define REASON_CARDS_DRAINED  "GPUCardsDrained"

/* Events of the node, and reasons of its condition GPUShareChangePending. */
#define REASON_MODE_KEPT     "GPUShareModeKept"
#define REASON_UNIT_REFUSED  "GPUMemoryUnitRefused"
#define REASON_UNIT_DRAINING "GPUMemoryUnitDraining"
#define REASON_UNIT_KEPT     "GPUMemoryUnitKept"

enum { EVENT_REASONS_MAX = 16 };

typedef struct EventReason {
        const char *reason; /* static; NULL: a free entry */
        Fault note;
        bool told; /* false: an Event is to be written once the Node object is known */
} EventReason;

typedef struct EventReasons { /* all zero: empty */
        EventReason entries[EVENT_REASONS_MAX];
        size_t n_added; /* ever */
} EventReasons;

/* Returns the entry of that reason. A new one has an empty note; when all entries are in use it
 * replaces the oldest. */
EventReason *event_reasons_entry(EventReasons *r, const char *reason);
