/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <stddef.h>

typedef struct Name {
        uint32_t number;
        const char *words;
} Name;

/* nv_escape.h, nv-ioctl-numbers.h; classes; ctrl*.h; uvm_ioctl.h; nvstatuscodes.h; ctrl2080fb.h of
 * the open kernel modules 595.45 */

static const Name escapes[] = {
        {0x27, "ALLOC_MEMORY"},
        {0x28, "ALLOC_OBJECT"},
        {0x29, "FREE"},
        {0x2A, "CONTROL"},
        {0x2B, "ALLOC"},
        {0x34, "DUP_OBJECT"},
        {0x35, "SHARE"},
        {0x39, "I2C_ACCESS"},
        {0x41, "IDLE_CHANNELS"},
        {0x4A, "VID_HEAP_CONTROL"},
        {0x4D, "ACCESS_REGISTRY"},
        {0x4E, "MAP_MEMORY"},
        {0x4F, "UNMAP_MEMORY"},
        {0x52, "GET_EVENT_DATA"},
        {0x54, "ALLOC_CONTEXT_DMA2"},
        {0x56, "ADD_VBLANK_CALLBACK"},
        {0x57, "MAP_MEMORY_DMA"},
        {0x58, "UNMAP_MEMORY_DMA"},
        {0x59, "BIND_CONTEXT_DMA"},
        {0x5C, "EXPORT_OBJECT_TO_FD"},
        {0x5D, "IMPORT_OBJECT_FROM_FD"},
        {0x5E, "UPDATE_DEVICE_MAPPING_INFO"},
        {0x5F, "LOCKLESS_DIAGNOSTIC"},
        {0xC8, "CARD_INFO"},
        {0xC9, "REGISTER_FD"},
        {0xCE, "ALLOC_OS_EVENT"},
        {0xCF, "FREE_OS_EVENT"},
        {0xD1, "STATUS_CODE"},
        {0xD2, "CHECK_VERSION_STR"},
        {0xD3, "XFER_CMD"},
        {0xD4, "ATTACH_GPUS_TO_FD"},
        {0xD5, "QUERY_DEVICE_INTR"},
        {0xD6, "SYS_PARAMS"},
        {0xDA, "EXPORT_TO_DMABUF_FD"},
        {0xDB, "WAIT_OPEN_COMPLETE"},
};

static const Name classes[] = {
        {0x0, "NV01_ROOT"},
        {0x1, "NV01_ROOT_NON_PRIV"},
        {0x41, "NV01_ROOT_CLIENT"},
        {0x3E, "NV01_MEMORY_SYSTEM"},
        {0x40, "NV01_MEMORY_LOCAL_USER"},
        {0x70, "NV01_MEMORY_VIRTUAL"},
        {0x71, "NV01_MEMORY_SYSTEM_OS_DESCRIPTOR"},
        {0x80, "NV01_DEVICE_0"},
        {0x2080, "NV20_SUBDEVICE_0"},
        {0x50A0, "NV50_MEMORY_VIRTUAL"},
        {0x90F1, "FERMI_VASPACE_A"},
        {0xA06C, "KEPLER_CHANNEL_GROUP_A"},
        {0x9067, "FERMI_CONTEXT_SHARE_A"},
        {0x5, "NV01_EVENT"},
        {0x79, "NV01_EVENT_OS_EVENT"},
        {0x83DE, "GT200_DEBUGGER"},
        {0xFE, "NV_MEMORY_MAPPER"},
        {0xF8, "NV_MEMORY_FABRIC"},
        {0xFD, "NV_MEMORY_MULTICAST_FABRIC"},
        {0xF9, "NV_MEMORY_FABRIC_IMPORT_V2"},
        {0x42, "NV_MEMORY_EXTENDED_USER"},
        {0xA081, "NVA081_VGPU_CONFIG"},
        {0x90CD, "NV_EVENT_BUFFER"},
        {0xC461, "TURING_USERMODE_A"},
        {0xC661, "HOPPER_USERMODE_A"},
};

static const Name controls[] = {
        {0x201, "GPU_GET_ATTACHED_IDS"},
        {0x202, "GPU_GET_ID_INFO"},
        {0x205, "GPU_GET_ID_INFO_V2"},
        {0x214, "GPU_GET_PROBED_IDS"},
        {0x3D02, "OS_UNIX_FLUSH_USER_CACHE"},
        {0x3D04, "OS_UNIX_GET_CONTROL_FILE_DESCRIPTOR"},
        {0x3D05, "OS_UNIX_EXPORT_OBJECT_TO_FD"},
        {0x3D06, "OS_UNIX_IMPORT_OBJECT_FROM_FD"},
        {0x3D07, "OS_GET_GPU_INFO"},
        {0x3D08, "OS_UNIX_GET_EXPORT_OBJECT_INFO"},
        {0x3D0A, "OS_UNIX_CREATE_EXPORT_OBJECT_FD"},
        {0x3D0B, "OS_UNIX_EXPORT_OBJECTS_TO_FD"},
        {0x3D0C, "OS_UNIX_IMPORT_OBJECTS_FROM_FD"},
        {0x410110, "GET_SURFACE_INFO"},
        {0x20800110, "GPU_GET_NAME_STRING"},
        {0x2080014A, "GPU_GET_GID_INFO"},
        {0x2080018D, "GPU_GET_PIDS"},
        {0x2080018E, "GPU_GET_PID_INFO"},
        {0x20801210, "GR_SET_CTXSW_PREEMPTION_MODE"},
        {0x20801218, "GR_GET_CTX_BUFFER_SIZE"},
        {0x20801301, "FB_GET_INFO"},
        {0x20801303, "FB_GET_INFO_V2"},
        {0x20801320, "FB_GET_FB_REGION_INFO"},
        {0x2080132F, "FB_STATS_GET"},
        {0x20801362, "FB_GET_UGPU_MEMORY_INFO"},
        {0x2080110B, "FIFO_DISABLE_CHANNELS"},
        {0x20802096, "PERF_GET_GPUMON_PERFMON_UTIL_SAMPLES_V2"},
        {0xA06C0101, "GPFIFO_SCHEDULE"},
        {0xA06C0103, "SET_TIMESLICE"},
        {0xA06C0105, "PREEMPT"},
};

static const Name uvm[] = {
        {0x30000001, "UVM_INITIALIZE"},
        {0x30000002, "UVM_DEINITIALIZE"},
        {1, "UVM_RESERVE_VA"},
        {2, "UVM_RELEASE_VA"},
        {3, "UVM_REGION_COMMIT"},
        {4, "UVM_REGION_DECOMMIT"},
        {5, "UVM_REGION_SET_STREAM"},
        {6, "UVM_SET_STREAM_RUNNING"},
        {7, "UVM_SET_STREAM_STOPPED"},
        {10, "UVM_ADD_SESSION"},
        {12, "UVM_ENABLE_COUNTERS"},
        {13, "UVM_MAP_COUNTER"},
        {14, "UVM_CREATE_EVENT_QUEUE"},
        {15, "UVM_REMOVE_EVENT_QUEUE"},
        {16, "UVM_MAP_EVENT_QUEUE"},
        {17, "UVM_EVENT_CTRL"},
        {20, "UVM_GET_GPU_UUID_TABLE"},
        {21, "UVM_REGION_SET_BACKING"},
        {22, "UVM_REGION_UNSET_BACKING"},
        {23, "UVM_CREATE_RANGE_GROUP"},
        {24, "UVM_DESTROY_RANGE_GROUP"},
        {25, "UVM_REGISTER_GPU_VASPACE"},
        {26, "UVM_UNREGISTER_GPU_VASPACE"},
        {27, "UVM_REGISTER_CHANNEL"},
        {28, "UVM_UNREGISTER_CHANNEL"},
        {29, "UVM_ENABLE_PEER_ACCESS"},
        {30, "UVM_DISABLE_PEER_ACCESS"},
        {31, "UVM_SET_RANGE_GROUP"},
        {33, "UVM_MAP_EXTERNAL_ALLOCATION"},
        {34, "UVM_FREE"},
        {35, "UVM_MEM_MAP"},
        {37, "UVM_REGISTER_GPU"},
        {38, "UVM_UNREGISTER_GPU"},
        {39, "UVM_PAGEABLE_MEM_ACCESS"},
        {40, "UVM_PREVENT_MIGRATION_RANGE_GROUPS"},
        {41, "UVM_ALLOW_MIGRATION_RANGE_GROUPS"},
        {42, "UVM_SET_PREFERRED_LOCATION"},
        {43, "UVM_UNSET_PREFERRED_LOCATION"},
        {44, "UVM_ENABLE_READ_DUPLICATION"},
        {45, "UVM_DISABLE_READ_DUPLICATION"},
        {46, "UVM_SET_ACCESSED_BY"},
        {47, "UVM_UNSET_ACCESSED_BY"},
        {51, "UVM_MIGRATE"},
        {53, "UVM_MIGRATE_RANGE_GROUP"},
        {56, "UVM_TOOLS_INIT_EVENT_TRACKER"},
        {57, "UVM_TOOLS_SET_NOTIFICATION_THRESHOLD"},
        {58, "UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS"},
        {59, "UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS"},
        {60, "UVM_TOOLS_ENABLE_COUNTERS"},
        {61, "UVM_TOOLS_DISABLE_COUNTERS"},
        {62, "UVM_TOOLS_READ_PROCESS_MEMORY"},
        {63, "UVM_TOOLS_WRITE_PROCESS_MEMORY"},
        {64, "UVM_TOOLS_GET_PROCESSOR_UUID_TABLE"},
        {65, "UVM_MAP_DYNAMIC_PARALLELISM_REGION"},
        {66, "UVM_UNMAP_EXTERNAL"},
        {67, "UVM_TOOLS_FLUSH_EVENTS"},
        {68, "UVM_ALLOC_SEMAPHORE_POOL"},
        {69, "UVM_CLEAN_UP_ZOMBIE_RESOURCES"},
        {70, "UVM_PAGEABLE_MEM_ACCESS_ON_GPU"},
        {71, "UVM_POPULATE_PAGEABLE"},
        {72, "UVM_VALIDATE_VA_RANGE"},
        {73, "UVM_CREATE_EXTERNAL_RANGE"},
        {74, "UVM_MAP_EXTERNAL_SPARSE"},
        {75, "UVM_MM_INITIALIZE"},
        {76, "UVM_TOOLS_INIT_EVENT_TRACKER_V2"},
        {77, "UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2"},
        {78, "UVM_ALLOC_DEVICE_P2P"},
        {79, "UVM_CLEAR_ALL_ACCESS_COUNTERS"},
        {80, "UVM_DISCARD"},
        {2047, "UVM_IS_8_SUPPORTED"},
};

static const Name statuses[] = {
        {0x0, "OK"},
        {0x1A, "INSUFFICIENT_RESOURCES"},
        {0x1B, "INSUFFICIENT_PERMISSIONS"},
        {0x1F, "INVALID_ARGUMENT"},
        {0x22, "INVALID_CLASS"},
        {0x23, "INVALID_CLIENT"},
        {0x26, "INVALID_DEVICE"},
        {0x33, "INVALID_OBJECT_HANDLE"},
        {0x36, "INVALID_OBJECT_PARENT"},
        {0x3B, "INVALID_PARAMETER"},
        {0x40, "INVALID_STATE"},
        {0x51, "NO_MEMORY"},
        {0x56, "NOT_SUPPORTED"},
        {0x57, "OBJECT_NOT_FOUND"},
};

static const Name fb[] = {
        {0x7, "RAM_SIZE"},
        {0x8, "TOTAL_RAM_SIZE"},
        {0x9, "HEAP_SIZE"},
        {0xA, "MAPPABLE_HEAP_SIZE"},
        {0x11, "HEAP_BASE"},
        {0x12, "LARGEST_FREE_REGION"},
        {0x13, "LARGEST_FREE_REGION_BASE"},
        {0x16, "HEAP_FREE"},
        {0x1E, "HEAP_START"},
        {0x20, "USABLE_RAM_SIZE"},
};

static const char *find(const Name *names, size_t n, uint32_t number) {
        for (size_t i = 0; i < n; i++)
                if (names[i].number == number)
                        return names[i].words;
        return "";
}

#define FIND(names, number) find((names), sizeof(names) / sizeof *(names), (number))

const char *name_of_escape(uint32_t nr) {
        return FIND(escapes, nr);
}

/* Each generation has its own class of channels. */
const char *name_of_class(uint32_t class_) {
        const char *words = FIND(classes, class_);

        if (words[0] == '\0' && class_ >= 0xA000 && class_ <= 0xFFFF && (class_ & 0xFF) == 0x6F)
                return "a channel";
        return words;
}

const char *name_of_control(uint32_t cmd) {
        return FIND(controls, cmd);
}

const char *name_of_uvm(uint32_t request) {
        return FIND(uvm, request);
}

const char *name_of_status(uint32_t status) {
        return FIND(statuses, status);
}

const char *name_of_fb(uint32_t index) {
        return FIND(fb, index);
}
