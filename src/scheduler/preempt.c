/* SPDX-License-Identifier: Apache-2.0 */

/* Which of these nodes would take the pod once the victims that kube-scheduler has in mind were gone. It sends the
 * victims by UID (nodeCacheCapable) or whole, and wants them back by UID; nodes that are left out are not considered. */

#include <errno.h>

#include "scheduler/args.h"
#include "scheduler/verbs.h"
#include "share/placement.h"
#include "wire/json_table.h"
#include "wire/json_write.h"

enum { VICTIMS_MAX = 4096 }; /* more than a node runs */

typedef struct Victims {
        Str *uids;
        size_t n, room;
        int64_t violations; /* NumPDBViolations */
} Victims;

typedef struct Preempt {
        const VerbContext *context;
        bool ours, final;
        Request request;
        JsonWriter writer;
} Preempt;

/* ---- reading ---- */

static void victim_add(JsonReader *r, Arena *arena, Victims *v, Str uid) {
        if (v->n == VICTIMS_MAX) {
                json_fault(r, "more victims than a node runs");
                return;
        }
        if (v->n == v->room) {
                size_t room = v->room > 0 ? v->room * 2 : 16;
                Str *uids = arena_new(arena, Str, room);

                if (!uids) {
                        json_no_memory(r);
                        return;
                }
                if (v->n > 0)
                        memcpy(uids, v->uids, v->n * sizeof *uids);
                v->uids = uids;
                v->room = room;
        }
        v->uids[v->n++] = uid;
}

static const JsonField uid_fields[] = {{STR("uid"), json_field_str, 0}};

static void read_metadata(JsonReader *r, Arena *arena, void *ret_str) {
        json_decode(r, arena, uid_fields, ELEMENTSOF(uid_fields), ret_str);
}

/* A MetaPod {UID} or a v1.Pod: one has no metadata, the other has its UID there alone. */
static void read_victim(JsonReader *r, Arena *arena, Victims *v) {
        Str uid = {NULL, 0}, key;

        if (!json_object_begin(r))
                return;
        while (json_object_next(r, &key)) {
                if (args_key_is(key, "UID"))
                        json_string(r, arena, &uid);
                else if (json_key_is(key, "metadata"))
                        read_metadata(r, arena, &uid);
                else
                        json_skip(r);
        }
        if (!json_failed(r))
                victim_add(r, arena, v, uid);
}

static void read_victims(JsonReader *r, Arena *arena, Victims *v) {
        Str key;

        if (!json_object_begin(r))
                return;
        while (json_object_next(r, &key)) {
                if (args_key_is(key, "NumPDBViolations"))
                        json_i64(r, &v->violations);
                else if (!args_key_is(key, "Pods"))
                        json_skip(r);
                else if (json_array_begin(r))
                        while (json_array_next(r))
                                read_victim(r, arena, v);
        }
}

/* ---- answering ---- */

static int compare_pointers(const void *a, const void *b) {
        uintptr_t x = (uintptr_t) * (const Grant *const *) a, y = (uintptr_t) * (const Grant *const *) b;

        return (x > y) - (x < y);
}

/* The victims' grants on this node, each once: *ret_n of them. Victims that hold nothing free nothing. */
static const Grant **grants_of(const Preempt *p, const Victims *v, const LedgerNode *node, size_t *ret_n) {
        const Grant **grants = (const Grant **) arena_alloc(p->context->arena, v->n + 1, sizeof(Grant *));
        size_t n = 0, kept = 0;

        if (!grants)
                return NULL;
        for (size_t i = 0; i < v->n; i++) {
                const ViewPod *pod = view_pod_find(p->context->view, v->uids[i]);

                if (pod && pod->grant && grant_node(pod->grant) == node)
                        grants[n++] = pod->grant;
        }
        qsort(grants, n, sizeof(Grant *), compare_pointers);
        for (size_t i = 0; i < n; i++)
                if (i == 0 || grants[i] != grants[i - 1])
                        grants[kept++] = grants[i];
        *ret_n = kept;
        return grants;
}

/* 0: it would fit; PLACEMENT_E_REFUSED or -ENOMEM. */
static int would_fit(const Preempt *p, Str name, const Victims *v) {
        DirectoryNode *node = directory_find(p->context->view->directory, name);
        const Grant **gone;
        Refusal refusal;
        size_t n;

        if (!p->ours)
                return 0;
        if (p->final || !node)
                return PLACEMENT_E_REFUSED;
        gone = grants_of(p, v, node->ledger_node, &n);
        if (!gone)
                return -ENOMEM;
        return placement_check_without(node->ledger_node, &p->request, gone, n, &refusal);
}

static void write_victims(Preempt *p, Str name, const Victims *v) {
        JsonWriter *w = &p->writer;

        json_write_key(w, name);
        json_write_object(w, NULL);
        json_write_array(w, "Pods");
        for (size_t i = 0; i < v->n; i++) {
                json_write_object(w, NULL);
                json_write_str(w, "UID", v->uids[i]);
                json_write_object_end(w);
        }
        json_write_array_end(w);
        json_write_i64(w, "NumPDBViolations", v->violations);
        json_write_object_end(w);
}

/* The key as text: with its quotes around it, it is a JSON string like any other. */
static Str name_of(Str raw_key, Arena *arena) {
        Str name = raw_key;
        JsonReader r;

        if (str_is_empty(raw_key) || !memchr(raw_key.data, '\\', raw_key.len))
                return name;
        json_init(&r, (Str){raw_key.data - 1, raw_key.len + 2});
        json_string(&r, arena, &name);
        return name;
}

static int read_nodes(Preempt *p, Str text, Fault *fault) {
        Arena *arena = p->context->arena;
        JsonReader r;
        Str raw_key;
        int k = 0;

        json_init(&r, text);
        if (json_object_begin(&r))
                while (k >= 0 && json_object_next(&r, &raw_key)) {
                        Str name = name_of(raw_key, arena);
                        Victims v = {0};

                        read_victims(&r, arena, &v);
                        if (json_failed(&r))
                                continue;
                        k = would_fit(p, name, &v);
                        if (k == 0)
                                write_victims(p, name, &v);
                }
        if (k < 0)
                return k;
        k = json_finish(&r, fault);
        return k > 0 ? fault_wrap(fault, ARGS_E_MALFORMED, "victims") : k;
}

static int take_pod(Preempt *p, Str text, Fault *fault) {
        Refusal refusal;
        Pod pod;
        int r;

        if (str_is_empty(text))
                return fault_set(fault, ARGS_E_MALFORMED, "Pod is missing");
        r = pod_decode(text, p->context->arena, &pod, fault);
        if (r != 0)
                return r > 0 ? fault_wrap(fault, ARGS_E_MALFORMED, "Pod") : r;
        r = request_from_pod(&pod, p->context->arena, &p->request, &refusal);
        p->ours = r != REQUEST_E_NONE;
        p->final = r == REQUEST_E_REFUSED;
        return r < 0 ? r : 0;
}

static void take_member(JsonReader *r, Str *ret) {
        Str raw = {NULL, 0};
        bool null = json_peek(r) == JSON_NULL;

        json_raw(r, &raw);
        if (!null)
                *ret = raw;
}

static int answer(Preempt *p, Str body, Fault *fault) {
        Str pod = {NULL, 0}, victims = {NULL, 0}, meta = {NULL, 0}, key;
        JsonReader r;
        int k;

        json_init(&r, body);
        if (json_peek(&r) != JSON_OBJECT)
                json_fault(&r, "ExtenderPreemptionArgs must be an object");
        else if (json_object_begin(&r))
                while (json_object_next(&r, &key)) {
                        if (args_key_is(key, "Pod"))
                                take_member(&r, &pod);
                        else if (args_key_is(key, "NodeNameToVictims"))
                                take_member(&r, &victims);
                        else if (args_key_is(key, "NodeNameToMetaVictims"))
                                take_member(&r, &meta);
                        else
                                json_skip(&r);
                }
        k = json_finish(&r, fault);
        if (k != 0)
                return k > 0 ? ARGS_E_MALFORMED : k;
        k = take_pod(p, pod, fault);
        if (k != 0)
                return k;
        json_write_object(&p->writer, NULL);
        json_write_object(&p->writer, "NodeNameToMetaVictims");
        if (!str_is_empty(meta) || !str_is_empty(victims))
                k = read_nodes(p, str_is_empty(meta) ? victims : meta, fault);
        if (k != 0)
                return k;
        json_write_object_end(&p->writer);
        json_write_object_end(&p->writer);
        return 0;
}

unsigned preempt_answer(const VerbContext *c, Str body, Buf *out) {
        Preempt p = {.context = c};
        Fault fault = FAULT_NULL;
        int r;

        json_write_init(&p.writer, out);
        r = answer(&p, body, &fault);
        if (r == 0)
                r = buf_result(out);
        return r == 0 ? 200 : verb_failed(r, &fault, out);
}
