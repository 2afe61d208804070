/* SPDX-License-Identifier: Apache-2.0 */
#include "share/node_description.h"

#include <errno.h>
#include <stdlib.h>

#include "base/quantity.h"
#include "share/fault_join.h"
#include "share/node_key.h"
#include "wire/annotation.h"
#include "wire/card_info.h"
#include "wire/node.h"

enum { SHOWN = 64 };

void node_description_done(NodeDescription *d) {
        free(d->cards);
        (void) card_links_unref(d->links);
        *d = (NodeDescription){.unit = d->unit};
}

/* A node object while it is read. */
typedef struct Reading {
        const Node *node;
        const NodeDescription *before;
        Fault *fault;
        bool wrong;
} Reading;

/* A key, its value, and the rule that the value breaks. */
typedef struct Wrong {
        const char *kind, *key; /* "annotation", "label" */
        Str value;
        const char *rule;
} Wrong;

static void complain_of(Reading *r, const Wrong *w, const char *in_force) {
        Fault more = FAULT_NULL;

        (void) fault_set(&more, 0, "%s %s is \"%.*s\", must be %s: %s is in force", w->kind, w->key,
                         STR_CUT(w->value, SHOWN), w->rule, in_force);
        fault_join(r->fault, &more);
        r->wrong = true;
}

static void complain_key(Reading *r, NodeKey key, const char *in_force) {
        Fault more = FAULT_NULL;

        node_key_complain(key, node_key_get(r->node, key), in_force, &more);
        fault_join(r->fault, &more);
        r->wrong = true;
}

/* ---- mode and placement ---- */

typedef struct Allocatable {
        uint32_t mem, count, core;
        bool unreadable; /* mem or count does not decode */
} Allocatable;

static bool is_known(ShareMode mode) {
        return mode != SHARE_MODE_NONE && mode != SHARE_MODE_UNKNOWN;
}

/* The mode when the agent publishes none. An unknown label value and a removed label change
 * nothing: a node that shared goes on sharing. After a restart the earlier label is not known; then
 * allocatable resources tell that an agent shares the cards. */
static ShareMode mode_by_label(const Reading *r, const Allocatable *a) {
        ShareMode label = share_mode_from_label(r->node->mode), before = r->before->mode;

        if (label == SHARE_MODE_UNKNOWN)
                return is_known(before) ? before : SHARE_MODE_UNKNOWN;
        if (label != SHARE_MODE_NONE)
                return label;
        if (share_mode_is_served(before))
                return before;
        if (a->core > 0)
                return SHARE_MODE_CORE_MEM;
        return a->mem > 0 ? SHARE_MODE_CGPU : SHARE_MODE_NONE;
}

static void read_mode(Reading *r, const Allocatable *a, NodeDescription *d) {
        Str said = r->node->annotations.mode_in_force;
        ShareMode mode = str_eq(said, STR("none")) ? SHARE_MODE_NONE : share_mode_from_label(said);
        const char *words;

        d->mode = str_is_empty(said)           ? mode_by_label(r, a)
                  : mode != SHARE_MODE_UNKNOWN ? mode
                  : is_known(r->before->mode)  ? r->before->mode
                                               : mode_by_label(r, a);
        words = is_known(d->mode) ? share_mode_to_string(d->mode) : "no mode";
        if (mode == SHARE_MODE_UNKNOWN)
                complain_of(r,
                            &(Wrong){"annotation", ANNOTATION_MODE_IN_FORCE, said,
                                     "none, or a value of " LABEL_SCHEDULE},
                            words);
        if (share_mode_from_label(r->node->mode) == SHARE_MODE_UNKNOWN)
                complain_key(r, NODE_KEY_MODE, words);
}

static void read_placement(Reading *r, NodeDescription *d) {
        d->policy = r->before->policy;
        if (!placement_policy_parse(r->node->placement, &d->policy))
                complain_key(r, NODE_KEY_PLACEMENT, d->policy == PLACEMENT_SPREAD ? "spread" : "binpack");
}

/* ---- the unit ---- */

static void read_unit(Reading *r, NodeDescription *d) {
        const NodeAnnotations *a = &r->node->annotations;
        MemoryUnit in_force = r->before->unit, wanted = r->before->unit;
        bool good = memory_unit_parse(a->unit_in_force, &in_force) == 0,
             wanted_good = memory_unit_parse(a->unit, &wanted) == 0;
        _cleanup_buf_ Buf words = BUF_NULL;

        d->unit = str_is_empty(a->unit_in_force) ? wanted : in_force;
        if (good && wanted_good)
                return;
        memory_unit_format(d->unit, &words);
        if (!good)
                complain_of(r,
                            &(Wrong){"annotation", ANNOTATION_UNIT_IN_FORCE, a->unit_in_force,
                                     node_key_rule(NODE_KEY_UNIT)},
                            buf_result(&words) == 0 ? words.data : "the unit as before");
        if (!wanted_good)
                complain_key(r, NODE_KEY_UNIT, buf_result(&words) == 0 ? words.data : "the unit as before");
}

/* ---- switches ---- */

static void read_max_pods(Reading *r, NodeDescription *d) {
        Str said = r->node->annotations.max_pods;
        char words[NODE_KEY_MAX_PODS_TEXT];

        d->max_pods_said = !str_is_empty(said);
        if (d->max_pods_said && str_to_u32(said, &d->max_pods))
                return;
        d->max_pods = node_key_max_pods_default(d->mode);
        if (!d->max_pods_said)
                return;
        d->max_pods_said = r->before->max_pods_said;
        if (d->max_pods_said)
                d->max_pods = r->before->max_pods;
        node_key_max_pods_words(d->max_pods, words);
        complain_key(r, NODE_KEY_MAX_PODS, words);
}

static void read_switches(Reading *r, NodeDescription *d) {
        const NodeAnnotations *a = &r->node->annotations;

        read_max_pods(r, d);
        d->allow_mixed = str_eq(a->allow_mixed, STR("true"));
        if (!d->allow_mixed && !str_is_empty(a->allow_mixed) && !str_eq(a->allow_mixed, STR("false"))) {
                d->allow_mixed = r->before->allow_mixed;
                complain_key(r, NODE_KEY_ALLOW_MIXED, d->allow_mixed ? "true" : "false");
        }
        (void) snprintf(d->change_pending, sizeof d->change_pending, "%.*s",
                        STR_CUT(a->change_pending, sizeof d->change_pending - 1));
}

static void read_limits(const Node *node, NodeDescription *d) {
        if (!share_mode_is_isolated(d->mode))
                return; /* the agent writes the condition in each mode */
        if (str_eq(node->limits_status, STR("True")))
                d->limiting = MEMORY_LIMITS_MISSING;
        else if (str_eq(node->limits_reason, STR(CONDITION_REASON_LIMITED)))
                d->limiting = MEMORY_LIMITS_SET;
        if (d->limiting != MEMORY_LIMITS_NONE)
                (void) snprintf(d->limits_message, sizeof d->limits_message, "%.*s",
                                STR_CUT(node->limits_message, sizeof d->limits_message - 1));
}

static void read_cordon(Reading *r, NodeDescription *d) {
        d->cordoned = r->before->cordoned;
        if (card_indexes_take(&d->cordoned, r->node->annotations.cordon_cards))
                return;
        complain_key(r, NODE_KEY_CORDON,
                     card_indexes_is_empty(&d->cordoned)           ? "no cordon"
                     : card_indexes_is_empty(&r->before->cordoned) ? "a cordon of the cards that it names"
                                                                   : "the cordon of before");
}

/* ---- cards ---- */

/* Reads an amount of status.allocatable; absent: 0. The API server rejects malformed quantities,
 * but a file may have them. */
static bool read_allocatable(Reading *r, Str text, const char *resource, uint64_t max, uint32_t *ret) {
        uint64_t value = 0;
        char rule[64];

        *ret = 0;
        if (str_is_empty(text) || (quantity_parse(text, &value) == 0 && value <= max)) {
                *ret = (uint32_t) value;
                return true;
        }
        (void) snprintf(rule, sizeof rule, "a whole number up to %llu", (unsigned long long) max);
        complain_of(r, &(Wrong){"allocatable", resource, text, rule}, "what was known of the cards before");
        return false;
}

/* Reads the cpu, which only orders nodes: a malformed text counts as not known. Larger values are
 * cut at UINT32_MAX, so that sums and products fit (fragment.c). */
static uint64_t read_cpu(Str text) {
        int64_t milli = 0;

        if (str_is_empty(text) || !quantity_parse_milli(text, &milli))
                return 0;
        return milli > UINT32_MAX ? UINT32_MAX : (uint64_t) milli;
}

static Allocatable read_status(Reading *r) {
        const Node *node = r->node;
        Allocatable a;
        bool good;

        good = read_allocatable(r, node->allocatable_mem, RESOURCE_GPU_MEM, UINT32_MAX, &a.mem);
        good &= read_allocatable(r, node->allocatable_count, RESOURCE_GPU_COUNT, CARD_INDEX_MAX + 1,
                                 &a.count);
        (void) read_allocatable(r, node->allocatable_core, RESOURCE_GPU_CORE, UINT32_MAX, &a.core);
        a.unreadable = !good;
        return a;
}

static char *move_text(Str *text, char *to) {
        if (text->len > 0)
                text->data = memcpy(to, text->data, text->len);
        return to + text->len;
}

/* Copies the cards, and their texts behind them, into one allocation. Returns 0 or -ENOMEM. */
static int take_cards(NodeDescription *d, const CardShape *cards, size_t n) {
        size_t texts = 0;
        char *at;

        if (n == 0)
                return 0;
        for (size_t i = 0; i < n; i++)
                texts += cards[i].model.len + cards[i].uuid.len;
        d->cards = malloc(n * sizeof *cards + texts);
        if (!d->cards)
                return -ENOMEM;
        memcpy(d->cards, cards, n * sizeof *cards);
        d->n_cards = n;
        at = (char *) (d->cards + n);
        for (size_t i = 0; i < n; i++) {
                at = move_text(&d->cards[i].model, at);
                at = move_text(&d->cards[i].uuid, at);
        }
        return 0;
}

static int cards_as_before(const Reading *r, NodeDescription *d) {
        int k = take_cards(d, r->before->cards, r->before->n_cards);

        if (k == 0)
                d->links = card_links_ref(r->before->links);
        return k;
}

/* Makes cards from allocatable when the agent's description is absent: all equal, and of the model
 * in the node's label. */
static int equal_cards(const Reading *r, const Allocatable *a, NodeDescription *d) {
        CardShape cards[CARD_INDEX_MAX + 1];
        uint32_t count = a->count > 0 ? a->count : 1;

        if (a->mem == 0)
                return 0;
        for (uint32_t i = 0; i < count; i++)
                cards[i] = (CardShape){
                        .index = i, .units = a->mem / count, .healthy = true, .model = r->node->card_name};
        return take_cards(d, cards, count);
}

static int unreadable_cards(Reading *r, NodeDescription *d, const Fault *why) {
        int k = cards_as_before(r, d);
        Fault more = FAULT_NULL;

        d->cards_unreadable = d->n_cards == 0;
        (void) fault_set(&more, 0, "annotation " ANNOTATION_CARDS ": %s: %s", why->text,
                         d->cards_unreadable ? "no card is known" : "the cards stay as they were");
        fault_join(r->fault, &more);
        r->wrong = true;
        return k;
}

/* Complains of the first card with links that do not decode. It is used without them. */
static void complain_of_peers(Reading *r, const CardInfo *cards, size_t n) {
        Fault more = FAULT_NULL;

        for (size_t i = 0; i < n; i++) {
                if (!cards[i].peers_malformed)
                        continue;
                (void) fault_set(&more, 0,
                                 "annotation " ANNOTATION_CARDS ": the peers of card %u must be a list of at "
                                 "most %d numbers from 0 to 65535: the card is used without its links",
                                 cards[i].index, CARD_INFO_PEERS_MAX);
                fault_join(r->fault, &more);
                r->wrong = true;
                return;
        }
}

static int described_cards(Reading *r, NodeDescription *d) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault why = FAULT_NULL;
        CardShape *shapes;
        CardInfo *cards;
        size_t n;
        int k;

        k = card_info_parse(r->node->annotations.cards, &arena, &cards, &n, &why);
        if (k != 0)
                return k < 0 ? k : unreadable_cards(r, d, &why);
        shapes = arena_new(&arena, CardShape, n);
        if (!shapes)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                shapes[i] = (CardShape){.index = cards[i].index,
                                        .units = cards[i].units,
                                        .healthy = cards[i].healthy,
                                        .model = cards[i].model,
                                        .uuid = cards[i].uuid};
        complain_of_peers(r, cards, n);
        k = take_cards(d, shapes, n);
        return k < 0 ? k : card_links_from_info(cards, n, &d->links);
}

int node_description_read(const Node *node, const NodeDescription *before, NodeDescription *ret,
                          Fault *fault) {
        Reading r = {.node = node, .before = before, .fault = fault};
        NodeDescription d = {0};
        Allocatable a = read_status(&r);
        int k;

        read_mode(&r, &a, &d);
        read_placement(&r, &d);
        read_unit(&r, &d);
        read_switches(&r, &d);
        read_limits(node, &d);
        read_cordon(&r, &d);
        d.cpu = read_cpu(node->allocatable_cpu);
        if (!str_is_empty(node->annotations.cards))
                k = described_cards(&r, &d);
        else
                k = a.unreadable ? cards_as_before(&r, &d) : equal_cards(&r, &a, &d);
        if (k < 0) {
                node_description_done(&d);
                return k;
        }
        *ret = d;
        return r.wrong ? NODE_DESCRIPTION_E_KEY : 0;
}
