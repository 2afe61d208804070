/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/desired_node.h"

#include "base/log.h"
#include "node/records/holders.h"
#include "share/fault_join.h"
#include "wire/annotation.h"
#include "wire/card_info.h"

static void explain_mode(const NodeState *s, Fault *ret) {
        if (node_state_waits(s)) {
                (void) fault_set(ret, 0,
                                 "label " LABEL_SCHEDULE
                                 " asks for mode %s: no card is shared before the other plugin is gone",
                                 share_mode_to_string(s->config.wanted_mode));
                return;
        }
        (void) fault_set(
                ret, 0,
                "label " LABEL_SCHEDULE " asks for mode %s: mode %s stays in force until the last "
                "slice is gone, and %s",
                share_mode_to_string(s->config.wanted_mode), share_mode_to_string(s->config.mode),
                s->config.place_while_changing
                        ? "new pods are placed in it meanwhile (annotation " ANNOTATION_PLACE_WHILE_CHANGING
                          ")"
                        : "no new pod is placed meanwhile");
}

static void explain_unit(const NodeState *s, Fault *ret) {
        _cleanup_buf_ Buf now = BUF_NULL, wanted = BUF_NULL;

        memory_unit_format(s->config.unit, &now);
        memory_unit_format(s->config.wanted_unit, &wanted);
        (void) fault_set(
                ret, 0, "%s asks for unit %.*s: %s; %.*s stays in force until the last slice is gone",
                s->config.unit_by_user ? "annotation " ANNOTATION_UNIT : "option --gpu-mem-unit",
                STR_ARG(buf_str(&wanted)),
                s->config.drain ? "no new pod is placed meanwhile (annotation " ANNOTATION_UNIT_CHANGE ")"
                                : "refused while slices are held, and new pods go on being placed (to stop "
                                  "them set annotation " ANNOTATION_UNIT_CHANGE " to drain)",
                STR_ARG(buf_str(&now)));
}

/* Explains the refused unit and the pending changes, without the holders. Returns the reason of the
 * condition, which is the mode's if several apply; "" when there is nothing to explain. */
static const char *explain_pending(const DesiredNodeFacts *f, Fault *ret) {
        const Fault *refused =
                f->state->unit_fault.text[0] != '\0' ? &f->state->unit_fault : &f->state->wanted_unit_fault;
        bool mode = f->roster->synced && f->state->config.mode != f->state->config.wanted_mode,
             unit = f->roster->synced && f->state->config.unit.mib != f->state->config.wanted_unit.mib;
        Fault more = FAULT_NULL;

        *ret = FAULT_NULL;
        fault_join(ret, refused);
        if (mode) {
                explain_mode(f->state, &more);
                fault_join(ret, &more);
        }
        if (unit) {
                explain_unit(f->state, &more);
                fault_join(ret, &more);
        }
        return mode                             ? REASON_MODE_KEPT
               : refused->text[0] != '\0'       ? REASON_UNIT_REFUSED
               : unit && f->state->config.drain ? REASON_UNIT_DRAINING
               : unit                           ? REASON_UNIT_KEPT
                                                : "";
}

typedef struct Texts {
        Buf name, mem, count, cards, unit, gpu_count, blocking, pending, wrong, cordon, broken, limits;
        const char *reason; /* of the condition GPUShareChangePending; NULL: it stays as it is */
        Fault change;       /* its message, without the holders */
} Texts;

static void texts_done(Texts *t) {
        buf_done(&t->name);
        buf_done(&t->mem);
        buf_done(&t->count);
        buf_done(&t->cards);
        buf_done(&t->unit);
        buf_done(&t->gpu_count);
        buf_done(&t->blocking);
        buf_done(&t->pending);
        buf_done(&t->wrong);
        buf_done(&t->cordon);
        buf_done(&t->broken);
        buf_done(&t->limits);
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
static void write_card_texts(const DesiredNodeFacts *f, Texts *t) {
        const MachineCard *first = &f->cards->cards[0];

        write_label(first->model, &t->name);
        buf_appendf(&t->mem, "%uMiB", first->mib);
        buf_append_u64(&t->count, f->cards->n);
        card_info_format(f->inventory->infos, f->inventory->cards.n, &t->cards);
}

static const char *text_of(const Buf *b) {
        return b->len > 0 && !b->broken ? b->data : "";
}

static void write_pending(const DesiredNodeFacts *f, Texts *t, DesiredNode *node) {
        _cleanup_buf_ Buf holders = BUF_NULL;
        const char *reason = explain_pending(f, &t->change);
        bool held =
                reason[0] != '\0' && strcmp(reason, REASON_UNIT_REFUSED) != 0 && !node_state_waits(f->state);

        if (held)
                holders_write(f->roster, NULL, f->n_orphans, &holders);
        buf_appendf(&t->pending, "%s%s" STR_FMT, t->change.text, held ? "; held by " : "",
                    STR_ARG(buf_str(&holders)));
        t->pending.broken |= holders.broken;
        if (t->pending.broken)
                return; /* no memory: the next change writes it */
        if (!f->roster->synced && reason[0] == '\0')
                return; /* the holders are not known yet, so the condition of an earlier run stays */
        t->reason = reason;
        node->conditions[CONDITION_CHANGE_PENDING] = (DesiredCondition){reason, text_of(&t->pending)};
}

/* One Event for each pending change, not for each holder that ends. */
static void tell_change(NodeTold *told, const Texts *t) {
        Fault note = FAULT_NULL;

        if (!t->reason || strcmp(told->change.text, t->change.text) == 0)
                return;
        told->change = t->change;
        (void) fault_set(&note, 0, "%s", text_of(&t->pending));
        if (t->reason[0] != '\0')
                node_events_tell(told->events, t->reason, &note);
}

static bool is_refused(const NodeState *s) {
        return !s->offers && s->unit_fault.text[0] != '\0';
}

/* The annotation that makes the scheduler place no pod here, with its cause. */
static void write_blocking(const DesiredNodeFacts *f, Texts *t) {
        if (is_refused(f->state))
                buf_append_str(&t->blocking, str_from(f->state->unit_fault.text));
        else if (f->driver->refused && share_mode_is_isolated(f->state->config.mode))
                buf_append_str(&t->blocking, str_from(f->driver->fault.text));
        else
                node_config_write_blocking(&f->state->config, &t->blocking);
}

static void write_in_force(const DesiredNodeFacts *f, Texts *t, DesiredNode *node) {
        bool sharing = share_mode_is_served(f->state->config.mode);

        memory_unit_format(f->state->config.unit, &t->unit);
        node->mode_in_force = sharing ? share_mode_to_string(f->state->config.mode) : "";
        node->unit_in_force = sharing && !is_refused(f->state) ? text_of(&t->unit) : "";
        write_blocking(f, t);
        if (f->roster->synced || !sharing)
                node->change_pending = sharing ? text_of(&t->blocking) : "";
}

static void write_misconfigured(const NodeState *s, Texts *t, DesiredNode *node) {
        if (!s->keys_known)
                return;
        node_keys_write_wrong(&s->keys, &t->wrong);
        if (!t->wrong.broken)
                node->conditions[CONDITION_MISCONFIGURED] =
                        (DesiredCondition){t->wrong.len > 0 ? "InvalidKey" : "", text_of(&t->wrong)};
}

static void write_driver(const DesiredNodeFacts *f, DesiredNode *node) {
        node->conditions[CONDITION_DRIVER] = (DesiredCondition){f->driver->reason, f->driver->fault.text};
}

/* Sets the condition for another plugin. Only a node that shares its cards is in trouble: others
 * are that plugin's. */
static void write_other_plugin(const NodeState *s, NodeTold *told, DesiredNode *node) {
        bool there = (share_mode_is_served(s->config.mode) || node_state_waits(s)) &&
                     s->other_plugin.text[0] != '\0';

        if (!s->text)
                return;
        node->conditions[CONDITION_OTHER_PLUGIN] =
                (DesiredCondition){there ? REASON_OTHER_PLUGIN : "", s->other_plugin.text};
        if (there)
                node_events_once(told->events, REASON_OTHER_PLUGIN, &s->other_plugin);
}

/* "gpu2, gpu3: no new slices (annotation ...); held by default/a" */
static const char *explain_cordon(const DesiredNodeFacts *f, Buf *out) {
        size_t gone = holders_count_gone(f->records, &f->state->cordon.cards);
        _cleanup_buf_ Buf holders = BUF_NULL;

        card_indexes_format(&f->state->cordon.cards, out);
        buf_append_str(out, STR(": no new slices (annotation " ANNOTATION_CORDON_CARDS "); "));
        holders_write(f->roster, &f->state->cordon.cards, gone, &holders);
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
static void tell_cordon(NodeTold *told, const CardIndexes *cards, const char *reason, const char *text) {
        Fault note = FAULT_NULL;

        if (strcmp(told->cordon.reason, reason) == 0 &&
            memcmp(&told->cordon.cards, cards, sizeof *cards) == 0)
                return;
        told->cordon.reason = reason;
        told->cordon.cards = *cards;
        (void) fault_set(&note, 0, "%s", text);
        if (reason[0] != '\0')
                node_events_tell(told->events, reason, &note);
}

static void write_cordon(const DesiredNodeFacts *f, NodeTold *told, Texts *t, DesiredNode *node) {
        const char *reason = "";

        if (!f->state->keys_known || !f->roster->synced)
                return; /* the condition of an earlier run stays */
        if (share_mode_is_served(f->state->config.mode) && !card_indexes_is_empty(&f->state->cordon.cards))
                reason = explain_cordon(f, &t->cordon);
        if (t->cordon.broken)
                return; /* no memory: the next change writes it */
        node->conditions[CONDITION_CORDON] = (DesiredCondition){reason, text_of(&t->cordon)};
        tell_cordon(told, &f->state->cordon.cards, reason, text_of(&t->cordon));
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

/* Sets the condition for cards out of service. Only a node that shares its cards is in trouble:
 * without the condition gpu-mem is 0 beside a gpu-count, and nothing says why. */
static void write_broken(const DesiredNodeFacts *f, NodeTold *told, Texts *t, DesiredNode *node) {
        Fault now = FAULT_NULL;
        const char *reason;

        if (!f->cards)
                return; /* the condition of an earlier run stays */
        if (share_mode_is_served(f->state->config.mode))
                explain_broken(f->cards, &t->broken);
        if (t->broken.broken)
                return; /* no memory: the next change writes it */
        reason = t->broken.len > 0 ? REASON_CARDS_OUT : "";
        node->conditions[CONDITION_CARDS] = (DesiredCondition){reason, text_of(&t->broken)};
        (void) fault_set(&now, 0, "%s", text_of(&t->broken)); /* it may be cut */
        if (strcmp(told->broken.text, now.text) == 0)
                return;
        told->broken = now;
        if (reason[0] != '\0')
                node_events_tell(told->events, reason, &told->broken);
}

/* Sets the condition for memory limits. Untried limits leave that of an earlier run. A mode that
 * isolates nothing has none, whatever the driver can do. */
static void write_limits(const DesiredNodeFacts *f, NodeTold *told, Texts *t, DesiredNode *node) {
        DesiredCondition *c = &node->conditions[CONDITION_LIMITS];

        if (!f->state->keys_known || !f->limits_known)
                return;
        c->reason = "";
        if (!share_mode_is_isolated(f->state->config.mode))
                return;
        if (f->no_limits) {
                *c = (DesiredCondition){REASON_NO_MEMORY_LIMITS, f->no_limits->text, NULL};
                node_events_once(told->events, REASON_NO_MEMORY_LIMITS, f->no_limits);
        } else if (f->limits_backend[0] != '\0') {
                buf_appendf(&t->limits, "memory is isolated by the library and by limits of the driver (%s)",
                            strcmp(f->limits_backend, "dmem") == 0 ? "dmem" : "its own account");
                *c = (DesiredCondition){"", text_of(&t->limits), CONDITION_REASON_LIMITED};
        }
}

/* Sets the label that tells whether slices are held. Every sharing node has it, because the
 * DaemonSet selects nodes by it. A node keeps its mode when the label of its mode is removed, so it
 * still needs an agent: without one the kubelet would refuse each pod. */
static void write_slices(const DesiredNodeFacts *f, DesiredNode *node) {
        bool sharing = share_mode_is_served(f->state->config.mode);

        node->held_slices = text_of(f->held_slices);
        if (f->roster->synced)
                node->holds_slices = f->n_holders > 0 ? "true" : sharing ? "false" : "";
}

/* Sets the label that keeps NVIDIA's plugin off, also before the node shares, so that it can begin.
 * Without the option the label is the user's. */
static void write_nvidia_plugin(const NodeState *s, DesiredNode *node) {
        bool ours = share_mode_is_served(s->config.mode) || share_mode_is_served(s->config.wanted_mode);

        if (s->keeps_nvidia_off && s->keys_known)
                node->nvidia_plugin = ours ? "false" : "";
}

static void write_cards(const DesiredNodeFacts *f, Texts *t, DesiredNode *node) {
        bool sharing = share_mode_is_served(f->state->config.mode);

        if (!f->cards)
                return;
        buf_append_u64(&t->gpu_count, share_mode_has_memory(f->state->config.mode) ? f->cards->n : 0);
        node->gpu_count = text_of(&t->gpu_count);
        if (f->cards->n == 0)
                return;
        write_card_texts(f, t);
        node->card_name = text_of(&t->name);
        node->card_mem = text_of(&t->mem);
        node->card_count = text_of(&t->count);
        node->cards = sharing ? text_of(&t->cards) : "";
        /* Until the Node object is known, a user may have written the annotation. */
        if (sharing && f->state->text && !f->state->config.unit_by_user) {
                node->unit = text_of(&t->unit);
                node->unit_seen = f->state->config.seen_unit;
        }
}

void desired_node_publish(const DesiredNodeFacts *f, NodeTold *told, Publisher *publisher) {
        _cleanup_(texts_done) Texts t = {0};
        DesiredNode node = {0};

        write_pending(f, &t, &node);
        write_misconfigured(f->state, &t, &node);
        write_driver(f, &node);
        write_other_plugin(f->state, told, &node);
        write_cordon(f, told, &t, &node);
        write_broken(f, told, &t, &node);
        write_limits(f, told, &t, &node);
        write_in_force(f, &t, &node);
        write_slices(f, &node);
        write_nvidia_plugin(f->state, &node);
        write_cards(f, &t, &node);
        tell_change(told, &t);
        if (node.unit)
                f->on_unit(f->userdata, node.unit);
        if (publisher_set_desired(publisher, &node) < 0)
                log_error("out of memory: the node object is put right later");
}
