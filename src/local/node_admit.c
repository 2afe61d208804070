/* SPDX-License-Identifier: Apache-2.0 */
#include "local/node_admit.h"

#include <errno.h>

#include "base/clock.h"
#include "local/predicates.h"
#include "local/sync_call.h"
#include "share/placement.h"
#include "share/pod_grant.h"
#include "share/pod_grant_write.h"
#include "share/refusal_format.h"
#include "wire/annotation.h"
#include "wire/node.h"
#include "wire/pod.h"

enum { PATH_MAX_TEXT = 640 };

/* Writes the API path of a pod. The API server has validated the names, so nothing needs to be
 * escaped. */
static void pod_path(const char *namespace_, const char *name, char ret[static PATH_MAX_TEXT]) {
        (void) snprintf(ret, PATH_MAX_TEXT, "/api/v1/namespaces/%s/pods/%s", namespace_, name);
}

/* GETs an object. A refusal by the API server becomes -EIO, because a node cannot correct its
 * request. */
static int get_object(KubeClient *api, const char *path, json_t **ret, Fault *fault) {
        int r = sync_call_get(api, path, ret, fault);

        return r > 0 ? -EIO : r;
}

static int patch_object(KubeClient *api, const char *path, const json_t *what, Fault *fault) {
        int r = sync_call_patch(api, path, what, fault);

        return r > 0 ? -EIO : r;
}

static int patch_status(KubeClient *api, const char *path, const json_t *what, Fault *fault) {
        char subresource[PATH_MAX_TEXT + 8];

        (void) snprintf(subresource, sizeof subresource, "%s/status", path);
        return patch_object(api, subresource, what, fault);
}

/* --- placing a pod that no scheduler placed --------------------------------------------------- */

static bool is_pending(const json_t *pod) {
        const char *phase = tree_text(pod, "status", "phase", NULL);

        return !phase || strcmp(phase, "Pending") == 0;
}

/* Charges the ledger with what the node's pods hold, by their annotations. */
static int charge_pods(Ledger *ledger, const json_t *pods, bool with_pending, Arena *arena) {
        const json_t *item;
        size_t i;

        json_array_foreach(pods, i, item) {
                _cleanup_free_ char *text = json_dumps(item, JSON_COMPACT);
                Str copy = text ? arena_str(arena, str_from(text)) : (Str){NULL, 0};
                Grant *grant; /* owned by the ledger */
                GrantSpec spec;
                Pod pod;
                int r;

                if (!copy.data)
                        return -ENOMEM;
                if (is_pending(item) && !with_pending)
                        continue;
                if (pod_decode(copy, arena, &pod, NULL) != 0)
                        continue;
                r = pod_grant_spec(&pod, arena, &spec, NULL);
                if (r == 0 && spec.n_slices > 0)
                        r = grant_new(ledger, &spec, &grant);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int choose_cards(const LedgerNode *node, const Pod *pod, Arena *arena, Buf *ret_annotations,
                        Buf *reason) {
        Request request;
        Placement placement;
        Refusal refusal;
        int r;

        r = request_from_pod(pod, arena, &request, &refusal);
        if (r == REQUEST_E_NONE)
                return 0;
        if (r == 0)
                r = placement_choose_cards(node, &request, arena, &placement, &refusal);
        if (r < 0)
                return r;
        if (r > 0) {
                refusal_format(&refusal, reason);
                return NODE_ADMIT_E_REFUSED;
        }
        pod_grant_write(placement.slices, placement.n_slices, node, true, clock_realtime_nsec(),
                        pod_system_keys(pod), ret_annotations);
        return buf_result(ret_annotations);
}

static const LedgerCard *card_of(const LedgerNode *node, uint32_t index) {
        const LedgerCard *cards = ledger_node_cards(node);

        for (size_t i = 0; i < ledger_node_n_cards(node); i++)
                if (cards[i].index == index && cards[i].units > 0)
                        return &cards[i];
        return NULL;
}

/* Checks annotations that came with the pod: they are used if the cards exist and have room beside
 * the running pods. */
static int check_annotations(LedgerNode *node, Ledger *ledger, const GrantSpec *spec, Buf *reason) {
        Grant *grant; /* owned by the ledger */
        int r;

        for (size_t i = 0; i < spec->n_slices; i++) {
                if (card_of(node, spec->slices[i].card))
                        continue;
                buf_appendf(reason,
                            "the pod's annotations give it gpu%u, a card that node \"" STR_FMT "\" has not",
                            spec->slices[i].card, STR_ARG(spec->node));
                return NODE_ADMIT_E_REFUSED;
        }
        r = grant_new(ledger, spec, &grant);
        for (size_t i = 0; r == 0 && i < spec->n_slices; i++) {
                const LedgerCard *card = card_of(node, spec->slices[i].card);
                uint32_t own = grant_mem_on_card(grant, card->index);

                if (card->used <= card->units)
                        continue;
                buf_appendf(reason,
                            "the pod's annotations give it %u of gpu-mem on gpu%u of node \"" STR_FMT
                            "\", where pods that run hold %llu of %u",
                            own, card->index, STR_ARG(spec->node), (unsigned long long) (card->used - own),
                            card->units);
                return NODE_ADMIT_E_REFUSED;
        }
        return r;
}

static int place_or_check(Ledger *ledger, LedgerNode *node, const Pod *pod, const json_t *pods, Arena *arena,
                          Buf *ret_annotations, Buf *reason) {
        GrantSpec spec;
        int r;

        r = pod_grant_spec(pod, arena, &spec, NULL);
        if (r < 0)
                return r;
        if (r == 0 && spec.n_slices > 0 && spec.pending_mem == 0) {
                r = charge_pods(ledger, pods, false, arena);
                return r < 0 ? r : check_annotations(node, ledger, &spec, reason);
        }
        r = charge_pods(ledger, pods, true, arena);
        return r < 0 ? r : choose_cards(node, pod, arena, ret_annotations, reason);
}

static int place_on(const json_t *node_tree, const json_t *pods, const json_t *pod_tree, Buf *ret_annotations,
                    Buf *reason, Fault *fault) {
        _cleanup_free_ char *node_text = json_dumps(node_tree, JSON_COMPACT),
                            *pod_text = json_dumps(pod_tree, JSON_COMPACT);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_(ledger_freep) Ledger *ledger = NULL;
        LedgerNode *ledger_node;
        Node node;
        Pod pod;
        int r;

        if (!node_text || !pod_text)
                return -ENOMEM;
        r = ledger_new(&ledger);
        if (r == 0)
                r = node_decode(str_from(node_text), &arena, &node, fault);
        if (r == 0)
                r = pod_decode(str_from(pod_text), &arena, &pod, fault);
        if (r != 0) {
                buf_append_str(reason, str_from(fault ? fault->text : ""));
                return r < 0 ? r : NODE_ADMIT_E_REFUSED;
        }
        node.annotations.change_pending = STR(""); /* the pod is already bound */
        /* the scheduler reports keys that do not decode */
        r = ledger_node_set(ledger, &node, NULL);
        if (r < 0)
                return r;
        ledger_node = ledger_node_find(ledger, node.meta.name);
        return ledger_node ? place_or_check(ledger, ledger_node, &pod, pods, &arena, ret_annotations, reason)
                           : 0;
}

/* Places the pod on its own node and adds the annotations to `annotations`, unless the pod brought
 * its own. */
static int place_pod(KubeClient *api, const json_t *pod, json_t *annotations, Buf *reason, Fault *fault) {
        const char *node_name = tree_text(pod, "spec", "nodeName", NULL);
        _cleanup_json_ json_t *node = NULL, *pods = NULL, *given = NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        char path[PATH_MAX_TEXT];
        int r;

        (void) snprintf(path, sizeof path, "/api/v1/nodes/%s", node_name);
        r = get_object(api, path, &node, fault);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof path, "/api/v1/pods?fieldSelector=spec.nodeName%%3D%s", node_name);
        r = get_object(api, path, &pods, fault);
        if (r < 0)
                return r;
        r = place_on(node, json_object_get(pods, "items"), pod, &text, reason, fault);
        if (r != 0 || text.len == 0)
                return r;
        given = json_loadb(text.data, text.len, 0, NULL);
        return given && json_object_update(annotations, given) == 0 ? 0 : -ENOMEM;
}

/* --- admission -------------------------------------------------------------------------------- */

static bool has_annotation(const json_t *pod, const char *key) {
        return tree_text(pod, "metadata", "annotations", key, NULL) != NULL;
}

static int assign_cards(KubeClient *api, const char *path, const json_t *pod, bool scheduled, Buf *reason,
                        Fault *fault) {
        _cleanup_json_ json_t *patch_tree = json_object();
        json_t *annotations = patch_tree ? tree_make(patch_tree, "metadata", "annotations", NULL) : NULL;
        int r = 0;

        if (!annotations)
                return -ENOMEM;
        if (!scheduled ||
            (!has_annotation(pod, ANNOTATION_ALLOCATION) && !has_annotation(pod, ANNOTATION_OLD_IDX)))
                r = place_pod(api, pod, annotations, reason, fault);
        if (r == 0 && json_object_size(annotations) == 0) {
                if (has_annotation(pod, ANNOTATION_ALLOCATION))
                        r = tree_set_text(annotations, ANNOTATION_ASSIGNED, "true");
                if (r == 0 && has_annotation(pod, ANNOTATION_OLD_IDX))
                        r = tree_set_text(annotations, ANNOTATION_OLD_ASSIGNED, "true");
        }
        return r != 0 ? r : patch_object(api, path, patch_tree, fault);
}

static json_t *container_statuses(const json_t *containers, const char *now) {
        json_t *statuses = json_array();
        const json_t *container;
        size_t i;

        json_array_foreach(containers, i, container) {
                const char *image = tree_text(container, "image", NULL);

                (void) json_array_append_new(statuses, json_pack("{s:s, s:b, s:b, s:i, s:s, s:{s:{s:s}}}",
                                                                 "name", tree_text(container, "name", NULL),
                                                                 "ready", 1, "started", 1, "restartCount", 0,
                                                                 "image", image ? image : "", "state",
                                                                 "running", "startedAt", now));
        }
        return statuses;
}

static int set_running(KubeClient *api, const char *path, const json_t *pod, Fault *fault) {
        _cleanup_json_ json_t *patch_tree = NULL;
        time_t seconds = (time_t) (clock_realtime_nsec() / UINT64_C(1000000000));
        char now[32];
        struct tm tm;

        (void) gmtime_r(&seconds, &tm);
        (void) strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &tm);
        patch_tree = json_pack("{s:{s:s, s:s, s:[{s:s, s:s}, {s:s, s:s}], s:o}}", "status", "phase",
                               "Running", "startTime", now, "conditions", "type", "PodScheduled", "status",
                               "True", "type", "Ready", "status", "True", "containerStatuses",
                               container_statuses(tree_at(pod, "spec", "containers", NULL), now));
        return patch_tree ? patch_status(api, path, patch_tree, fault) : -ENOMEM;
}

static int set_failed(KubeClient *api, const char *path, const Buf *reason, Fault *fault) {
        _cleanup_json_ json_t *patch_tree = json_pack("{s:{s:s, s:s, s:s%}}", "status", "phase", "Failed",
                                                      "reason", "UnexpectedAdmissionError", "message",
                                                      reason->len > 0 ? reason->data : "", reason->len);

        return patch_tree ? patch_status(api, path, patch_tree, fault) : -ENOMEM;
}

int node_admit(KubeClient *api, const char *namespace_, const char *name, bool scheduled, Buf *reason,
               Fault *fault) {
        _cleanup_json_ json_t *pod = NULL;
        char path[PATH_MAX_TEXT];
        int r;

        pod_path(namespace_, name, path);
        r = get_object(api, path, &pod, fault);
        if (r < 0)
                return r;
        if (!is_pending(pod))
                return 0;
        if (predicates_is_managed(pod)) {
                r = assign_cards(api, path, pod, scheduled, reason, fault);
                if (r < 0)
                        return r;
                if (r > 0) {
                        int failed = set_failed(api, path, reason, fault);

                        return failed < 0 ? failed : r;
                }
        }
        return set_running(api, path, pod, fault);
}
