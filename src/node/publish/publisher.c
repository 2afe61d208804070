/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/publisher.h"

#include <errno.h>
#include <stddef.h>

#include "base/log.h"
#include "base/timestamp.h"
#include "base/told.h"
#include "kube/escape.h"
#include "kube/writer.h"
#include "node/publish/startup_taint.h"
#include "share/mode.h"
#include "wire/annotation.h"
#include "wire/json_write.h"
#include "wire/resize_keys.h"

/* Pause before the same patch is sent again. It is needed again only if another writer undid it. */
#define SAME_AFTER (1 * USEC_PER_SEC)

typedef enum NodeField {
        FIELD_CARD_NAME,
        FIELD_CARD_MEM,
        FIELD_CARD_COUNT,
        FIELD_HOLDS_SLICES,
        FIELD_NVIDIA_PLUGIN,
        FIELD_LABELS_, /* end of the labels */
        FIELD_CARDS = FIELD_LABELS_,
        FIELD_UNIT,
        FIELD_HELD_SLICES,
        FIELD_MODE_IN_FORCE,
        FIELD_UNIT_IN_FORCE,
        FIELD_CHANGE_PENDING,
        FIELD_METADATA_, /* end of the metadata */
        FIELD_GPU_COUNT = FIELD_METADATA_,
        FIELD_GROWTH, /* desired by publisher_set_growth() alone */
        FIELDS_,
} NodeField;

static const char *const field_keys[] = {
        [FIELD_CARD_NAME] = LABEL_CARD_NAME,
        [FIELD_CARD_MEM] = LABEL_CARD_MEM,
        [FIELD_CARD_COUNT] = LABEL_CARD_COUNT,
        [FIELD_HOLDS_SLICES] = LABEL_HOLDS_SLICES,
        [FIELD_NVIDIA_PLUGIN] = LABEL_NVIDIA_PLUGIN,
        [FIELD_CARDS] = ANNOTATION_CARDS,
        [FIELD_UNIT] = ANNOTATION_UNIT,
        [FIELD_HELD_SLICES] = ANNOTATION_HELD_SLICES,
        [FIELD_MODE_IN_FORCE] = ANNOTATION_MODE_IN_FORCE,
        [FIELD_UNIT_IN_FORCE] = ANNOTATION_UNIT_IN_FORCE,
        [FIELD_CHANGE_PENDING] = ANNOTATION_CHANGE_PENDING,
};

/* The condition while nothing is wrong. omitted: it is not added to a node without it. */
static const struct {
        const char *reason, *message;
        bool omitted;
} healthy[] = {
        [CONDITION_CHANGE_PENDING] = {"InForce", "what the node asks for is in force", false},
        [CONDITION_MISCONFIGURED] = {"Valid",
                                     "every label and annotation of the node that steers it is valid", true},
        [CONDITION_DRIVER] = {"Supported", "the driver is one whose numbers are known", true},
        [CONDITION_OTHER_PLUGIN] = {"NoOtherPlugin", "no other plugin offers the cards", true},
        [CONDITION_CORDON] = {"InService", "no card is cordoned", true},
        [CONDITION_CARDS] = {"InService", "the driver serves every card", true},
        [CONDITION_LIMITS] = {"AsAsked", "memory is isolated as the node asks", true},
};

typedef enum ConditionField {
        CONDITION_STATUS,
        CONDITION_REASON,
        CONDITION_MESSAGE,
        CONDITION_SINCE,
        CONDITION_FIELDS_
} ConditionField;

typedef struct Condition {
        char *observed[CONDITION_FIELDS_]; /* NULL: not observed */
        char *desired[CONDITION_SINCE];    /* NULL: left as it is */
        bool omitted;                      /* it is not added to a node without it */
} Condition;

typedef enum Part { PART_METADATA, PART_COUNT, PART_CONDITIONS, PART_TAINT, PART_GROWTH, PARTS_ } Part;

struct Publisher {
        char *path;
        char *observed[FIELDS_], *desired[FIELDS_]; /* NULL: not observed; left as it is */
        Condition conditions[CONDITIONS_];
        char *other_taints; /* a JSON list, while the startup taint is there; NULL: it is not */
        char *version_text; /* resourceVersion of the observed object */
        /* observed text that desired[FIELD_GROWTH] may replace; NULL: nothing is desired */
        char *growth_seen;
        /* observed text that desired[FIELD_UNIT] may replace; NULL: nothing is desired */
        char *unit_seen;
        bool offers;      /* the observed object has all resources that its mode offers */
        uint64_t version; /* resourceVersion of the newest object; 0: not known */
        Writer writer;
        Part part; /* the part that the write in flight has */
        /* The part that is written first. After a refusal it is the next one: what the API server
         * refuses for good keeps no other part from the node. */
        Part first;
        bool observed_node;
        Told sent[PARTS_]; /* the last patch of each part */
};

static int set_text(char **to, Str text) {
        char *copy = str_dup(text);

        if (!copy)
                return -ENOMEM;
        free(*to);
        *to = copy;
        return 0;
}

/* ---- what differs ---- */

static bool is_other(const char *desired, const char *observed) {
        return desired && strcmp(desired, observed ? observed : "") != 0;
}

static bool field_differs(const Publisher *p, int field) {
        /* What a user wrote meanwhile is not overwritten: the watch brings it to the owner. */
        if (field == FIELD_UNIT && is_other(p->unit_seen, p->observed[field]))
                return false;
        return is_other(p->desired[field], p->observed[field]);
}

static bool condition_differs(const Publisher *p, int kind) {
        const Condition *c = &p->conditions[kind];
        bool is_there = c->observed[CONDITION_STATUS] && c->observed[CONDITION_STATUS][0] != '\0';

        if (c->omitted && !is_there)
                return false;
        for (int i = 0; i < CONDITION_SINCE; i++)
                if (is_other(c->desired[i], c->observed[i]))
                        return true;
        return false;
}

static bool part_differs(const Publisher *p, Part part) {
        if (part == PART_COUNT)
                return field_differs(p, FIELD_GPU_COUNT);
        if (part == PART_TAINT)
                return p->other_taints && p->offers;
        if (part == PART_GROWTH)
                return p->growth_seen && p->version_text && field_differs(p, FIELD_GROWTH) &&
                       !is_other(p->growth_seen, p->observed[FIELD_GROWTH]);
        for (int i = 0; part == PART_METADATA && i < FIELD_METADATA_; i++)
                if (field_differs(p, i))
                        return true;
        for (int kind = 0; part == PART_CONDITIONS && kind < CONDITIONS_; kind++)
                if (condition_differs(p, kind))
                        return true;
        return false;
}

/* ---- patches ---- */

static void write_fields(const Publisher *p, JsonWriter *w, const char *name, int from, int to) {
        json_write_object(w, name);
        for (int i = from; i < to; i++) {
                if (!field_differs(p, i))
                        continue;
                if (p->desired[i][0] != '\0')
                        json_write_text(w, field_keys[i], p->desired[i]);
                else
                        json_write_null(w, field_keys[i]);
        }
        json_write_object_end(w);
}

/* With resourceVersion in it the API server refuses the patch when a user wrote the unit
 * meanwhile. */
static void write_metadata(const Publisher *p, JsonWriter *w) {
        json_write_object(w, "metadata");
        if (field_differs(p, FIELD_UNIT))
                json_write_text(w, "resourceVersion", p->version_text);
        write_fields(p, w, "labels", 0, FIELD_LABELS_);
        write_fields(p, w, "annotations", FIELD_LABELS_, FIELD_METADATA_);
        json_write_object_end(w);
}

static void write_count(const Publisher *p, JsonWriter *w) {
        static const char *const lists[] = {"capacity", "allocatable"};

        json_write_object(w, "status");
        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                json_write_object(w, lists[i]);
                json_write_text(w, RESOURCE_GPU_COUNT, p->desired[FIELD_GPU_COUNT]);
                json_write_object_end(w);
        }
        json_write_object_end(w);
}

/* lastTransitionTime changes with the status only, not with reason or message, because `kubectl
 * wait` relies on it (core/v1 NodeCondition). */
static void write_condition(const Condition *c, const char *type, JsonWriter *w) {
        Timestamp now = timestamp_seconds(clock_realtime_nsec());
        const char *since = c->observed[CONDITION_SINCE];
        bool turned = is_other(c->desired[CONDITION_STATUS], c->observed[CONDITION_STATUS]);

        json_write_object(w, NULL);
        json_write_text(w, "type", type);
        json_write_text(w, "status", c->desired[CONDITION_STATUS]);
        json_write_text(w, "reason", c->desired[CONDITION_REASON]);
        json_write_text(w, "message", c->desired[CONDITION_MESSAGE]);
        json_write_text(w, "lastHeartbeatTime", now.text);
        json_write_text(w, "lastTransitionTime", turned || !since || since[0] == '\0' ? now.text : since);
        json_write_object_end(w);
}

static void write_conditions(const Publisher *p, JsonWriter *w) {
        json_write_object(w, "status");
        json_write_array(w, "conditions");
        for (int kind = 0; kind < CONDITIONS_; kind++)
                if (condition_differs(p, kind))
                        write_condition(&p->conditions[kind], condition_type((ConditionKind) kind), w);
        json_write_array_end(w);
        json_write_object_end(w);
}

/* The list is written whole, because taints have no key to merge them by (NodeSpec, core/v1). With
 * resourceVersion the API server refuses the patch when another writer changed the node
 * meanwhile. */
static void write_taints(const Publisher *p, JsonWriter *w) {
        json_write_object(w, "metadata");
        json_write_text(w, "resourceVersion", p->version_text);
        json_write_object_end(w);
        json_write_object(w, "spec");
        json_write_raw(w, "taints", str_from(p->other_taints));
        json_write_object_end(w);
}

/* Both the agent and the leading scheduler write this annotation, each on what it has read. */
static void write_growth(const Publisher *p, JsonWriter *w) {
        json_write_object(w, "metadata");
        json_write_text(w, "resourceVersion", p->version_text);
        json_write_object(w, "annotations");
        if (p->desired[FIELD_GROWTH][0] != '\0')
                json_write_text(w, ANNOTATION_GROWTH, p->desired[FIELD_GROWTH]);
        else
                json_write_null(w, ANNOTATION_GROWTH);
        json_write_object_end(w);
        json_write_object_end(w);
}

static uint64_t version_of(const Node *node) {
        uint64_t version = 0;

        /* A version that is no number stays 0, which counts as newer than all. */
        (void) str_to_u64(node->meta.resource_version, &version);
        return version;
}

static int observe_node(Publisher *p, const Node *node, Str text);

/* Takes the object that answers a patch, the whole one as it is afterwards. The watch may have
 * delivered a later change of another writer before the answer: then the answer tells nothing
 * new. */
static int observe_written(Publisher *p, Str body) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Node node;
        int r = node_decode(body, &arena, &node, NULL);

        if (r != 0 || (version_of(&node) > 0 && version_of(&node) < p->version))
                return r;
        r = observe_node(p, &node, body);
        if (r == 0)
                p->version = version_of(&node);
        return r;
}

/* Takes the answer to a patch. It differs from what is desired when the server changed it, or more
 * is desired by now; the next patch waits then. */
static WriterNext on_answer(void *userdata, const KubeReply *reply, bool written) {
        Publisher *p = userdata;

        p->first = PART_METADATA;
        if (written && observe_written(p, reply->body) == 0)
                return part_differs(p, p->part) ? WRITER_PAUSE : WRITER_RECONCILE;
        p->first = (Part) ((p->part + 1) % PARTS_);
        log_warning("the node object is not written: %s", reply->fault.text);
        return WRITER_PAUSE;
}

/* Sends the patch of one part; that of conditions as a strategic merge patch, which merges them by
 * type. */
static int send_part(Publisher *p, Part part) {
        static void (*const writers[])(const Publisher *,
                                       JsonWriter *) = {[PART_METADATA] = write_metadata,
                                                        [PART_COUNT] = write_count,
                                                        [PART_CONDITIONS] = write_conditions,
                                                        [PART_TAINT] = write_taints,
                                                        [PART_GROWTH] = write_growth};
        bool is_status = part == PART_COUNT || part == PART_CONDITIONS;
        _cleanup_buf_ Buf patch = BUF_NULL, path = BUF_NULL;
        JsonWriter w;

        json_write_init(&w, &patch);
        json_write_object(&w, NULL);
        writers[part](p, &w);
        json_write_object_end(&w);
        buf_appendf(&path, "%s%s", p->path, is_status ? "/status" : "");
        if (buf_result(&patch) < 0 || buf_result(&path) < 0)
                return -ENOMEM;
        if (!told_is_news(&p->sent[part], buf_str(&patch), clock_monotonic_usec(), SAME_AFTER)) {
                writer_pause(&p->writer, SAME_AFTER);
                return 0;
        }
        p->part = part;
        return kube_call(p->writer.client,
                         &(KubeRequest){.method = "PATCH",
                                        .path = path.data,
                                        .content_type = part == PART_CONDITIONS
                                                                ? "application/strategic-merge-patch+json"
                                                                : "application/merge-patch+json",
                                        .body = buf_str(&patch)},
                         writer_answer, &p->writer, &p->writer.call);
}

static int reconcile_node(void *userdata) {
        Publisher *p = userdata;

        for (unsigned i = 0; p->observed_node && i < PARTS_; i++) {
                Part part = (Part) ((p->first + i) % PARTS_);

                if (part_differs(p, part))
                        return send_part(p, part);
        }
        return 0;
}

/* ---- the observed and the desired object ---- */

static int observe_conditions(Publisher *p, Str text) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        ObjectCondition found[CONDITIONS_];

        if (conditions_read(text, &arena, found, NULL) != 0)
                return -ENOMEM; /* the text is not malformed: it was decoded before */
        for (int kind = 0; kind < CONDITIONS_; kind++) {
                char **observed = p->conditions[kind].observed;

                if (set_text(&observed[CONDITION_STATUS], found[kind].status) < 0 ||
                    set_text(&observed[CONDITION_REASON], found[kind].reason) < 0 ||
                    set_text(&observed[CONDITION_MESSAGE], found[kind].message) < 0 ||
                    set_text(&observed[CONDITION_SINCE], found[kind].since) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int observe_taint(Publisher *p, const Node *node, Str text) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf others = BUF_NULL;
        bool found = false;

        if (startup_taint_read(text, &arena, &found, &others, NULL) != 0)
                return -ENOMEM;
        free(p->other_taints);
        p->other_taints = found ? buf_take(&others) : NULL;
        return found && !p->other_taints ? -ENOMEM : set_text(&p->version_text, node->meta.resource_version);
}

static bool is_some(Str quantity) {
        return !str_is_empty(quantity) && !str_eq(quantity, STR("0"));
}

static bool offers_all(const Node *node) {
        ShareMode mode = share_mode_from_label(node->mode);

        if (share_mode_has_whole(mode))
                return is_some(node->allocatable_whole);
        return is_some(node->allocatable_count) &&
               (!share_mode_has_memory(mode) || is_some(node->allocatable_mem)) &&
               (!share_mode_has_core(mode) || is_some(node->allocatable_core));
}

static int observe_node(Publisher *p, const Node *node, Str text) {
        const Str observed[] = {
                [FIELD_CARD_NAME] = node->card_name,
                [FIELD_CARD_MEM] = node->card_mem,
                [FIELD_CARD_COUNT] = node->card_count,
                [FIELD_HOLDS_SLICES] = node->holds_slices,
                [FIELD_NVIDIA_PLUGIN] = node->nvidia_plugin,
                [FIELD_CARDS] = node->annotations.cards,
                [FIELD_UNIT] = node->annotations.unit,
                [FIELD_HELD_SLICES] = node->annotations.held_slices,
                [FIELD_MODE_IN_FORCE] = node->annotations.mode_in_force,
                [FIELD_UNIT_IN_FORCE] = node->annotations.unit_in_force,
                [FIELD_CHANGE_PENDING] = node->annotations.change_pending,
                [FIELD_GPU_COUNT] = node->allocatable_count,
                [FIELD_GROWTH] = node->annotations.growth,
        };

        for (size_t i = 0; i < ELEMENTSOF(observed); i++)
                if (set_text(&p->observed[i], observed[i]) < 0)
                        return -ENOMEM;
        p->offers = offers_all(node);
        return observe_taint(p, node, text) < 0 ? -ENOMEM : observe_conditions(p, text);
}

int publisher_observe(Publisher *p, const Node *node, Str text, bool listed) {
        uint64_t version = version_of(node);
        int r;

        if (!listed && version > 0 && version < p->version)
                return 0;
        p->version = version;
        r = observe_node(p, node, text);
        if (r < 0)
                return r;
        p->observed_node = true;
        writer_poke(&p->writer);
        return 0;
}

static int set_desired_text(char **to, const char *text) {
        if (text)
                return set_text(to, str_from(text));
        free(*to);
        *to = NULL;
        return 0;
}

int publisher_set_growth(Publisher *p, const char *seen, const char *text) {
        if (!seen && !p->growth_seen)
                return 0;
        if (set_desired_text(&p->growth_seen, seen) < 0 ||
            set_desired_text(&p->desired[FIELD_GROWTH], seen ? text : NULL) < 0)
                return -ENOMEM;
        writer_poke(&p->writer);
        return 0;
}

static int set_desired_condition(Condition *c, int kind, const DesiredCondition *desired) {
        bool is_true = desired->reason && desired->reason[0] != '\0';
        const char *texts[CONDITION_SINCE] = {NULL};
        bool usual = !is_true && !desired->good_reason;
        int r = 0;

        if (desired->reason) {
                texts[CONDITION_STATUS] = is_true ? "True" : "False";
                texts[CONDITION_REASON] = is_true ? desired->reason
                                          : usual ? healthy[kind].reason
                                                  : desired->good_reason;
                texts[CONDITION_MESSAGE] = usual ? healthy[kind].message : desired->message;
        }
        c->omitted = usual && healthy[kind].omitted;
        for (int i = 0; r == 0 && i < CONDITION_SINCE; i++)
                r = set_desired_text(&c->desired[i], texts[i]);
        return r;
}

int publisher_set_desired(Publisher *p, const DesiredNode *node) {
        const char *const texts[] = {
                [FIELD_CARD_NAME] = node->card_name,
                [FIELD_CARD_MEM] = node->card_mem,
                [FIELD_CARD_COUNT] = node->card_count,
                [FIELD_HOLDS_SLICES] = node->holds_slices,
                [FIELD_NVIDIA_PLUGIN] = node->nvidia_plugin,
                [FIELD_CARDS] = node->cards,
                [FIELD_UNIT] = node->unit,
                [FIELD_HELD_SLICES] = node->held_slices,
                [FIELD_MODE_IN_FORCE] = node->mode_in_force,
                [FIELD_UNIT_IN_FORCE] = node->unit_in_force,
                [FIELD_CHANGE_PENDING] = node->change_pending,
                [FIELD_GPU_COUNT] = node->gpu_count,
        };
        int r = set_desired_text(&p->unit_seen, node->unit ? node->unit_seen : NULL);

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(texts); i++)
                r = set_desired_text(&p->desired[i], texts[i]);
        for (int kind = 0; r == 0 && kind < CONDITIONS_; kind++)
                r = set_desired_condition(&p->conditions[kind], kind, &node->conditions[kind]);
        if (r == 0)
                writer_poke(&p->writer);
        return r;
}

/* ---- beginning and end ---- */

static const WriterRule rule = {200 * USEC_PER_MSEC, 30 * USEC_PER_SEC, reconcile_node, on_answer};

int publisher_new(KubeClient *client, const char *node, Publisher **ret) {
        _cleanup_(publisher_freep) Publisher *p = calloc(1, sizeof *p);
        Buf path = BUF_NULL;

        if (!p)
                return -ENOMEM;
        p->writer = (Writer){.rule = &rule, .client = client, .userdata = p};
        kube_node_path(&path, str_from(node));
        p->path = buf_take(&path);
        if (!p->path)
                return -ENOMEM;
        *ret = TAKE_PTR(p);
        return 0;
}

Publisher *publisher_free(Publisher *p) {
        if (!p)
                return NULL;
        writer_done(&p->writer);
        for (int i = 0; i < FIELDS_; i++) {
                free(p->observed[i]);
                free(p->desired[i]);
        }
        for (int kind = 0; kind < CONDITIONS_; kind++) {
                for (int i = 0; i < CONDITION_FIELDS_; i++)
                        free(p->conditions[kind].observed[i]);
                for (int i = 0; i < CONDITION_SINCE; i++)
                        free(p->conditions[kind].desired[i]);
        }
        free(p->other_taints);
        free(p->version_text);
        free(p->growth_seen);
        free(p->unit_seen);
        free(p->path);
        free(p);
        return NULL;
}
