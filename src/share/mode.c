/* SPDX-License-Identifier: Apache-2.0 */
#include "share/mode.h"

#include "wire/annotation.h"

static const struct {
        Str label;
        ShareMode mode;
} modes[] = {
        {STR("share"), SHARE_MODE_SHARE},       {STR("cgpu"), SHARE_MODE_CGPU},
        {STR("core_mem"), SHARE_MODE_CORE_MEM}, {STR("default"), SHARE_MODE_DEFAULT},
        {STR("disabled"), SHARE_MODE_DISABLED}, {STR("mps"), SHARE_MODE_MPS},
        {STR("topology"), SHARE_MODE_TOPOLOGY}, {STR("mig"), SHARE_MODE_MIG},
};

ShareMode share_mode_from_label(Str label) {
        if (str_is_empty(label))
                return SHARE_MODE_NONE;
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
                if (str_eq(label, modes[i].label))
                        return modes[i].mode;
        return SHARE_MODE_UNKNOWN;
}

const char *share_mode_to_string(ShareMode mode) {
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
                if (mode == modes[i].mode)
                        return modes[i].label.data;
        return mode == SHARE_MODE_NONE ? "none" : "unknown";
}

bool share_mode_has_memory(ShareMode mode) {
        return mode == SHARE_MODE_SHARE || mode == SHARE_MODE_CGPU || mode == SHARE_MODE_CORE_MEM;
}

bool share_mode_has_whole(ShareMode mode) {
        return mode == SHARE_MODE_TOPOLOGY;
}

bool share_mode_is_served(ShareMode mode) {
        return share_mode_has_memory(mode) || share_mode_has_whole(mode);
}

bool share_mode_has_core(ShareMode mode) {
        return mode == SHARE_MODE_CORE_MEM;
}

bool share_mode_is_isolated(ShareMode mode) {
        return mode == SHARE_MODE_CGPU || mode == SHARE_MODE_CORE_MEM;
}

bool share_mode_offers(ShareMode mode, bool whole, bool core) {
        return whole  ? share_mode_has_whole(mode)
               : core ? share_mode_has_core(mode)
                      : share_mode_has_memory(mode);
}

const char *share_mode_needed(bool whole, bool core) {
        return whole  ? RESOURCE_GPU " needs topology"
               : core ? "compute percent needs core_mem"
                      : "gpu-mem needs share, cgpu or core_mem";
}
