/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/convert/foreign_keys.h"

#include <string.h>

#include "base/cleanup.h"

typedef struct ForeignName {
        const char *name, *system;
        bool begins; /* also stands for every name that begins with it */
} ForeignName;

/* HAMi: pkg/device/nvidia/device.go. vgpu-manager: pkg/util/consts.go. Volcano: the constants of
 * pkg/scheduler/api/devices/nvidia. Tencent: the documents of gpu-manager and qGPU. Koordinator:
 * apis/extension/resource.go. KAI: pkg/common/constants. */
static const ForeignName names[] = {
        {"nvidia.com/gpumem", "HAMi", true},
        {"nvidia.com/gpucores", "HAMi", false},
        {"nvidia.com/priority", "HAMi", false},
        {"nvidia.com/vgpu-mode", "HAMi", false},
        {"hami.io/", "HAMi", true},
        {"nvidia.com/vgpu-number", "vgpu-manager", false},
        {"nvidia.com/vgpu-memory", "vgpu-manager", false},
        {"nvidia.com/vgpu-cores", "vgpu-manager", false},
        {"nvidia.com/gpu.shared", "NVIDIA's device plugin", false},
        {"4paradigm.com/vgpu", "HAMi's predecessor", true},
        {"volcano.sh/vgpu-", "Volcano", true},
        {"volcano.sh/gpu-", "Volcano", true},
        {"tencent.com/vcuda-", "GPU manager", true},
        {"tke.cloud.tencent.com/qgpu-", "qGPU", true},
        {"vke.volcengine.com/mgpu-", "mGPU", true},
        {"elasticgpu.io/gpu-", "elastic-gpu", true},
        {"koordinator.sh/gpu", "Koordinator", true},
        {"gpu-fraction", "KAI", true},
        {"gpu-memory", "KAI", false},
};

static const char *after_prefix(const char *key) {
        static const char *const prefixes[] = {"requests.", "limits."};

        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++)
                if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
                        return key + strlen(prefixes[i]);
        return key;
}

const char *foreign_key_system(const char *key) {
        const char *name = after_prefix(key);

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                size_t n = strlen(names[i].name) + !names[i].begins;

                if (strncmp(name, names[i].name, n) == 0)
                        return names[i].system;
        }
        return NULL;
}

const char *foreign_key_of_value(const char *text) {
        /* a word without a domain is any word of the manifest */
        return strchr(text, '/') ? foreign_key_system(text) : NULL;
}

/* Whether the value is "on". YAML 1.1 makes a boolean of an `on` without quotes. */
static bool is_on(const json_t *value) {
        return json_is_true(value) || (json_is_string(value) && strcmp(json_string_value(value), "on") == 0);
}

static bool is_zero(const json_t *value) {
        return (json_is_integer(value) && json_integer_value(value) == 0) ||
               (json_is_string(value) && strcmp(json_string_value(value), "0") == 0);
}

/* Whether it is {key: gpu, operator: In, values: ["on"]}. */
static bool is_expression_of_hami(const json_t *expression) {
        const char *key = json_string_value(json_object_get(expression, "key"));
        const json_t *one;
        size_t i;

        if (!key || strcmp(key, "gpu") != 0)
                return false;
        json_array_foreach(json_object_get(expression, "values"), i, one) {
                if (is_on(one))
                        return true;
        }
        return false;
}

/* Variables that HAMi's library in the container reads: HAMi-core, README and src/. */
static bool is_variable_of_hami(const char *name) {
        static const char *const variables[] = {"CUDA_DISABLE_CONTROL", "CUDA_DEVICE_SM_LIMIT",
                                                "CUDA_TASK_PRIORITY", "CUDA_OVERSUBSCRIBE",
                                                "GPU_CORE_UTILIZATION_POLICY"};
        static const char limit[] = "CUDA_DEVICE_MEMORY_LIMIT";

        for (size_t i = 0; name && i < sizeof variables / sizeof *variables; i++)
                if (strcmp(name, variables[i]) == 0)
                        return true;
        return name && strncmp(name, limit, sizeof limit - 1) == 0;
}

const char *foreign_key_of_member(const char *parent, const char *key, const json_t *value,
                                  const char **ret_what) {
        static const char *const amounts[] = {"limits", "requests", "hard"};
        const char *text = json_string_value(value);
        const json_t *one;
        size_t i;

        *ret_what = key;
        if (strcmp(parent, "nodeSelector") == 0 && strcmp(key, "gpu") == 0 && is_on(value))
                return "HAMi";
        if ((strcmp(key, "schedulerName") == 0 && text && strcmp(text, "hami-scheduler") == 0) ||
            (strcmp(parent, "env") == 0 && strcmp(key, "name") == 0 && is_variable_of_hami(text))) {
                *ret_what = text;
                return "HAMi";
        }
        if (strcmp(key, "matchExpressions") == 0)
                json_array_foreach(value, i, one) {
                        *ret_what = "gpu";
                        if (is_expression_of_hami(one))
                                return "HAMi";
                }
        for (i = 0; i < ELEMENTSOF(amounts); i++)
                if (strcmp(parent, amounts[i]) == 0 && strcmp(after_prefix(key), "nvidia.com/gpu") == 0 &&
                    !is_zero(value))
                        return "HAMi";
        return NULL;
}
