/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publisher.h"

#include <errno.h>
#include <stddef.h>

#include "base/log.h"
#include "kube/api.h"
#include "kube/escape.h"
#include "kube/timestamp.h"
#include "wire/json_write.h"

#define RETRY_BASE (200 * USEC_PER_MSEC)
#define RETRY_CAP  (30 * USEC_PER_SEC)

typedef enum Word {
        WORD_CARD_NAME,
        WORD_CARD_MEM,
        WORD_CARD_COUNT,
        WORD_HOLDS_SLICES,
        WORD_LABELS_, /* those before it are labels */
        WORD_CARDS = WORD_LABELS_,
        WORD_UNIT,
        WORD_HELD_SLICES,
        WORD_METADATA_, /* those before it stand in the metadata */
        WORD_GPU_COUNT = WORD_METADATA_,
        WORD_CONDITION_REASON,
        WORD_CONDITION_MESSAGE,
        WORDS_,
} Word;

static const char *const word_keys[] = {
        [WORD_CARD_NAME] = LABEL_CARD_NAME,
        [WORD_CARD_MEM] = LABEL_CARD_MEM,
        [WORD_CARD_COUNT] = LABEL_CARD_COUNT,
        [WORD_HOLDS_SLICES] = LABEL_HOLDS_SLICES,
        [WORD_CARDS] = ANNOTATION_CARDS,
        [WORD_UNIT] = ANNOTATION_UNIT,
        [WORD_HELD_SLICES] = ANNOTATION_HELD_SLICES,
};

typedef enum Part { PART_METADATA, PART_COUNT, PART_CONDITION, PARTS_ } Part;

struct Publisher {
        KubeClient *client;
        char *path;
        char *seen[WORDS_], *wanted[WORDS_]; /* NULL: not seen; of no concern */
        KubeCall *call;
        Part part; /* that the call is about */
        sd_event_source *retry;
        unsigned attempt;
        uint64_t wants, sent; /* how often something was wanted, now and when the call was sent */
        bool saw_node;
};

int publisher_new(KubeClient *client, const char *node, Publisher **ret) {
        _cleanup_(publisher_freep) Publisher *p = calloc(1, sizeof *p);
        Buf path = BUF_NULL;

        if (!p)
                return -ENOMEM;
        p->client = client;
        buf_append_str(&path, STR("/api/v1/nodes/"));
        url_escape(&path, str_from(node));
        p->path = buf_take(&path);
        if (!p->path)
                return -ENOMEM;
        *ret = TAKE_PTR(p);
        return 0;
}

Publisher *publisher_free(Publisher *p) {
        if (!p)
                return NULL;
        kube_call_free(p->call);
        sd_event_source_disable_unref(p->retry);
        for (int i = 0; i < WORDS_; i++) {
                free(p->seen[i]);
                free(p->wanted[i]);
        }
        free(p->path);
        free(p);
        return NULL;
}

static int set_word(char **word, Str text) {
        char *copy = str_dup(text);

        if (!copy)
                return -ENOMEM;
        free(*word);
        *word = copy;
        return 0;
}

/* ---- what differs ---- */

static bool differs(const Publisher *p, int word) {
        return p->wanted[word] && strcmp(p->wanted[word], p->seen[word] ? p->seen[word] : "") != 0;
}

static bool part_differs(const Publisher *p, Part part) {
        switch (part) {
        case PART_METADATA:
                for (int i = 0; i < WORD_METADATA_; i++)
                        if (differs(p, i))
                                return true;
                return false;
        case PART_COUNT:
                return differs(p, WORD_GPU_COUNT);
        default:
                /* A condition that was never seen is written once, also to take back what an earlier agent said. */
                return p->wanted[WORD_CONDITION_REASON] &&
                       (!p->seen[WORD_CONDITION_REASON] || differs(p, WORD_CONDITION_REASON) ||
                        differs(p, WORD_CONDITION_MESSAGE));
        }
}

bool publisher_is_done(const Publisher *p) {
        for (int part = 0; part < PARTS_; part++)
                if (part_differs(p, (Part) part))
                        return false;
        return !p->call;
}

/* ---- patches ---- */

static void write_words(const Publisher *p, JsonWriter *w, const char *name, int from, int to) {
        json_write_object(w, name);
        for (int i = from; i < to; i++) {
                if (!differs(p, i))
                        continue;
                if (p->wanted[i][0] != '\0')
                        json_write_text(w, word_keys[i], p->wanted[i]);
                else
                        json_write_null(w, word_keys[i]);
        }
        json_write_object_end(w);
}

static void write_metadata(const Publisher *p, JsonWriter *w) {
        json_write_object(w, "metadata");
        write_words(p, w, "labels", 0, WORD_LABELS_);
        write_words(p, w, "annotations", WORD_LABELS_, WORD_METADATA_);
        json_write_object_end(w);
}

static void write_count(const Publisher *p, JsonWriter *w) {
        static const char *const lists[] = {"capacity", "allocatable"};

        json_write_object(w, "status");
        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                json_write_object(w, lists[i]);
                json_write_text(w, RESOURCE_GPU_COUNT, p->wanted[WORD_GPU_COUNT]);
                json_write_object_end(w);
        }
        json_write_object_end(w);
}

static void write_condition(const Publisher *p, JsonWriter *w) {
        Timestamp now = timestamp_seconds(clock_realtime_nsec());
        bool pending = p->wanted[WORD_CONDITION_REASON][0] != '\0';

        json_write_object(w, "status");
        json_write_array(w, "conditions");
        json_write_object(w, NULL);
        json_write_text(w, "type", CONDITION_CHANGE_PENDING);
        json_write_text(w, "status", pending ? "True" : "False");
        json_write_text(w, "reason", pending ? p->wanted[WORD_CONDITION_REASON] : "InForce");
        json_write_text(w, "message",
                        pending ? p->wanted[WORD_CONDITION_MESSAGE] : "what the node asks for is in force");
        json_write_text(w, "lastHeartbeatTime", now.text);
        json_write_text(w, "lastTransitionTime", now.text);
        json_write_object_end(w);
        json_write_array_end(w);
        json_write_object_end(w);
}

static void sync_node(Publisher *p);

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        Publisher *p = userdata;

        p->retry = sd_event_source_disable_unref(p->retry);
        sync_node(p);
        return 0;
}

static void retry_later(Publisher *p, usec_t after) {
        if (!p->retry && sd_event_add_time_relative(kube_client_event(p->client), &p->retry, CLOCK_MONOTONIC,
                                                    kube_backoff(p->attempt++, RETRY_BASE, RETRY_CAP, after),
                                                    0, on_retry, p) < 0)
                log_error("out of memory: the node object is put right with its next event");
}

/* What was written is taken for seen, until an event tells otherwise. */
static void take_for_seen(Publisher *p, char *const *sent) {
        int from = p->part == PART_METADATA ? 0
                   : p->part == PART_COUNT  ? WORD_GPU_COUNT
                                            : WORD_CONDITION_REASON;
        int to = p->part == PART_METADATA ? WORD_METADATA_
                 : p->part == PART_COUNT  ? WORD_CONDITION_REASON
                                          : WORDS_;

        for (int i = from; i < to; i++)
                if (sent[i] && set_word(&p->seen[i], str_from(sent[i])) < 0)
                        return; /* it is written once more */
}

static void on_written(void *userdata, const KubeReply *reply) {
        Publisher *p = userdata;

        p->call = NULL;
        if (reply->outcome == KUBE_DONE && reply->status < 300) {
                p->attempt = 0;
                if (p->sent == p->wants)
                        take_for_seen(p, p->wanted);
                sync_node(p);
                return;
        }
        log_warning("the node object is not written: %s", reply->fault.text);
        retry_later(p, reply->retry_after);
}

/* Conditions are merged by their type, which is what a strategic merge patch is for. */
static int send_part(Publisher *p, Part part) {
        static void (*const writers[])(const Publisher *,
                                       JsonWriter *) = {[PART_METADATA] = write_metadata,
                                                        [PART_COUNT] = write_count,
                                                        [PART_CONDITION] = write_condition};
        _cleanup_buf_ Buf patch = BUF_NULL, path = BUF_NULL;
        JsonWriter w;

        json_write_init(&w, &patch);
        json_write_object(&w, NULL);
        writers[part](p, &w);
        json_write_object_end(&w);
        buf_appendf(&path, "%s%s", p->path, part == PART_METADATA ? "" : "/status");
        if (buf_result(&patch) < 0 || buf_result(&path) < 0)
                return -ENOMEM;
        p->part = part;
        p->sent = p->wants;
        return kube_call(p->client,
                         &(KubeRequest){.method = "PATCH",
                                        .path = path.data,
                                        .content_type = part == PART_CONDITION
                                                                ? "application/strategic-merge-patch+json"
                                                                : "application/merge-patch+json",
                                        .body = buf_str(&patch)},
                         on_written, p, &p->call);
}

static void sync_node(Publisher *p) {
        if (!p->saw_node || p->call || p->retry)
                return;
        for (int part = 0; part < PARTS_; part++) {
                if (!part_differs(p, (Part) part))
                        continue;
                if (send_part(p, (Part) part) < 0)
                        retry_later(p, 0);
                return;
        }
}

/* ---- in and out ---- */

int publisher_saw(Publisher *p, const Node *node) {
        const Str seen[] = {
                [WORD_CARD_NAME] = node->card_name,
                [WORD_CARD_MEM] = node->card_mem,
                [WORD_CARD_COUNT] = node->card_count,
                [WORD_HOLDS_SLICES] = node->holds_slices,
                [WORD_CARDS] = node->annotations.cards,
                [WORD_UNIT] = node->annotations.unit,
                [WORD_HELD_SLICES] = node->annotations.held_slices,
                [WORD_GPU_COUNT] = node->allocatable_count,
        };

        for (size_t i = 0; i < ELEMENTSOF(seen); i++)
                if (set_word(&p->seen[i], seen[i]) < 0)
                        return -ENOMEM;
        p->saw_node = true;
        sync_node(p);
        return 0;
}

int publisher_want(Publisher *p, const NodeWords *words) {
        const char *const wanted[] = {
                [WORD_CARD_NAME] = words->card_name,
                [WORD_CARD_MEM] = words->card_mem,
                [WORD_CARD_COUNT] = words->card_count,
                [WORD_HOLDS_SLICES] = words->holds_slices,
                [WORD_CARDS] = words->cards,
                [WORD_UNIT] = words->unit,
                [WORD_HELD_SLICES] = words->held_slices,
                [WORD_GPU_COUNT] = words->gpu_count,
                [WORD_CONDITION_REASON] = words->condition_reason,
                [WORD_CONDITION_MESSAGE] = words->condition_message,
        };

        p->wants++;
        for (size_t i = 0; i < ELEMENTSOF(wanted); i++) {
                if (!wanted[i]) {
                        free(p->wanted[i]);
                        p->wanted[i] = NULL;
                } else if (set_word(&p->wanted[i], str_from(wanted[i])) < 0)
                        return -ENOMEM;
        }
        sync_node(p);
        return 0;
}
