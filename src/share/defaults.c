/* SPDX-License-Identifier: Apache-2.0 */
#include "share/defaults.h"

#include <stddef.h>

#include "share/compute.h"

enum { PRIO_RATIO_MIN = 20, PRIO_RATIO_MAX = 99 };

typedef struct Setting {
        const char *option;
        size_t offset;      /* of the annotation in NodeAnnotations */
        uint32_t low, high; /* both 0: true or false */
        const char *rule;
} Setting;

static const Setting settings[NODE_SETTINGS_] = {
        [NODE_MAX_INST] = {"max-inst", offsetof(NodeAnnotations, max_inst), 1, COMPUTE_INSTANCES_MAX,
                           "a whole number from 1 to 100"},
        [NODE_PRIO_RATIO] = {"prio-ratio", offsetof(NodeAnnotations, prio_ratio), PRIO_RATIO_MIN,
                             PRIO_RATIO_MAX, "a percentage from 20 to 99"},
        [NODE_MAX_PODS] = {"max-pods-per-card", offsetof(NodeAnnotations, max_pods), 0, UINT32_MAX,
                           "a whole number, 0 for no ceiling"},
        [NODE_ALLOW_MIXED] = {"allow-mixed", offsetof(NodeAnnotations, allow_mixed), 0, 0, "true or false"},
        [NODE_PLACE_WHILE_CHANGING] = {"place-while-changing",
                                       offsetof(NodeAnnotations, place_while_changing), 0, 0,
                                       "true or false"},
};

static bool is_good(const Setting *s, Str text) {
        uint32_t value;

        if (s->high == 0)
                return str_eq(text, STR("true")) || str_eq(text, STR("false"));
        return str_to_u32(text, &value) && value >= s->low && value <= s->high;
}

int node_defaults_set(NodeDefaults *d, NodeSetting setting, const char *text, Fault *fault) {
        const Setting *s = &settings[setting];

        if (!is_good(s, str_from(text)))
                return fault_set(fault, NODE_DEFAULTS_E_VALUE, "--%s is \"%s\", must be %s", s->option, text,
                                 s->rule);
        d->values[setting] = text;
        return 0;
}

void node_defaults_apply(const NodeDefaults *d, Node *node) {
        for (size_t i = 0; i < NODE_SETTINGS_; i++) {
                Str *annotation = (Str *) ((char *) &node->annotations + settings[i].offset);

                if (d->values[i] && str_is_empty(*annotation))
                        *annotation = str_from(d->values[i]);
        }
}
