/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/gang_gate.h"

#include "scheduler/webhook/verdict.h"
#include "wire/annotation.h"
#include "wire/topology_keys.h"

enum { NAME_MAX_BYTES = 253, SHOWN = 64 };

bool gang_gate_is_wanted(const PodGang *gang, const Pod *pod) {
        uint32_t min;

        return !str_is_empty(gang->name) && pod_gang_min(gang->min, &min) && !gang->gated &&
               str_is_empty(pod->node_name);
}

void gang_gate_write(bool has_gates, Buf *out) {
        buf_append_str(out, STR("{\"op\":\"add\",\"path\":\"/spec/schedulingGates"));
        buf_append_str(out, has_gates ? STR("/-\",\"value\":{\"name\":\"" GATE_GANG "\"}}")
                                      : STR("\",\"value\":[{\"name\":\"" GATE_GANG "\"}]}"));
}

int gang_gate_check(const PodGang *gang, const Pod *pod, const char *path, Buf *why) {
        uint32_t min;

        if (gang->gated && verdict_names_another(pod))
                buf_appendf(why,
                            "%sspec.schedulerName: is \"%.*s\", must be " VERDICT_SCHEDULER
                            " in a pod with the gate " GATE_GANG ": name that scheduler, or remove the gate",
                            path, STR_CUT(pod->scheduler_name, SHOWN));
        else if (gang->gated && str_is_empty(gang->name))
                buf_appendf(why,
                            "%sspec.schedulingGates: the gate " GATE_GANG
                            " is for members of gangs; the pod has no label " LABEL_GANG_NAME
                            ": set the label, or remove the gate",
                            path);
        else if (!str_is_empty(gang->name) && !str_is_empty(gang->min) && !pod_gang_min(gang->min, &min))
                buf_appendf(why, "%smetadata.labels[\"%s\"]: is \"%.*s\", must be a number from 1 to %d",
                            path, gang->min_key, STR_CUT(gang->min, SHOWN), POD_GANG_MIN_MAX);
        else if (gang->name.len > NAME_MAX_BYTES)
                buf_appendf(why,
                            "%smetadata.annotations[\"" ANNOTATION_GANG_NAME
                            "\"]: has %zu bytes, must have at most %d",
                            path, gang->name.len, NAME_MAX_BYTES);
        else
                return 0;
        return buf_result(why) < 0 ? buf_result(why) : GANG_GATE_E_REFUSED;
}

int gang_gate_warn(const PodGang *gang, Buf *out) {
        if (!str_is_empty(gang->name) && str_is_empty(gang->min) &&
            strcmp(gang->min_key, LABEL_TOPOLOGY_REPLICAS) == 0)
                buf_appendf(out, "the pod names gang \"%.*s\" without label %s, and is placed by itself\n",
                            STR_CUT(gang->name, SHOWN), gang->min_key);
        return buf_result(out);
}
