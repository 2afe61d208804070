/* SPDX-License-Identifier: Apache-2.0 */

/* Compares the list of functions that the gate interposes with the list that the simulated libcuda
 * serves. */

#include <stddef.h>

#include "preload/launch/copy_hooks.h"
#include "preload/launch/launches.h"
#include "sim/cuda/api_copy.h"
#include "sim/cuda/api_memory.h"
#include "sim/cuda/names.h"
#include "test.h"

typedef struct Name {
        const char *name, *symbol;
        bool twin;
} Name;

#define OURS(name, symbol, twin)            {#name, #symbol, twin},
#define THEIRS(name, symbol, version, twin) {#name, #symbol, twin},

static const Name ours[] = {GATE_CUDA(OURS)};
static const Name theirs[] = {SERVED(THEIRS)};

static const Name *find(const Name *list, size_t n, const char *symbol) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i].symbol, symbol) == 0)
                        return &list[i];
        return NULL;
}

static bool starts(const char *text, const char *with) {
        return strncmp(text, with, strlen(with)) == 0;
}

static bool is_copy(const char *name) {
        return starts(name, "cuMemset") || (starts(name, "cuMemcpy") && !strstr(name, "Batch"));
}

/* Judges by the beginning of the name. So a launch function that is served in future, and not
 * interposed, makes this test fail. */
static bool is_for_the_gate(const char *name) {
        return is_copy(name) || starts(name, "cuLaunch") || starts(name, "cuGraphLaunch") ||
               starts(name, "cuCtxDestroy") || starts(name, "cuCtxDetach") ||
               starts(name, "cuDevicePrimaryCtxRelease") || starts(name, "cuDevicePrimaryCtxReset") ||
               starts(name, "cuGreenCtxDestroy") || starts(name, "cuStreamDestroy") ||
               starts(name, "cuGetProcAddress") || starts(name, "cuStreamAddCallback") ||
               strcmp(name, "cuInit") == 0;
}

static void served_launches_are_interposed(void) {
        unsigned n = 0;

        for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
                const Name *mine;

                if (!is_for_the_gate(theirs[i].name))
                        continue;
                mine = find(ours, sizeof ours / sizeof *ours, theirs[i].symbol);
                if (!mine)
                        TEST_FAIL_("%s is served, and the gate does not know it", theirs[i].symbol);
                ASSERT_TEXT(mine->name, theirs[i].name);
                ASSERT_INT(mine->twin, theirs[i].twin);
                n++;
        }
        ASSERT_TRUE(n >= 70);
}

/* Names of old headers that libcuda still exports, and the simulated one does not. */
static void old_names(void) {
        static const char *const old[] = {"cuLaunch",
                                          "cuLaunchGrid",
                                          "cuLaunchGridAsync",
                                          "cuCtxDetach",
                                          "cuCtxDestroy",
                                          "cuDevicePrimaryCtxRelease",
                                          "cuDevicePrimaryCtxReset",
                                          "cuStreamDestroy",
                                          "cuLaunchCooperativeKernelMultiDevice",
                                          "cuGetProcAddress"};

        for (size_t i = 0; i < sizeof old / sizeof *old; i++)
                if (!find(ours, sizeof ours / sizeof *ours, old[i]))
                        TEST_FAIL_("%s is exported, and the gate does not know it", old[i]);
}

static void no_entry_twice(void) {
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
                ASSERT_TRUE(is_for_the_gate(ours[i].name));
                ASSERT_TRUE(find(ours, sizeof ours / sizeof *ours, ours[i].symbol) == &ours[i]);
        }
}

/* copy_hooks.h describes the same bytes as the simulated libcuda. */
static void shapes_of_copies(void) {
        ASSERT_INT(offsetof(CopyRows, from.type), offsetof(CUDA_MEMCPY2D, srcMemoryType));
        ASSERT_INT(offsetof(CopyRows, to.type), offsetof(CUDA_MEMCPY2D, dstMemoryType));
        ASSERT_INT(offsetof(CopyRows, to.device), offsetof(CUDA_MEMCPY2D, dstDevice));
        ASSERT_INT(offsetof(CopyRows, width), offsetof(CUDA_MEMCPY2D, WidthInBytes));
        ASSERT_INT(sizeof(CopyRows), sizeof(CUDA_MEMCPY2D));
        ASSERT_INT(offsetof(CopyBox, from.type), offsetof(CUDA_MEMCPY3D, srcMemoryType));
        ASSERT_INT(offsetof(CopyBox, to.type), offsetof(CUDA_MEMCPY3D, dstMemoryType));
        ASSERT_INT(offsetof(CopyBox, to.device), offsetof(CUDA_MEMCPY3D, dstDevice));
        ASSERT_INT(offsetof(CopyBox, from.context), offsetof(CUDA_MEMCPY3D_PEER, reserved0));
        ASSERT_INT(offsetof(CopyBox, to.context), offsetof(CUDA_MEMCPY3D_PEER, reserved1));
        ASSERT_INT(offsetof(CopyBox, width), offsetof(CUDA_MEMCPY3D, WidthInBytes));
        ASSERT_INT(sizeof(CopyBox), sizeof(CUDA_MEMCPY3D));
        ASSERT_INT((int) COPY_MEMORY_HOST, (int) CU_MEMORYTYPE_HOST);
        ASSERT_INT((int) COPY_MEMORY_DEVICE, (int) CU_MEMORYTYPE_DEVICE);
        ASSERT_INT((int) COPY_MEMORY_ARRAY, (int) CU_MEMORYTYPE_ARRAY);
        ASSERT_INT((int) COPY_ATTRIBUTE_IS_MANAGED, (int) CU_POINTER_ATTRIBUTE_IS_MANAGED);
        ASSERT_INT((int) COPY_ATTRIBUTE_ORDINAL, (int) CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
        ASSERT_INT((int) COPY_MEMORY_UNIFIED, (int) CU_MEMORYTYPE_UNIFIED);
}

int main(void) {
        return TEST_MAIN(TEST(served_launches_are_interposed), TEST(old_names), TEST(no_entry_twice),
                         TEST(shapes_of_copies));
}
