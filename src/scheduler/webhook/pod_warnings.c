/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/pod_warnings.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/quantity.h"
#include "scheduler/webhook/affinity_modes.h"
#include "share/compute.h"
#include "share/mode.h"
#include "share/unserved_key.h"

enum { NAME_SHOWN = 63, TEXT_SHOWN = 40 };

/* Appends a sentence about the container: `container "main": ...`. */
_printf_(3, 4) static void say(const PodContainer *c, Buf *out, const char *format, ...) {
        char text[224];
        va_list args;

        va_start(args, format);
        (void) vsnprintf(text, sizeof text, format, args);
        va_end(args);
        buf_appendf(out, "%s \"%.*s\": %s\n", c->kind == CONTAINER_INIT ? "init container" : "container",
                    STR_CUT(c->name, NAME_SHOWN), text);
}

int pod_warnings_add(const Buf *text, Buf *out) {
        if (text->len > 0)
                buf_appendf(out, STR_FMT "\n", STR_ARG(buf_str(text)));
        return text->broken ? buf_result(text) : buf_result(out);
}

static void warn_of_empty_entry(const Pod *pod, Buf *out) {
        for (size_t key = 0; key < CARD_KEYS; key++)
                if (card_choice_has_empty_entry(&pod->annotations, key)) {
                        buf_appendf(out, "annotation %s has an empty entry, which is passed over\n",
                                    card_choice_key_name(key));
                        return;
                }
}

/* ---- limits ---- */

static bool is_zero(const ResourceAsk *ask) {
        uint64_t units;

        return ask->present && quantity_parse(ask->text, &units) == 0 && units == 0;
}

static void warn_of_limits(const PodContainer *c, Buf *out) {
        if (!str_is_empty(c->foreign_limit))
                say(c, out,
                    "limit " STR_FMT " is another system's, and aliquot gives nothing for it: did you mean "
                    "%s?",
                    STR_ARG(c->foreign_limit),
                    str_eq(c->foreign_limit, STR("nvidia.com/gpucores")) ? RESOURCE_GPU_CORE
                                                                         : RESOURCE_GPU_MEM);
        if (is_zero(&c->gpu_mem))
                say(c, out, "limit " RESOURCE_GPU_MEM " is %.*s, which asks for no share of a GPU",
                    STR_CUT(c->gpu_mem.text, TEXT_SHOWN));
}

/* ---- containers with a share ---- */

/* A kubelet that restarts admits its pods again, and asks for the devices of a finished init
 * container, too. Without a registered plugin it fails the pod (docs/operate/troubleshoot.md). */
static void warn_of_init(const PodContainer *c, Buf *out) {
        if (c->kind == CONTAINER_INIT)
                say(c, out,
                    "it has a share of a GPU: where the kubelet restarts while the node agent is away, the "
                    "running pod fails; that of a sidecar or a main container does not");
}

static void warn_of_privileges(const PodContainer *c, Buf *out) {
        if (c->privileged)
                say(c, out,
                    "securityContext.privileged: it reaches all cards of its node, and its share does not "
                    "hold it");
}

/* The kubelet prefers the manifest's value to that of the device plugin
 * (GenerateRunContainerOptions). */
static void warn_of_environment(const PodContainer *c, Buf *out) {
        ComputeRequest compute = {0};
        Fault fault = FAULT_NULL;

        if (compute_request(c, &compute, &fault) != 0)
                say(c, out, "%.180s; it is passed over", fault.text);
        if (!str_is_empty(c->agents_variable))
                say(c, out,
                    "env " STR_FMT ": the program reads this value in place of the node agent's; its cards "
                    "and its share do not change",
                    STR_ARG(c->agents_variable));
}

static const PodContainer *container_of(const Pod *pod, const RequestContainer *asked) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (pod->containers[i].kind == asked->kind && pod->containers[i].index == asked->index)
                        return &pod->containers[i];
        return NULL;
}

/* ---- the pod ---- */

static void warn_of_mode(const Pod *pod, const Request *request, Buf *out) {
        bool whole = request->whole, core = request->core > 0;
        ShareMode selected = share_mode_from_label(pod->node_mode);
        uint32_t modes = affinity_modes(pod->affinity);

        if (!str_is_empty(pod->node_mode) && !share_mode_offers(selected, whole, core)) {
                buf_appendf(out,
                            "nodeSelector " LABEL_SCHEDULE " is \"%.*s\", and %s: no node takes the pod\n",
                            STR_CUT(pod->node_mode, TEXT_SHOWN), share_mode_needed(whole, core));
                return;
        }
        for (ShareMode m = SHARE_MODE_SHARE; m < SHARE_MODE_UNKNOWN; m++)
                if ((modes & 1U << m) && share_mode_offers(m, whole, core) &&
                    (str_is_empty(pod->node_mode) || m == selected))
                        return;
        buf_appendf(out,
                    "nodeAffinity on " LABEL_SCHEDULE " excludes the mode, and %s: no node takes the pod\n",
                    share_mode_needed(whole, core));
}

int pod_warnings(const Pod *pod, const Request *request, bool gangs, Buf *out) {
        const char *unserved = unserved_key_of(pod, request != NULL, gangs);

        for (size_t i = 0; i < pod->n_containers; i++)
                warn_of_limits(&pod->containers[i], out);
        for (size_t i = 0; request && i < request->n_containers; i++) {
                const PodContainer *c = container_of(pod, &request->containers[i]);

                if (!c)
                        continue;
                warn_of_init(c, out);
                warn_of_privileges(c, out);
                warn_of_environment(c, out);
        }
        if (request) {
                warn_of_mode(pod, request, out);
                warn_of_empty_entry(pod, out);
        }
        if (unserved)
                buf_appendf(out, "%s\n", unserved);
        return buf_result(out);
}
