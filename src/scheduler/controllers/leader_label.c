/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/leader_label.h"

#include <errno.h>
#include <stddef.h>

#include "base/log.h"
#include "kube/api.h"
#include "kube/escape.h"
#include "wire/json_field.h"

#define BACKOFF     (USEC_PER_SEC / 2)
#define BACKOFF_CAP (10 * USEC_PER_SEC)
#define LOOK_EVERY  (60 * USEC_PER_SEC)

#define PATCH_ON  "{\"metadata\":{\"labels\":{\"" LEADER_LABEL "\":\"true\"}}}"
#define PATCH_OFF "{\"metadata\":{\"labels\":{\"" LEADER_LABEL "\":null}}}"

enum { OTHERS_MAX = 16 }; /* pods that are taken from one list; the others wait for the next one */

typedef enum Stage {
        STAGE_OWN,    /* the label of this process's pod is to be written */
        STAGE_LIST,   /* list the other pods with the label */
        STAGE_OTHERS, /* take it off one of them */
        STAGE_DONE,
} Stage;

struct LeaderLabel {
        KubeClient *client;
        char *collection, *pod; /* path and name */
        bool leading;
        bool changed; /* set while a call was under way: begin again */
        Stage stage;
        char *others[OTHERS_MAX];
        size_t n_others;
        KubeCall *call;
        sd_event_source *timer;
        unsigned attempt;
};

static void proceed(LeaderLabel *l);

static void proceed_after(LeaderLabel *l, usec_t delay) {
        (void) sd_event_source_set_time_relative(l->timer, delay); /* fail only for a dead source */
        (void) sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
}

static void drop_others(LeaderLabel *l) {
        while (l->n_others > 0)
                free(l->others[--l->n_others]);
}

static void begin(LeaderLabel *l) {
        drop_others(l);
        l->stage = STAGE_OWN;
        l->changed = false;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        LeaderLabel *l = userdata;

        if (l->stage == STAGE_DONE)
                begin(l);
        proceed(l);
        return 0;
}

/* ---- the others ---- */

typedef struct Item {
        Str name;
} Item;

static const JsonField metadata_fields[] = {JSON_FIELD(Item, name, "name", json_field_str)};

static void read_metadata(JsonReader *r, Arena *arena, void *ret) {
        json_field_decode(r, arena, metadata_fields, ELEMENTSOF(metadata_fields), ret);
}

static const JsonField item_fields[] = {JSON_NESTED("metadata", read_metadata)};

static void read_items(JsonReader *r, Arena *arena, void *ret) {
        LeaderLabel *l = ret;

        if (!json_array_begin(r))
                return;
        while (json_array_next(r)) {
                Item item = {0};

                json_field_decode(r, arena, item_fields, ELEMENTSOF(item_fields), &item);
                if (str_is_empty(item.name) || str_eq(item.name, str_from(l->pod)) ||
                    l->n_others == OTHERS_MAX)
                        continue;
                l->others[l->n_others] = str_dup(item.name);
                l->n_others += l->others[l->n_others] != NULL;
        }
}

static const JsonField list_fields[] = {JSON_NESTED("items", read_items)};

static void take_list(LeaderLabel *l, Str json) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        JsonReader reader;

        drop_others(l);
        json_init(&reader, json);
        json_field_decode(&reader, &arena, list_fields, ELEMENTSOF(list_fields), l);
        if (json_finish(&reader, &fault) != 0)
                log_warning("pods with the leader's label cannot be read: %s", fault.text);
}

/* ---- one call after another ---- */

static void finish_stage(LeaderLabel *l, Str body) {
        switch (l->stage) {
        case STAGE_OWN:
                log_debug("the leader's label is %s pod=%s", l->leading ? "on" : "off", l->pod);
                l->stage = l->leading ? STAGE_LIST : STAGE_DONE;
                break;
        case STAGE_LIST:
                take_list(l, body);
                l->stage = STAGE_OTHERS;
                break;
        case STAGE_OTHERS:
                log_info("took the leader's label off a former leader pod=%s", l->others[l->n_others - 1]);
                free(l->others[--l->n_others]);
                break;
        default:
                break;
        }
        if (l->stage == STAGE_OTHERS && l->n_others == 0)
                l->stage = STAGE_DONE;
}

static void on_done(void *userdata, const KubeReply *reply) {
        LeaderLabel *l = userdata;
        bool good = reply->outcome == KUBE_DONE && (reply->status / 100 == 2 || reply->status == 404);

        l->call = NULL;
        if (l->changed)
                begin(l);
        else if (good) {
                l->attempt = 0;
                finish_stage(l, reply->body);
        } else {
                log_warning("the leader's label is not as it should be: %s", reply->fault.text);
                proceed_after(l, BACKOFF / 4 +
                                         kube_backoff(l->attempt, BACKOFF, BACKOFF_CAP, reply->retry_after));
                l->attempt += l->attempt < 16;
                return;
        }
        proceed(l);
}

static int patch(LeaderLabel *l, const char *pod, const char *text) {
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_append_str(&path, str_from(l->collection));
        buf_append_char(&path, '/');
        kube_url_escape(&path, str_from(pod));
        if (buf_result(&path) < 0)
                return -ENOMEM;
        return kube_merge_patch(l->client, path.data, "", str_from(text), STR(""), on_done, l, &l->call);
}

static int list(LeaderLabel *l) {
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_appendf(&path, "%s?labelSelector=aliquot.dev%%2Fleader%%3Dtrue&limit=100", l->collection);
        if (buf_result(&path) < 0)
                return -ENOMEM;
        return kube_call(l->client, &(KubeRequest){.method = "GET", .path = path.data}, on_done, l, &l->call);
}

static void proceed(LeaderLabel *l) {
        int r = 0;

        if (l->call)
                return;
        switch (l->stage) {
        case STAGE_OWN:
                r = patch(l, l->pod, l->leading ? PATCH_ON : PATCH_OFF);
                break;
        case STAGE_LIST:
                r = list(l);
                break;
        case STAGE_OTHERS:
                r = patch(l, l->others[l->n_others - 1], PATCH_OFF);
                break;
        default:
                if (l->leading)
                        proceed_after(l, LOOK_EVERY);
                return;
        }
        if (r < 0)
                proceed_after(l, BACKOFF_CAP);
}

void leader_label_set(LeaderLabel *l, bool leading) {
        if (l->leading == leading)
                return;
        l->leading = leading;
        l->changed = l->call != NULL; /* an answer to an earlier request is out of date */
        if (l->call)
                return;
        begin(l);
        proceed(l);
}

/* ---- beginning and end ---- */

int leader_label_new(KubeClient *c, const char *namespace_, const char *pod, LeaderLabel **ret) {
        _cleanup_(leader_label_freep) LeaderLabel *l = calloc(1, sizeof *l);
        _cleanup_buf_ Buf collection = BUF_NULL;
        int r;

        if (!l)
                return -ENOMEM;
        l->client = c;
        buf_append_str(&collection, STR("/api/v1/namespaces/"));
        kube_url_escape(&collection, str_from(namespace_));
        buf_append_str(&collection, STR("/pods"));
        l->collection = buf_take(&collection);
        l->pod = str_dup(str_from(pod));
        if (!l->collection || !l->pod)
                return -ENOMEM;
        r = sd_event_add_time_relative(kube_client_event(c), &l->timer, CLOCK_BOOTTIME, 0, 0, on_timer, l);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

LeaderLabel *leader_label_free(LeaderLabel *l) {
        if (!l)
                return NULL;
        kube_call_free(l->call);
        sd_event_source_disable_unref(l->timer);
        drop_others(l);
        free(l->collection);
        free(l->pod);
        free(l);
        return NULL;
}
