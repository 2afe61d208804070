/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/node_status.h"

#include <errno.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/timestamp.h"
#include "kube/escape.h"
#include "kube/writer.h"
#include "wire/json_write.h"

typedef struct Entry {
        UT_hash_handle hh; /* by name */
        NodeStatus *owner;
        char *uid;     /* NULL: the node does not exist */
        char *wanted;  /* message that the condition should have; NULL: nothing is wrong */
        char *seen;    /* the message of a condition that is True; NULL: it is False or absent */
        char *sent;    /* message that the call under way writes; NULL: status False */
        bool reported; /* an Event was written about `wanted` */
        Writer writer;
        char name[];
} Entry;

struct NodeStatus {
        SchedulerContext *context;
        Entry *entries;
};

int node_status_new(SchedulerContext *context, NodeStatus **ret) {
        NodeStatus *s = calloc(1, sizeof *s);

        if (!s)
                return -ENOMEM;
        s->context = context;
        *ret = s;
        return 0;
}

static void entry_free(Entry *e) {
        HASH_DELETE(hh, e->owner->entries, e);
        writer_done(&e->writer);
        free(e->uid);
        free(e->wanted);
        free(e->seen);
        free(e->sent);
        free(e);
}

NodeStatus *node_status_free(NodeStatus *s) {
        if (!s)
                return NULL;
        while (s->entries)
                entry_free(s->entries);
        free(s);
        return NULL;
}

/* Replaces *at by a copy of the text; "" becomes NULL. Returns false when out of memory: *at
 * stays. */
static bool set_text(char **at, Str text) {
        char *copy = NULL;

        if (str_eq(str_from(*at), text))
                return true;
        if (!str_is_empty(text)) {
                copy = str_dup(text);
                if (!copy)
                        return false;
        }
        free(*at);
        *at = copy;
        return true;
}

/* ---- writing ---- */

/* Writes the patch. lastTransitionTime changes only with the status. A strategic merge patch keeps
 * fields that it does not name, and finds the condition by its type. */
static void write_condition(const Entry *e, Buf *out) {
        Timestamp now = timestamp_seconds(clock_realtime_nsec());
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_object(&w, "status");
        json_write_array(&w, "conditions");
        json_write_object(&w, NULL);
        json_write_text(&w, "type", CONDITION_FENCES);
        json_write_text(&w, "status", e->wanted ? "True" : "False");
        json_write_text(&w, "reason", e->wanted ? "InvalidConfigMap" : "InForce");
        json_write_text(&w, "message",
                        e->wanted ? e->wanted : "every ConfigMap that fences cards is understood");
        json_write_text(&w, "lastHeartbeatTime", now.text);
        if (!e->wanted != !e->seen)
                json_write_text(&w, "lastTransitionTime", now.text);
        json_write_object_end(&w);
        json_write_array_end(&w);
        json_write_object_end(&w);
        json_write_object_end(&w);
}

static void tell_node(Entry *e) {
        if (!e->wanted || e->reported)
                return;
        e->reported = true;
        kube_event_warn(e->owner->context->recorder, "Node",
                        &(ObjectMeta){.name = str_from(e->name), .uid = str_from(e->uid)}, CONDITION_FENCES,
                        e->wanted);
}

static int reconcile_entry(void *userdata) {
        _cleanup_buf_ Buf path = BUF_NULL, patch = BUF_NULL;
        KubeRequest request = {.method = "PATCH", .content_type = "application/strategic-merge-patch+json"};
        Entry *e = userdata;
        const SchedulerContext *c = e->owner->context;

        if (!e->uid || str_eq(str_from(e->wanted), str_from(e->seen)) || !scheduler_context_leads(c) ||
            !c->view->kinds[VIEW_CONFIGMAPS].synced)
                return 0;
        tell_node(e);
        kube_node_path(&path, str_from(e->name));
        buf_append_str(&path, STR("/status"));
        write_condition(e, &patch);
        if (buf_result(&path) < 0 || buf_result(&patch) < 0 || !set_text(&e->sent, str_from(e->wanted)))
                return -ENOMEM;
        request.path = path.data;
        request.body = buf_str(&patch);
        return kube_call(c->client, &request, writer_answer, &e->writer, &e->writer.call);
}

/* What was written counts as seen until the watch says otherwise. 404: the node is gone or has been
 * created anew; the watch will tell. */
static WriterNext on_answer(void *userdata, const KubeReply *reply, bool written) {
        Entry *e = userdata;

        if (!written) {
                if (reply->status != 404)
                        log_warning("the condition of node %s is not written: %s", e->name,
                                    reply->fault.text);
                return WRITER_PAUSE;
        }
        free(e->seen);
        e->seen = TAKE_PTR(e->sent);
        return WRITER_RECONCILE;
}

static const WriterRule rule = {USEC_PER_SEC, 60 * USEC_PER_SEC, reconcile_entry, on_answer};

/* ---- what is, and what should be ---- */

static Entry *entry_find(NodeStatus *s, Str name) {
        Entry *e;

        HASH_FIND(hh, s->entries, name.data, name.len, e);
        return e;
}

static Entry *entry_ensure(NodeStatus *s, Str name) {
        Entry *e = entry_find(s, name);

        if (e)
                return e;
        e = calloc(1, sizeof *e + name.len + 1);
        if (!e)
                return NULL;
        e->owner = s;
        e->writer = (Writer){.rule = &rule, .client = s->context->client, .userdata = e};
        memcpy(e->name, name.data, name.len);
        HASH_ADD_KEYPTR(hh, s->entries, e->name, name.len, e);
        if (!hash_added(e, hh)) {
                free(e);
                return NULL;
        }
        return e;
}

void node_status_node(NodeStatus *s, const Node *node) {
        Str message = str_is_empty(node->fences_message) ? STR("?") : node->fences_message,
            seen = str_eq(node->fences_status, STR("True")) ? message : STR("");
        Entry *e = entry_ensure(s, node->meta.name);

        if (!e || !set_text(&e->uid, node->meta.uid) || !set_text(&e->seen, seen)) {
                log_error("out of memory: the condition of node " STR_FMT " waits for its next change",
                          STR_ARG(node->meta.name));
                return;
        }
        writer_poke(&e->writer);
}

void node_status_gone(NodeStatus *s, Str name) {
        Entry *e = entry_find(s, name);

        if (!e)
                return;
        if (!e->wanted) {
                entry_free(e);
                return;
        }
        writer_done(&e->writer);
        (void) set_text(&e->uid, STR("")); /* "" needs no memory */
        (void) set_text(&e->seen, STR(""));
        e->reported = false;
}

void node_status_fences(NodeStatus *s, Str node, const char *text) {
        Entry *e = text[0] != '\0' ? entry_ensure(s, node) : entry_find(s, node);

        if (!e) {
                if (text[0] != '\0')
                        log_error("out of memory: %s", text);
                return;
        }
        if (str_eq(str_from(e->wanted), str_from(text)))
                return;
        if (!set_text(&e->wanted, str_from(text))) {
                log_error("out of memory: %s", text);
                return;
        }
        e->reported = false;
        if (!e->wanted && !e->uid)
                entry_free(e);
        else
                writer_poke(&e->writer);
}

void node_status_write_all(NodeStatus *s) {
        Entry *e, *next;

        HASH_ITER(hh, s->entries, e, next)
        writer_poke(&e->writer);
}
