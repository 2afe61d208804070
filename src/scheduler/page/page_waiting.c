/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page/page_waiting.h"

#include <errno.h>

#include "share/refusal_reason.h"
#include "wire/json_write.h"

enum { REASONS_SHOWN = 3 };

typedef struct Reason {
        uint32_t nodes;
        RefusalReason text;
} Reason;

typedef struct PageWaitingPod {
        UT_hash_handle hh;
        uint64_t judged; /* PageWaiting.order when it was last judged; 0: never */
        uint32_t fit, of;
        Reason reasons[REASONS_SHOWN]; /* those of the most nodes first; nodes 0: no reason */
        Str uid, namespace_, name, created;
        char text[];
} PageWaitingPod;

static void drop_pod(PageWaiting *w, PageWaitingPod *pod) {
        HASH_DELETE(hh, w->pods, pod);
        free(pod);
}

void page_waiting_done(PageWaiting *w) {
        while (w->pods)
                drop_pod(w, w->pods);
}

/* The view's entry of a pod that is not bound as far as the watch says; NULL: no such pod. */
static const ViewPod *is_known(const View *v, Str uid) {
        const ViewPod *pod = view_pod_find(v, uid);

        return pod && pod->request ? pod : NULL;
}

static const ViewPod *waiting_pod(const View *v, Str uid) {
        const ViewPod *pod = is_known(v, uid);

        return pod && !pod->grant ? pod : NULL;
}

int page_waiting_pod(PageWaiting *w, const View *v, const Pod *object) {
        const ObjectMeta *meta = &object->meta;
        PageWaitingPod *pod;
        char *at;

        HASH_FIND(hh, w->pods, meta->uid.data, meta->uid.len, pod);
        if (!is_known(v, meta->uid)) {
                if (pod)
                        drop_pod(w, pod);
                return 0;
        }
        if (pod)
                return 0;
        pod = calloc(1, sizeof *pod + meta->uid.len + meta->namespace_.len + meta->name.len +
                                meta->creation_timestamp.len);
        if (!pod)
                return -ENOMEM;
        at = pod->text;
        pod->uid = str_put(&at, meta->uid);
        pod->namespace_ = str_put(&at, meta->namespace_);
        pod->name = str_put(&at, meta->name);
        pod->created = str_put(&at, meta->creation_timestamp);
        HASH_ADD_KEYPTR(hh, w->pods, pod->uid.data, pod->uid.len, pod);
        if (hash_added(pod, hh))
                return 0;
        free(pod);
        return -ENOMEM;
}

void page_waiting_sweep(PageWaiting *w, const View *v) {
        PageWaitingPod *pod, *next;

        HASH_ITER(hh, w->pods, pod, next)
        if (!is_known(v, pod->uid))
                drop_pod(w, pod);
}

void page_waiting_begin(PageWaiting *w, const View *v) {
        page_waiting_sweep(w, v);
        w->n_waiting = 0;
        for (const PageWaitingPod *pod = w->pods; pod; pod = pod->hh.next)
                w->n_waiting += waiting_pod(v, pod->uid) != NULL;
        w->n_shown = w->n_waiting < PAGE_WAITING_SHOWN ? w->n_waiting : PAGE_WAITING_SHOWN;
        w->left = w->n_shown < PAGE_WAITING_JUDGED ? (unsigned) w->n_shown : PAGE_WAITING_JUDGED;
}

/* ---- why ---- */

typedef struct Tally {
        uint32_t nodes[REFUSAL_MAX_];
        Refusal first[REFUSAL_MAX_]; /* for one pod, a code has the same amounts on every node */
} Tally;

static void keep_reasons(PageWaitingPod *pod, Tally *t) {
        for (size_t k = 0; k < REASONS_SHOWN; k++) {
                unsigned most = REFUSAL_NONE;

                for (unsigned code = 1; code < REFUSAL_MAX_; code++)
                        if (t->nodes[code] > t->nodes[most])
                                most = code;
                pod->reasons[k].nodes = t->nodes[most];
                if (t->nodes[most] > 0)
                        refusal_reason(&t->first[most], &pod->reasons[k].text);
                t->nodes[most] = 0;
        }
}

/* Counts nodes and reasons as verb_why() does, but not what each card lacks. */
static void judge_pod(PageWaitingPod *pod, const View *v, const Request *request) {
        HoldAsker asker = {.uid = pod->uid, .priority = view_pod_priority(v, pod->uid)};
        Tally tally = {0};

        pod->fit = pod->of = 0;
        for (size_t i = 0; i < directory_size(v->directory); i++) {
                const LedgerNode *node = directory_at(v->directory, i)->ledger_node;
                Refusal refusal;
                int r;

                if (ledger_node_n_cards(node) == 0 && ledger_node_mode(node) == SHARE_MODE_NONE)
                        continue;
                r = hold_check(&v->hold, &asker, node, request, &refusal);
                if (r < 0)
                        continue; /* out of memory: a later round judges the pod again */
                pod->of++;
                pod->fit += r == 0;
                if (r > 0 && tally.nodes[refusal.code]++ == 0)
                        tally.first[refusal.code] = refusal;
        }
        keep_reasons(pod, &tally);
}

bool page_waiting_step(PageWaiting *w, const View *v) {
        PageWaitingPod *oldest = NULL;
        const ViewPod *known;
        size_t i = 0;

        if (w->left == 0)
                return false;
        w->left--;
        for (PageWaitingPod *pod = w->pods; pod && i < w->n_shown; pod = pod->hh.next) {
                if (!waiting_pod(v, pod->uid))
                        continue;
                i++;
                if (!oldest || pod->judged < oldest->judged)
                        oldest = pod;
        }
        known = oldest ? waiting_pod(v, oldest->uid) : NULL;
        if (oldest)
                oldest->judged = ++w->order;
        if (known)
                judge_pod(oldest, v, known->request);
        return w->left > 0;
}

/* ---- the JSON ---- */

static void write_judgement(JsonWriter *w, const PageWaitingPod *pod) {
        if (pod->judged == 0)
                return;
        json_write_u64(w, "fit", pod->fit);
        json_write_u64(w, "of", pod->of);
        json_write_array(w, "why");
        for (size_t i = 0; i < REASONS_SHOWN && pod->reasons[i].nodes > 0; i++) {
                json_write_array(w, NULL);
                json_write_str(w, NULL, refusal_reason_str(&pod->reasons[i].text));
                json_write_u64(w, NULL, pod->reasons[i].nodes);
                json_write_array_end(w);
        }
        json_write_array_end(w);
}

static void write_gang(JsonWriter *w, const Gangs *gangs, Str uid) {
        const GangMember *m = gangs ? gang_table_find(&gangs->table, uid) : NULL;
        char why[GANGS_WHY_MAX] = "";

        if (m)
                gang_words_explain(m->gang, why);
        if (why[0] != '\0')
                json_write_text(w, "gang", why);
}

static void write_pod(JsonWriter *w, const PageWaitingPod *pod, const Request *request, const Gangs *gangs) {
        json_write_object(w, NULL);
        json_write_str(w, "uid", pod->uid);
        json_write_str(w, "namespace", pod->namespace_);
        json_write_str(w, "name", pod->name);
        json_write_str(w, "since", pod->created);
        json_write_u64(w, "mem", request->mem);
        json_write_u64(w, "core", request->core);
        json_write_u64(w, "cards", request->cards);
        if (request->whole)
                json_write_u64(w, "whole", 1);
        write_gang(w, gangs, pod->uid);
        write_judgement(w, pod);
        json_write_object_end(w);
}

void page_waiting_write(const PageWaiting *w, const View *v, const Gangs *gangs, Buf *out) {
        size_t shown = 0;
        JsonWriter writer;

        json_write_init(&writer, out);
        json_write_object(&writer, NULL);
        json_write_u64(&writer, "total", w->n_waiting);
        json_write_array(&writer, "pods");
        for (const PageWaitingPod *pod = w->pods; pod && shown < PAGE_WAITING_SHOWN; pod = pod->hh.next) {
                const ViewPod *known = waiting_pod(v, pod->uid);

                if (!known)
                        continue;
                write_pod(&writer, pod, known->request, gangs);
                shown++;
        }
        json_write_array_end(&writer);
        json_write_object_end(&writer);
}
