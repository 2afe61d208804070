/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/review.h"

#include <stddef.h>

#include "base/base64.h"
#include "scheduler/webhook/gang_gate.h"
#include "scheduler/webhook/pod_warnings.h"
#include "scheduler/webhook/scale_down.h"
#include "scheduler/webhook/system_keys.h"
#include "scheduler/webhook/toleration.h"
#include "scheduler/webhook/verdict.h"
#include "share/cluster_cards.h"
#include "wire/annotation.h"
#include "wire/json_field.h"
#include "wire/json_write.h"
#include "wire/pod.h"

enum {
        UID_MAX = 256,
        MESSAGE_MAX = 2048, /* bytes of a refusal; a name or quantity in it may be as long as the body */
        CODE_FORBIDDEN = 403,
};

#define API_VERSION "admission.k8s.io/v1"
#define KIND        "AdmissionReview"

/* The administrators' group, which RBAC does not restrict (k8s.io/apiserver,
 * user.SystemPrivilegedGroup). */
#define GROUP_MASTERS "system:masters"
#define GROUP_NODES   "system:nodes" /* the kubelets' group (plugin/pkg/auth/nodeidentifier) */

typedef struct Review {
        Str api_version, kind;
        bool has_request;
        Str uid, operation, sub_resource;
        Str object_group, object_kind;
        Str user;
        bool is_master;         /* the user is in GROUP_MASTERS */
        bool is_node;           /* the user is in GROUP_NODES */
        Str object, old_object; /* texts; empty: null or absent */
} Review;

#define DECODER(name, fields)                                                                                \
        static void name(JsonReader *r, Arena *arena, void *ret) {                                           \
                json_field_decode(r, arena, fields, ELEMENTSOF(fields), ret);                                \
        }

static void read_object(JsonReader *r, Arena *arena, void *ret_str) {
        if (json_peek(r) == JSON_NULL)
                json_skip(r);
        else
                json_raw(r, ret_str);
}

static const JsonField kind_fields[] = {
        JSON_FIELD(Review, object_group, "group", json_field_str),
        JSON_FIELD(Review, object_kind, "kind", json_field_str),
};
DECODER(read_kind, kind_fields)

static void read_groups(JsonReader *r, Arena *arena, void *ret) {
        Review *review = ret;

        JSON_EACH_ELEMENT(r) {
                Str group = {NULL, 0};

                json_string(r, arena, &group);
                review->is_master |= str_eq(group, STR(GROUP_MASTERS));
                review->is_node |= str_eq(group, STR(GROUP_NODES));
        }
}

static const JsonField user_fields[] = {
        JSON_FIELD(Review, user, "username", json_field_str),
        JSON_NESTED("groups", read_groups),
};
DECODER(read_user, user_fields)

static const JsonField request_fields[] = {
        JSON_FIELD(Review, uid, "uid", json_field_str),
        JSON_NESTED("kind", read_kind),
        JSON_NESTED("userInfo", read_user),
        JSON_FIELD(Review, sub_resource, "subResource", json_field_str),
        JSON_FIELD(Review, operation, "operation", json_field_str),
        JSON_FIELD(Review, object, "object", read_object),
        JSON_FIELD(Review, old_object, "oldObject", read_object),
};

static void read_request(JsonReader *r, Arena *arena, void *ret) {
        Review *review = ret;

        review->has_request = json_peek(r) == JSON_OBJECT;
        json_field_decode(r, arena, request_fields, ELEMENTSOF(request_fields), ret);
}

static const JsonField review_fields[] = {
        JSON_FIELD(Review, api_version, "apiVersion", json_field_str),
        JSON_FIELD(Review, kind, "kind", json_field_str),
        JSON_NESTED("request", read_request),
};

static int decode_review(Str body, Arena *arena, Review *ret, Fault *fault) {
        Review v = {0};
        int r = json_field_read(body, arena, review_fields, ELEMENTSOF(review_fields), &v, fault);

        if (r != 0)
                return r < 0 ? r : fault_wrap(fault, REVIEW_E_MALFORMED, "the review cannot be read");
        if (!str_eq(v.kind, STR(KIND)) || !str_eq(v.api_version, STR(API_VERSION)))
                return fault_set(fault, REVIEW_E_MALFORMED,
                                 "the body is a \"%.*s\" of \"%.*s\", must be an " KIND " of " API_VERSION,
                                 STR_CUT(v.kind, 64), STR_CUT(v.api_version, 64));
        if (!v.has_request)
                return fault_set(fault, REVIEW_E_MALFORMED, "the review has no request");
        if (str_is_empty(v.uid) || v.uid.len > UID_MAX)
                return fault_set(fault, REVIEW_E_MALFORMED,
                                 "request.uid has %zu characters, must have 1 to %d", v.uid.len, UID_MAX);
        *ret = v;
        return 0;
}

/* ---- the answer ---- */

typedef struct Answer {
        ReviewVerdict verdict;
        Buf why;             /* the message, when refused */
        Buf warning;         /* when allowed; sentences, each with a newline behind it */
        bool sets_scheduler; /* when patched: schedulerName becomes ours */
        TolerationNeed toleration;
        ScaleDownNeed scale_down;
        uint32_t removed; /* when patched: bit set of the keys that are removed, by index in SystemKeys */
        SystemKeys keys;
        bool gates;     /* when patched: the pod gets the gate of a gang */
        bool has_gates; /* the pod has a list of gates */
} Answer;

static void write_refusal(JsonWriter *w, Buf *why) {
        Str message = buf_str(why);

        message.len = message.len < MESSAGE_MAX ? message.len : MESSAGE_MAX;
        json_write_object(w, "status");
        json_write_text(w, "status", "Failure");
        json_write_str(w, "message", message);
        json_write_text(w, "reason", "Forbidden");
        json_write_i64(w, "code", CODE_FORBIDDEN);
        json_write_object_end(w);
}

static void next_operation(Buf *patch) {
        if (patch->len > 1)
                buf_append_char(patch, ',');
}

/* The operation "add" replaces a member that exists (RFC 6902, 4.1), so it serves an absent
 * scheduler name and the default one alike. */
static int write_patch(JsonWriter *w, const Answer *a) {
        _cleanup_buf_ Buf patch = BUF_NULL, text = BUF_NULL;

        buf_append_char(&patch, '[');
        system_keys_write_removal(a->removed, &patch);
        if (a->sets_scheduler) {
                next_operation(&patch);
                buf_append_str(&patch, STR("{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":"
                                           "\"" VERDICT_SCHEDULER "\"}"));
        }
        if (a->toleration.wanted) {
                next_operation(&patch);
                toleration_write(&a->toleration, &patch);
        }
        if (a->gates) {
                next_operation(&patch);
                gang_gate_write(a->has_gates, &patch);
        }
        if (a->scale_down.wanted) {
                next_operation(&patch);
                scale_down_write(&a->scale_down, &patch);
        }
        buf_append_char(&patch, ']');
        base64_encode(&text, buf_str(&patch));
        json_write_text(w, "patchType", "JSONPatch");
        json_write_str(w, "patch", buf_str(&text));
        return buf_result(&patch) < 0 ? buf_result(&patch) : buf_result(&text);
}

/* kubectl prints each warning. The API server cuts one at 256 characters, and all of a response at
 * 4096. */
static int write_warnings(JsonWriter *w, const Answer *a) {
        _cleanup_buf_ Buf text = BUF_NULL;
        Str rest = buf_str(&a->warning);

        json_write_array(w, "warnings");
        while (!str_is_empty(rest))
                json_write_str(w, NULL, str_split(&rest, '\n'));
        for (size_t i = 0; i < SYSTEM_KEYS_COUNT; i++) {
                if ((a->removed >> i & 1) == 0)
                        continue;
                buf_clear(&text);
                system_keys_warn(&a->keys, i, &text);
                json_write_str(w, NULL, buf_str(&text));
        }
        json_write_array_end(w);
        return buf_result(&text);
}

static int write_answer(const Review *v, Answer *a, Buf *out) {
        JsonWriter w;
        int r = 0;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "apiVersion", API_VERSION);
        json_write_text(&w, "kind", KIND);
        json_write_object(&w, "response");
        json_write_str(&w, "uid", v->uid);
        json_write_bool(&w, "allowed", a->verdict != REVIEW_REFUSED);
        if (a->verdict == REVIEW_REFUSED)
                write_refusal(&w, &a->why);
        if (a->verdict == REVIEW_PATCHED)
                r = write_patch(&w, a);
        if (r == 0 && (a->removed != 0 || a->warning.len > 0))
                r = write_warnings(&w, a);
        json_write_object_end(&w);
        json_write_object_end(&w);
        return r < 0 ? r : buf_result(out);
}

/* ---- the decision ---- */

/* Results of read_subject(): 0, decoded; VERDICT_E_REFUSED, it names our resources but cannot be
 * read; SUBJECT_SKIP, no pod, or none with our resources; or -ENOMEM. */
enum { SUBJECT_SKIP = 100 };

static int read_subject(const SubjectKind *kind, Str json, Arena *arena, Subject *ret, Buf *why) {
        Fault fault = FAULT_NULL;
        int r;

        if (str_is_empty(json))
                return SUBJECT_SKIP;
        r = subject_decode(kind, json, arena, ret, &fault);
        if (r <= 0)
                return r;
        if (!subject_is_ours(json))
                return SUBJECT_SKIP;
        buf_append_str(why, str_from(fault.text));
        return VERDICT_E_REFUSED;
}

/* Finds the keys to remove, also in mirror pods. The kubelet knows its mirror by the annotation
 * kubernetes.io/config.mirror alone (pkg/kubelet/pod, IsMirrorPodOf), and the node agent writes the
 * allocation of a static pod itself. */
static int remove_keys(const Review *v, Arena *arena, Answer *a) {
        Fault fault = FAULT_NULL;
        int r;

        if (str_is_empty(v->object))
                return 0;
        r = system_keys_read(v->object, arena, &a->keys, &fault);
        if (r != 0)
                return r < 0 ? r : 0; /* the API server sends no such Pod */
        a->removed = system_keys_of_new(&a->keys);
        return 0;
}

/* Decides on the gate, which a pod gets if our scheduler places it. */
static int put_gate(const ReviewRules *rules, const Subject *s, Arena *arena, Answer *a) {
        PodGang gang;
        int r;

        if (!rules->has_gates || !*rules->has_gates || !s->pod.names_gang || s->is_mirror ||
            (!a->sets_scheduler && !str_eq(s->pod.scheduler_name, STR(VERDICT_SCHEDULER))))
                return 0;
        r = pod_gang_decode(s->text, arena, &gang, NULL);
        if (r != 0)
                return r < 0 ? r : 0;
        a->gates = gang_gate_is_wanted(&gang, &s->pod);
        a->has_gates = gang.gated_else;
        return 0;
}

static int read_additions(const Subject *s, const Review *v, const ReviewRules *rules, Arena *arena,
                          Answer *a) {
        int r = toleration_read(s, v->object, arena, &a->toleration);

        if (r < 0 || !rules->keeps_nodes || !str_is_empty(s->pod.node_name))
                return r;
        return scale_down_read(s, v->object, arena, &a->scale_down);
}

static int mutate_object(const Review *v, const SubjectKind *kind, const ReviewRules *rules, Arena *arena,
                         Answer *a) {
        _cleanup_buf_ Buf unsaid = BUF_NULL;
        Subject s;
        int r;

        if (!subject_kind_is_pod(kind) || !str_eq(v->operation, STR("CREATE")) ||
            !str_is_empty(v->sub_resource))
                return 0;
        r = remove_keys(v, arena, a);
        if (r < 0)
                return r;
        /* Only the validating task refuses. */
        r = read_subject(kind, v->object, arena, &s, &unsaid);
        if (r == 0) {
                a->sets_scheduler = verdict_wants_scheduler(&s, rules->has_gates != NULL, arena);
                r = read_additions(&s, v, rules, arena, a);
                if (r == 0)
                        r = put_gate(rules, &s, arena, a);
        }
        if (r < 0)
                return r;
        if (a->sets_scheduler || a->toleration.wanted || a->scale_down.wanted || a->removed != 0 || a->gates)
                a->verdict = REVIEW_PATCHED;
        return 0;
}

static bool is_listed(Str list, Str name) {
        while (!str_is_empty(list))
                if (str_eq(str_trim(str_split(&list, ',')), name))
                        return true;
        return false;
}

/* Whether the user is one of our service accounts, "system:serviceaccount:NAMESPACE:NAME"
 * (apiserver/pkg/authentication/serviceaccount, MakeUsername). */
static bool is_own_account(Str user, Str namespace_) {
        if (!str_eq(str_split(&user, ':'), STR("system")) ||
            !str_eq(str_split(&user, ':'), STR("serviceaccount")) ||
            !str_eq(str_split(&user, ':'), str_is_empty(namespace_) ? STR("kube-system") : namespace_))
                return false;
        return str_eq(user, STR("aliquot-scheduler")) || str_eq(user, STR("aliquot-node"));
}

static bool is_system_account(const Review *v, const ReviewRules *rules) {
        return v->is_master || is_own_account(v->user, rules->namespace_) ||
               is_listed(rules->accounts, v->user);
}

/* Refuses changes of system keys by other users. Also for pods/status, by which annotations can be
 * changed (pkg/registry/core/pod, podStatusStrategy). */
static int validate_system_keys(const Review *v, const ReviewRules *rules, Arena *arena, Answer *a) {
        Fault fault = FAULT_NULL;
        SystemKeys old, now;
        uint32_t changed;
        int r;

        if (str_is_empty(v->object) || str_is_empty(v->old_object) || is_system_account(v, rules))
                return 0;
        r = system_keys_read(v->object, arena, &now, &fault);
        if (r == 0)
                r = system_keys_read(v->old_object, arena, &old, &fault);
        if (r != 0)
                return r < 0 ? r : 0;
        changed = system_keys_changed(&old, &now);
        if (changed == 0)
                return 0;
        system_keys_refuse(&old, &now, changed, v->user, &a->why);
        a->verdict = REVIEW_REFUSED;
        return 0;
}

/* Whether a user other than a kubelet creates a mirror pod. It names the UID by which a node knows
 * a static pod, and a user could name the UID of any pod. */
static bool is_forged_mirror(const Review *v, const ReviewRules *rules, const Subject *s, bool update,
                             Buf *ret_why) {
        if (update || !s->is_mirror || v->is_node || is_system_account(v, rules))
                return false;
        buf_append_str(ret_why,
                       STR("metadata.annotations[\"" ANNOTATION_MIRROR
                           "\"]: marks the mirror pod of a static pod; only kubelets create such pods"));
        return true;
}

/* Checks what a new pod says of its gang. Updates are not checked: they can only remove gates, and
 * the leader judges the labels of waiting pods. Where gangs are off, what would be refused is
 * warned of. */
static int validate_gang(const Subject *s, const char *path, bool has_gangs, Arena *arena, Answer *a) {
        _cleanup_buf_ Buf warning = BUF_NULL;
        PodGang gang;
        int r;

        if (str_is_empty(s->text))
                return 0;
        r = pod_gang_decode(s->text, arena, &gang, NULL);
        if (r != 0)
                return r < 0 ? r : 0;
        if (!s->pod.names_gang)
                gang.name = STR(""); /* it comes from a job's label, which counts only for whole cards */
        r = gang_gate_check(&gang, &s->pod, path, has_gangs ? &a->why : &warning);
        if (r == GANG_GATE_E_REFUSED && !has_gangs)
                return pod_warnings_add(&warning, &a->warning);
        return r != 0 || !has_gangs ? r : gang_gate_warn(&gang, &a->warning);
}

static int validate_request(const Review *v, const SubjectKind *kind, const ReviewRules *rules, Arena *arena,
                            Answer *a) {
        bool update = str_eq(v->operation, STR("UPDATE"));
        VerdictRules verdict = {.runtime_devices = rules->runtime_devices};
        Subject s, old;
        int r;

        if (rules->ledger)
                verdict.unit_mib = cluster_cards_of(rules->ledger, NULL).unit_mib;

        r = read_subject(kind, v->object, arena, &s, &a->why);
        if (r == 0) {
                _cleanup_buf_ Buf unsaid = BUF_NULL;
                int q = update ? read_subject(kind, v->old_object, arena, &old, &unsaid) : SUBJECT_SKIP;

                if (q < 0)
                        return q;
                if (is_forged_mirror(v, rules, &s, update, &a->why))
                        r = buf_result(&a->why) < 0 ? buf_result(&a->why) : VERDICT_E_REFUSED;
                else
                        r = verdict_on_subject(&s, q == 0 ? &old : NULL, subject_kind_path(kind), &verdict,
                                               arena, &a->why);
                if (r == 0 && !update)
                        r = validate_gang(&s, subject_kind_path(kind), rules->has_gates != NULL, arena, a);
                if (r == 0)
                        r = verdict_warn(&s, q == 0 ? &old : NULL, rules->ledger, rules->has_gates != NULL,
                                         arena, &a->warning);
        }
        if (r == VERDICT_E_REFUSED)
                a->verdict = REVIEW_REFUSED;
        return r < 0 ? r : 0;
}

static int validate_object(const Review *v, const SubjectKind *kind, const ReviewRules *rules, Arena *arena,
                           Answer *a) {
        bool update = str_eq(v->operation, STR("UPDATE")), main_resource = str_is_empty(v->sub_resource);
        int r = 0;

        if (!update && !str_eq(v->operation, STR("CREATE")))
                return 0;
        if (update && subject_kind_is_pod(kind) && (main_resource || str_eq(v->sub_resource, STR("status"))))
                r = validate_system_keys(v, rules, arena, a);
        if (r != 0 || a->verdict == REVIEW_REFUSED || !main_resource)
                return r;
        return validate_request(v, kind, rules, arena, a);
}

static int decide_review(ReviewTask task, const ReviewRules *rules, const Review *v, Arena *arena,
                         Answer *a) {
        const SubjectKind *kind = subject_kind_find(v->object_group, v->object_kind);

        if (!kind)
                return 0;
        return task == REVIEW_MUTATE ? mutate_object(v, kind, rules, arena, a)
                                     : validate_object(v, kind, rules, arena, a);
}

int review_answer(ReviewTask task, const ReviewRules *rules, Str body, Buf *out, ReviewVerdict *ret_verdict,
                  Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Answer a = {.verdict = REVIEW_ALLOWED};
        size_t begin = out->len;
        Review v = {0};
        int r;

        r = decode_review(body, &arena, &v, fault);
        if (r != 0)
                return r;
        r = decide_review(task, rules, &v, &arena, &a);
        if (r == 0)
                r = buf_result(&a.why);
        if (r == 0)
                r = buf_result(&a.warning);
        if (r == 0)
                r = write_answer(&v, &a, out);
        buf_done(&a.why);
        buf_done(&a.warning);
        if (r < 0) {
                out->len = begin;
                return r;
        }
        *ret_verdict = a.verdict;
        return 0;
}
