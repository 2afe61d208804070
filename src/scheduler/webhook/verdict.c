/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/verdict.h"

#include "scheduler/webhook/pod_warnings.h"
#include "share/cluster_cards.h"
#include "share/pod_key_names.h"
#include "share/refusal_format.h"
#include "share/request.h"
#include "wire/annotation.h"
#include "wire/pod.h"

#define FIELD_LABEL "metadata.labels[\"" LABEL_POD_COUNT "\"]"

/* k8s.io/api/core/v1, DefaultSchedulerName. */
static const Str default_scheduler = STR("default-scheduler");

bool verdict_names_another(const Pod *pod) {
        return !str_is_empty(pod->scheduler_name) && !str_eq(pod->scheduler_name, default_scheduler) &&
               !str_eq(pod->scheduler_name, STR(VERDICT_SCHEDULER));
}

bool verdict_wants_scheduler(const Subject *s, bool gangs, Arena *arena) {
        const Pod *pod = &s->pod;
        Refusal refusal;
        Request request;

        if (!str_is_empty(pod->node_name) || s->is_mirror)
                return false;
        if (!str_is_empty(pod->scheduler_name) && !str_eq(pod->scheduler_name, default_scheduler))
                return false;
        return (gangs && pod->names_gang) ||
               request_from_pod(pod, arena, &request, &refusal) != REQUEST_E_NONE;
}

/* ---- which field it is ---- */

/* The container that the refusal names; its name is the same text as in the pod. NULL: none. */
static const PodContainer *container_of(const Pod *pod, const Refusal *r) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (!str_is_empty(r->container) && pod->containers[i].name.data == r->container.data)
                        return &pod->containers[i];
        return NULL;
}

static const char *resource_of(const Refusal *r) {
        switch (r->code) {
        case REFUSAL_CORE_STEP:
        case REFUSAL_CORE_WITHOUT_MEM:
                return RESOURCE_GPU_CORE;
        case REFUSAL_MALFORMED:
        case REFUSAL_RANGE:
                return r->core ? RESOURCE_GPU_CORE : RESOURCE_GPU_MEM;
        case REFUSAL_COUNT_UNEVEN:
                return RESOURCE_GPU_MEM;
        case REFUSAL_WHOLE:
                return RESOURCE_GPU;
        case REFUSAL_COUNT_MALFORMED:
        case REFUSAL_COUNT_WITHOUT_MEM:
                return RESOURCE_GPU_COUNT;
        default:
                return NULL; /* the container's limits together */
        }
}

static void say_field(const Pod *pod, const Refusal *r, const char *path, Buf *why) {
        const PodContainer *c = container_of(pod, r);
        const char *resource = resource_of(r);

        if (r->code == REFUSAL_CARD_LIST)
                buf_appendf(why, "%smetadata.annotations[\"" STR_FMT "\"]", path, STR_ARG(r->container));
        else if (c) {
                buf_appendf(why, "%sspec.%s[%u].resources.limits", path,
                            c->kind == CONTAINER_MAIN ? "containers" : "initContainers", c->index);
                if (resource)
                        buf_appendf(why, "[\"%s\"]", resource);
        } else if (r->code == REFUSAL_COUNT_MALFORMED || r->code == REFUSAL_COUNT_WITHOUT_MEM ||
                   r->code == REFUSAL_COUNT_WITH_CORE)
                buf_appendf(why, "%s" FIELD_LABEL, path);
        else
                buf_appendf(why, "%sspec.containers", path);
}

static int refuse_pod(const Pod *pod, const Refusal *r, const char *path, Buf *why) {
        say_field(pod, r, path, why);
        buf_append_str(why, STR(": "));
        refusal_format(r, why);
        return buf_result(why) < 0 ? buf_result(why) : VERDICT_E_REFUSED;
}

/* ---- what an update changes ---- */

static bool ask_eq(ResourceAsk a, ResourceAsk b) {
        return a.present == b.present && str_eq(a.text, b.text);
}

static bool chooses_the_same(const PodAnnotations *a, const PodAnnotations *b) {
#define SAME(member, ...) &&str_eq(a->member, b->member)
        return true POD_CARD_KEYS(SAME);
#undef SAME
}

/* Whether both ask for the same. For a bound pod the keys that choose cards do not matter. */
static bool asks_the_same(const Pod *a, const Pod *b) {
        if (str_is_empty(a->node_name) && !chooses_the_same(&a->annotations, &b->annotations))
                return false;
        if (a->n_containers != b->n_containers || !str_eq(a->gpu_count_label, b->gpu_count_label))
                return false;
        for (size_t i = 0; i < a->n_containers; i++) {
                const PodContainer *x = &a->containers[i], *y = &b->containers[i];

                if (x->kind != y->kind || x->index != y->index || !ask_eq(x->gpu_mem, y->gpu_mem) ||
                    !ask_eq(x->gpu_core, y->gpu_core) || !ask_eq(x->gpu_count, y->gpu_count) ||
                    !ask_eq(x->gpu, y->gpu) || !str_eq(x->other_limit, y->other_limit) ||
                    x->sets_visible_devices != y->sets_visible_devices ||
                    !str_eq(x->memory_variable, y->memory_variable) || x->cover.field != y->cover.field ||
                    !str_eq(x->cover.path, y->cover.path))
                        return false;
        }
        return true;
}

/* Refuses a new number of cards: a bound pod has its cards already. */
static int refuse_new_label(const Pod *old, const Pod *now, const char *path, Buf *why) {
        buf_appendf(why,
                    "%s" FIELD_LABEL ": label " LABEL_POD_COUNT " is \"" STR_FMT "\", must stay \"" STR_FMT
                    "\" since the pod is bound to node " STR_FMT,
                    path, STR_ARG(now->gpu_count_label), STR_ARG(old->gpu_count_label),
                    STR_ARG(old->node_name));
        return buf_result(why) < 0 ? buf_result(why) : VERDICT_E_REFUSED;
}

static int refuse_visible_devices(const PodContainer *c, const char *path, Buf *why) {
        buf_appendf(why,
                    "%sspec.%s[%u].env: container \"" STR_FMT "\": " ENVIRONMENT_VISIBLE_DEVICES
                    " is \"%.*s\", must not be set in a pod with a share of a GPU: the node agent sets it",
                    path, c->kind == CONTAINER_MAIN ? "containers" : "initContainers", c->index,
                    STR_ARG(c->name), STR_CUT(c->visible_devices, 64));
        return buf_result(why) < 0 ? buf_result(why) : VERDICT_E_REFUSED;
}

static int check_visible_devices(const Pod *pod, const char *path, Buf *why) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (pod->containers[i].sets_visible_devices)
                        return refuse_visible_devices(&pod->containers[i], path, why);
        return 0;
}

/* Refuses variables by which NVIDIA's container hook sets a limit of its own: on the driver's
 * account it would hide the limit of the pod. */
static int check_memory_variables(const Pod *pod, const char *path, Buf *why) {
        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *c = &pod->containers[i];

                if (str_is_empty(c->memory_variable))
                        continue;
                buf_appendf(why,
                            "%sspec.%s[%u].env: container \"" STR_FMT "\": " STR_FMT
                            " must not be set in a pod with a share of a GPU: its slice is its limit",
                            path, c->kind == CONTAINER_MAIN ? "containers" : "initContainers", c->index,
                            STR_ARG(c->name), STR_ARG(c->memory_variable));
                return buf_result(why) < 0 ? buf_result(why) : VERDICT_E_REFUSED;
        }
        return 0;
}

/* ---- what is mounted over the gate ---- */

static bool asks_memory(const Request *request, const PodContainer *c) {
        for (size_t i = 0; i < request->n_containers; i++) {
                const RequestContainer *asked = &request->containers[i];

                if (asked->kind == c->kind && asked->index == c->index)
                        return asked->mem > 0;
        }
        return false;
}

static int refuse_cover(const PodContainer *c, const char *path, Buf *why) {
        buf_appendf(why, "%sspec.%s[%u].", path, c->kind == CONTAINER_MAIN ? "containers" : "initContainers",
                    c->index);
        gate_cover_format_field(&c->cover, why);
        buf_appendf(why, ": container \"" STR_FMT "\": ", STR_ARG(c->name));
        gate_cover_format_rule(&c->cover, why);
        return buf_result(why) < 0 ? buf_result(why) : VERDICT_E_REFUSED;
}

/* Refuses mounts over the gate in any mode, because the node is not known at admission. */
static int check_covers(const Pod *pod, const Request *request, const char *path, Buf *why) {
        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *c = &pod->containers[i];

                if (c->cover.field != GATE_COVER_NONE && asks_memory(request, c))
                        return refuse_cover(c, path, why);
        }
        return 0;
}

static int check_pod(const Pod *pod, const char *path, const VerdictRules *rules, Arena *arena, Buf *why) {
        Refusal refusal = {0};
        Request request;
        int r = request_from_pod(pod, arena, &request, &refusal);

        if (r == REQUEST_E_NONE && !str_is_empty(pod->gpu_count_label)) {
                /* The scheduler ignores such a pod, but here its author wanted cards, and would get
                 * none. */
                refusal = (Refusal){.code = REFUSAL_COUNT_WITHOUT_MEM, .text = pod->gpu_count_label};
                return refuse_pod(pod, &refusal, path, why);
        }
        refusal.unit_mib = rules->unit_mib;
        if (r == REQUEST_E_REFUSED)
                return refuse_pod(pod, &refusal, path, why);
        if (r != 0)
                return r < 0 ? r : 0;
        r = check_covers(pod, &request, path, why);
        if (r == 0)
                r = check_memory_variables(pod, path, why);
        if (r == 0 && rules->runtime_devices)
                return check_visible_devices(pod, path, why);
        return r;
}

int verdict_on_subject(const Subject *s, const Subject *old, const char *path, const VerdictRules *rules,
                       Arena *arena, Buf *why) {
        Refusal refusal;
        Request request;

        if (s->terminating || s->is_mirror)
                return 0;
        if (old && asks_the_same(&old->pod, &s->pod))
                return 0;
        if (old && s->is_pod && !str_is_empty(old->pod.node_name) &&
            !str_eq(old->pod.gpu_count_label, s->pod.gpu_count_label) &&
            request_from_pod(&old->pod, arena, &request, &refusal) != REQUEST_E_NONE)
                return refuse_new_label(&old->pod, &s->pod, path, why);
        return check_pod(&s->pod, path, rules, arena, why);
}

/* ---- warnings ---- */

static int warn_of_cluster(const Request *request, const Ledger *ledger, Buf *out) {
        _cleanup_buf_ Buf text = BUF_NULL;

        if (request->choice)
                cluster_cards_warn_choice(ledger, request->choice, &text);
        if (text.len == 0)
                cluster_cards_warn(ledger, request, &text);
        return pod_warnings_add(&text, out);
}

static int warn_subject(const Subject *s, const Ledger *ledger, bool gangs, Arena *arena, Buf *out) {
        Refusal refusal;
        Request request;
        int r = request_from_pod(&s->pod, arena, &request, &refusal), q = 0;

        if (r == 0 && ledger)
                q = warn_of_cluster(&request, ledger, out);
        if (r < 0 || q < 0)
                return r < 0 ? r : q;
        r = pod_warnings(&s->pod, r == 0 ? &request : NULL, gangs, out);
        if (r == 0 && !str_is_empty(s->text))
                r = pod_key_names_check(s->text, arena, out);
        for (size_t i = 0; i < ELEMENTSOF(s->outer) && r == 0; i++)
                if (!str_is_empty(s->outer[i]) && !str_is_empty(s->text))
                        r = pod_key_names_check_outer(s->outer[i], s->text, s->path, arena, out);
        return r;
}

static bool has_line(Str text, Str line) {
        while (!str_is_empty(text))
                if (str_eq(str_split(&text, '\n'), line))
                        return true;
        return false;
}

int verdict_warn(const Subject *s, const Subject *old, const Ledger *ledger, bool gangs, Arena *arena,
                 Buf *out) {
        _cleanup_buf_ Buf before = BUF_NULL, now = BUF_NULL;
        Str rest;
        int r;

        if (s->terminating || s->is_mirror || !str_is_empty(s->pod.node_name))
                return 0;
        r = warn_subject(s, ledger, gangs, arena, &now);
        if (r == 0 && old)
                r = warn_subject(old, ledger, gangs, arena, &before);
        if (r < 0)
                return r;
        rest = buf_str(&now);
        while (!str_is_empty(rest)) {
                Str line = str_split(&rest, '\n');

                if (!has_line(buf_str(&before), line))
                        buf_appendf(out, STR_FMT "\n", STR_ARG(line));
        }
        return buf_result(out);
}
