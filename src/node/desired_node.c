/* SPDX-License-Identifier: Apache-2.0 */

/* The labels, annotations, gpu-count and conditions that the Node object should have now. */

#include "base/log.h"
#include "node/agent-internal.h"
#include "node/records/holders.h"
#include "share/fault_join.h"
#include "wire/annotation.h"
#include "wire/card_info.h"

static void explain_mode(const Agent *a, Fault *ret) {
        if (agent_waits_for_other_plugin(a)) {
                (void) fault_set(ret, 0,
                                 "label " LABEL_SCHEDULE
                                 " asks for mode %s: no card is shared before the other plugin is gone",
                                 share_mode_to_string(a->node_config.wanted_mode));
                return;
        }
        (void) fault_set(
                ret, 0,
                "label " LABEL_SCHEDULE " asks for mode %s: mode %s stays in force until the last "
                "slice is gone, and %s",
                share_mode_to_string(a->node_config.wanted_mode), share_mode_to_string(a->node_config.mode),
                a->node_config.place_while_changing
                        ? "new pods are placed in it meanwhile (annotation " ANNOTATION_PLACE_WHILE_CHANGING
                          ")"
                        : "no new pod is placed meanwhile");
}

static void explain_unit(const Agent *a, Fault *ret) {
        _cleanup_buf_ Buf now = BUF_NULL, wanted = BUF_NULL;

        memory_unit_format(a->node_config.unit, &now);
        memory_unit_format(a->node_config.wanted_unit, &wanted);
        (void) fault_set(
                ret, 0, "%s asks for unit %.*s: %s; %.*s stays in force until the last slice is gone",
                a->node_config.unit_by_user ? "annotation " ANNOTATION_UNIT : "option --gpu-mem-unit",
                STR_ARG(buf_str(&wanted)),
                a->node_config.drain
                        ? "no new pod is placed meanwhile (annotation " ANNOTATION_UNIT_CHANGE ")"
                        : "refused while slices are held, and new pods go on being placed (to stop "
                          "them set annotation " ANNOTATION_UNIT_CHANGE " to drain)",
                STR_ARG(buf_str(&now)));
}

/* Explains the refused unit and the pending changes, without the holders. Returns the reason of the
 * condition, which is the mode's if several apply; "" when there is nothing to explain. */
static const char *explain_pending(const Agent *a, Fault *ret) {
        const Fault *refused = a->unit_fault.text[0] != '\0' ? &a->unit_fault : &a->wanted_unit_fault;
        bool mode = a->roster.synced && a->node_config.mode != a->node_config.wanted_mode,
             unit = a->roster.synced && a->node_config.unit.mib != a->node_config.wanted_unit.mib;
        Fault more = FAULT_NULL;

        *ret = FAULT_NULL;
        fault_join(ret, refused);
        if (mode) {
                explain_mode(a, &more);
                fault_join(ret, &more);
        }
        if (unit) {
                explain_unit(a, &more);
                fault_join(ret, &more);
        }
        return mode                           ? REASON_MODE_KEPT
               : refused->text[0] != '\0'     ? REASON_UNIT_REFUSED
               : unit && a->node_config.drain ? REASON_UNIT_DRAINING
               : unit                         ? REASON_UNIT_KEPT
                                              : "";
}

typedef struct Texts {
        Buf name, mem, count, cards, unit, held, gpu_count, blocking, pending, wrong, cordon, broken;
        const char *reason; /* of the condition GPUShareChangePending; NULL: it stays as it is */
        Fault change;       /* its message, without the holders */
} Texts;

static void texts_done(Texts *t) {
        buf_done(&t->name);
        buf_done(&t->mem);
        buf_done(&t->count);
        buf_done(&t->cards);
        buf_done(&t->unit);
        buf_done(&t->held);
        buf_done(&t->gpu_count);
        buf_done(&t->blocking);
        buf_done(&t->pending);
        buf_done(&t->wrong);
        buf_done(&t->cordon);
        buf_done(&t->broken);
}

enum { LABEL_MAX = 63 };

static bool is_plain(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Blanks become "-", as ACK writes them, and so do all characters that a label's value must not
 * have ("Quadro RTX 6000/8000"). */
static void write_label(const char *text, Buf *out) {
        for (const char *p = text; *p && out->len < LABEL_MAX; p++)
                buf_append_char(out, is_plain(*p) || *p == '.' || *p == '_' ? *p : '-');
        while (out->len > 0 && !is_plain(out->data[out->len - 1]))
                out->data[--out->len] = '\0';
}

/* The labels describe one card: the first, when the cards differ. */
static void write_card_texts(const Agent *a, Texts *t) {
        const MachineCard *first = &a->cards.cards[0];

        write_label(first->model, &t->name);
        buf_appendf(&t->mem, "%uMiB", first->mib);
        buf_append_u64(&t->count, a->cards.n);
        card_info_format(a->inventory.infos, a->inventory.cards.n, &t->cards);
}

static const char *text_of(const Buf *b) {
        return b->len > 0 && !b->broken ? b->data : "";
}

static void write_pending(const Agent *a, Texts *t, DesiredNode *node) {
        _cleanup_buf_ Buf holders = BUF_NULL;
        const char *reason = explain_pending(a, &t->change);
        bool held = reason[0] != '\0' && strcmp(reason, REASON_UNIT_REFUSED) != 0 &&
                    !agent_waits_for_other_plugin(a);

        if (held)
                holders_write(&a->roster, NULL, orphans_count(a->orphans), &holders);
        buf_appendf(&t->pending, "%s%s" STR_FMT, t->change.text, held ? "; held by " : "",
                    STR_ARG(buf_str(&holders)));
        t->pending.broken |= holders.broken;
        if (t->pending.broken)
                return; /* no memory: the next change writes it */
        if (!a->roster.synced && reason[0] == '\0')
                return; /* the holders are not known yet, so the condition of an earlier run stays */
        t->reason = reason;
        node->conditions[CONDITION_CHANGE_PENDING] = (DesiredCondition){reason, text_of(&t->pending)};
}

/* One Event for each pending change, not for each holder that ends. */
static void tell_change(Agent *a, const Texts *t) {
        Fault note = FAULT_NULL;

        if (!t->reason || strcmp(a->told_change.text, t->change.text) == 0)
                return;
        a->told_change = t->change;
        (void) fault_set(&note, 0, "%s", text_of(&t->pending));
        if (t->reason[0] != '\0')
                agent_tell_node(a, t->reason, &note);
}

static bool is_refused(const Agent *a) {
        return !a->offers && a->unit_fault.text[0] != '\0';
}

/* The annotation that makes the scheduler place no pod here, with its cause. */
static void write_blocking(const Agent *a, Texts *t) {
        if (is_refused(a))
                buf_append_str(&t->blocking, str_from(a->unit_fault.text));
        else if (a->driver.refused && share_mode_is_isolated(a->node_config.mode))
                buf_append_str(&t->blocking, str_from(a->driver.fault.text));
        else
                node_config_write_blocking(&a->node_config, &t->blocking);
}

static void write_in_force(const Agent *a, Texts *t, DesiredNode *node) {
        bool sharing = share_mode_is_served(a->node_config.mode);

        memory_unit_format(a->node_config.unit, &t->unit);
        node->mode_in_force = sharing ? share_mode_to_string(a->node_config.mode) : "";
        node->unit_in_force = sharing && !is_refused(a) ? text_of(&t->unit) : "";
        write_blocking(a, t);
        if (a->roster.synced || !sharing)
                node->change_pending = sharing ? text_of(&t->blocking) : "";
}

static void write_misconfigured(const Agent *a, Texts *t, DesiredNode *node) {
        if (!a->keys_known)
                return;
        node_keys_write_wrong(&a->keys, &t->wrong);
        if (!t->wrong.broken)
                node->conditions[CONDITION_MISCONFIGURED] =
                        (DesiredCondition){t->wrong.len > 0 ? "InvalidKey" : "", text_of(&t->wrong)};
}

static void write_driver(const Agent *a, DesiredNode *node) {
        node->conditions[CONDITION_DRIVER] = (DesiredCondition){a->driver.reason, a->driver.fault.text};
}

/* Only a node that shares its cards is in trouble: others are another plugin's. */
static void write_other_plugin(Agent *a, DesiredNode *node) {
        bool there = (share_mode_is_served(a->node_config.mode) || agent_waits_for_other_plugin(a)) &&
                     a->other_plugin.text[0] != '\0';

        if (!a->node_text)
                return;
        node->conditions[CONDITION_OTHER_PLUGIN] =
                (DesiredCondition){there ? REASON_OTHER_PLUGIN : "", a->other_plugin.text};
        if (there)
                agent_tell_once(a, REASON_OTHER_PLUGIN, &a->other_plugin);
}

/* "gpu2, gpu3: no new slices (annotation ...); held by default/a" */
static const char *explain_cordon(const Agent *a, Buf *out) {
        size_t gone = holders_count_gone(&a->records, &a->cordon.cards);
        _cleanup_buf_ Buf holders = BUF_NULL;

        card_indexes_format(&a->cordon.cards, out);
        buf_append_str(out, STR(": no new slices (annotation " ANNOTATION_CORDON_CARDS "); "));
        holders_write(&a->roster, &a->cordon.cards, gone, &holders);
        out->broken |= holders.broken;
        if (holders.len == 0) {
                buf_append_str(out, STR("no slice is held there"));
                return REASON_CARDS_DRAINED;
        }
        buf_appendf(out, "held by " STR_FMT, STR_ARG(buf_str(&holders)));
        return REASON_CARDS_DRAINING;
}

/* An Event when cards are cordoned, and when the last slice there is gone; not for each holder that
 * ends. */
static void tell_cordon(Agent *a, const char *reason, const char *text) {
        Fault note = FAULT_NULL;

        if (strcmp(a->told_cordon.reason, reason) == 0 &&
            memcmp(&a->told_cordon.cards, &a->cordon.cards, sizeof a->cordon.cards) == 0)
                return;
        a->told_cordon.reason = reason;
        a->told_cordon.cards = a->cordon.cards;
        (void) fault_set(&note, 0, "%s", text);
        if (reason[0] != '\0')
                agent_tell_node(a, reason, &note);
}

static void write_cordon(Agent *a, Texts *t, DesiredNode *node) {
        const char *reason = "";

        if (!a->keys_known || !a->roster.synced)
                return; /* the condition of an earlier run stays */
        if (share_mode_is_served(a->node_config.mode) && !card_indexes_is_empty(&a->cordon.cards))
                reason = explain_cordon(a, &t->cordon);
        if (t->cordon.broken)
                return; /* no memory: the next change writes it */
        node->conditions[CONDITION_CORDON] = (DesiredCondition){reason, text_of(&t->cordon)};
        tell_cordon(a, reason, text_of(&t->cordon));
}

enum { BROKEN_SHOWN = 3 }; /* so that a Fault has room for all */

/* "gpu0 (GPU-...): NVML cannot tell its minor number: Not Supported; gpu1 ..." */
static void explain_broken(const CardList *cards, Buf *out) {
        size_t n = 0;

        for (size_t i = 0; i < cards->n; i++) {
                const MachineCard *c = &cards->cards[i];

                if (!c->healthy && n++ < BROKEN_SHOWN)
                        buf_appendf(out, "%sgpu%u (%s): %s", n > 1 ? "; " : "", c->index, c->uuid,
                                    c->trouble[0] ? c->trouble : "unhealthy");
        }
        if (n > BROKEN_SHOWN)
                buf_appendf(out, "; and %zu more cards", n - BROKEN_SHOWN);
        if (cards->unnamed[0])
                buf_appendf(out, "%s%s", n > 0 ? "; " : "", cards->unnamed);
}

/* Only a node that shares its cards is in trouble: without this, gpu-mem is 0 beside a gpu-count,
 * and nothing says why. */
static void write_broken(Agent *a, Texts *t, DesiredNode *node) {
        Fault now = FAULT_NULL;
        const char *reason;

        if (!a->cards_known)
                return; /* the condition of an earlier run stays */
        if (share_mode_is_served(a->node_config.mode))
                explain_broken(&a->cards, &t->broken);
        if (t->broken.broken)
                return; /* no memory: the next change writes it */
        reason = t->broken.len > 0 ? REASON_CARDS_OUT : "";
        node->conditions[CONDITION_CARDS] = (DesiredCondition){reason, text_of(&t->broken)};
        (void) fault_set(&now, 0, "%s", text_of(&t->broken)); /* it may be cut */
        if (strcmp(a->told_broken.text, now.text) == 0)
                return;
        a->told_broken = now;
        if (reason[0] != '\0')
                agent_tell_node(a, reason, &a->told_broken);
}

/* Untried limits leave the condition of an earlier run. */
static void write_limits(Agent *a, DesiredNode *node) {
        const Fault *why;
        const char *backend;
        MemoryMechanism mechanism = memory_limits_mechanism(a->memory_limits, &backend, &why);
        bool lacks = mechanism == MEMORY_UNAVAILABLE;

        if (!a->keys_known || mechanism == MEMORY_UNTRIED)
                return;
        node->conditions[CONDITION_LIMITS] =
                (DesiredCondition){lacks ? REASON_NO_MEMORY_LIMITS : "", lacks ? why->text : ""};
        if (lacks)
                agent_tell_once(a, REASON_NO_MEMORY_LIMITS, why);
}

/* Every sharing node has the label, because the DaemonSet selects nodes by it. A node whose mode
 * label is removed keeps its mode, so it still needs an agent: without one the kubelet would refuse
 * each pod. */
static void write_slices(const Agent *a, Texts *t, DesiredNode *node) {
        bool sharing = share_mode_is_served(a->node_config.mode);

        orphans_write(a->orphans, &t->held);
        node->held_slices = text_of(&t->held);
        if (a->roster.synced)
                node->holds_slices = agent_count_holders(a) > 0 ? "true" : sharing ? "false" : "";
}

/* Also before the node shares, so that it can begin. Without the option the label is the user's. */
static void write_nvidia_plugin(const Agent *a, DesiredNode *node) {
        bool ours =
                share_mode_is_served(a->node_config.mode) || share_mode_is_served(a->node_config.wanted_mode);

        if (a->o.keeps_nvidia_off && a->keys_known)
                node->nvidia_plugin = ours ? "false" : "";
}

static void write_cards(const Agent *a, Texts *t, DesiredNode *node) {
        bool sharing = share_mode_is_served(a->node_config.mode);

        if (!a->cards_known)
                return;
        buf_append_u64(&t->gpu_count, share_mode_has_memory(a->node_config.mode) ? a->cards.n : 0);
        node->gpu_count = text_of(&t->gpu_count);
        if (a->cards.n == 0)
                return;
        write_card_texts(a, t);
        node->card_name = text_of(&t->name);
        node->card_mem = text_of(&t->mem);
        node->card_count = text_of(&t->count);
        node->cards = sharing ? text_of(&t->cards) : "";
        /* Until the Node object is known, a user may have written the annotation. */
        if (sharing && a->node_text && !a->node_config.unit_by_user) {
                node->unit = text_of(&t->unit);
                node->unit_seen = a->node_config.seen_unit;
        }
}

void agent_publish(Agent *a) {
        _cleanup_(texts_done) Texts t = {0};
        DesiredNode node = {0};

        write_pending(a, &t, &node);
        write_misconfigured(a, &t, &node);
        write_driver(a, &node);
        write_other_plugin(a, &node);
        write_cordon(a, &t, &node);
        write_broken(a, &t, &node);
        write_limits(a, &node);
        write_in_force(a, &t, &node);
        write_slices(a, &t, &node);
        write_nvidia_plugin(a, &node);
        write_cards(a, &t, &node);
        tell_change(a, &t);
        if (node.unit)
                agent_save_published_unit(a, node.unit);
        if (publisher_set_desired(a->publisher, &node) < 0)
                log_error("out of memory: the node object is put right later");
}
