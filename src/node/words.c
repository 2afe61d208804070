/* SPDX-License-Identifier: Apache-2.0 */

/* What the node object is to say. */

#include "base/log.h"
#include "node/events-internal.h"
#include "share/fault_join.h"
#include "wire/annotation.h"
#include "wire/card_info.h"

enum { HOLDERS_NAMED = 8 };

static int compare_pods(const void *a, const void *b) {
        const RosterPod *const *x = a, *const *y = b;
        int order = strcmp((*x)->namespace_, (*y)->namespace_);

        return order != 0 ? order : strcmp((*x)->name, (*y)->name);
}

/* Sorted, so that the text changes with the holders only, and not with the order in which pods were
 * last updated. */
static void list_holders(const Agent *a, Buf *out) {
        size_t n = 0, n_dying = orphans_count(a->orphans);
        const RosterPod **holders = calloc(HASH_COUNT(a->roster.pods) + 1, sizeof *holders);

        if (!holders) {
                out->broken = true;
                return;
        }
        for (const RosterPod *pod = a->roster.pods; pod; pod = pod->hh.next)
                if (pod->grant)
                        holders[n++] = pod;
        qsort(holders, n, sizeof *holders, compare_pods);
        for (size_t i = 0; i < n && i < HOLDERS_NAMED; i++)
                buf_appendf(out, "%s%s/%s", i > 0 ? ", " : "", holders[i]->namespace_, holders[i]->name);
        if (n > HOLDERS_NAMED)
                buf_appendf(out, " and %zu more", n - HOLDERS_NAMED);
        if (n_dying > 0)
                buf_appendf(out, "%s%zu deleted pods whose processes still run", n > 0 ? ", and " : "",
                            n_dying);
        free(holders);
}

static void explain_mode(const Agent *a, Fault *ret) {
        (void) fault_set(
                ret, 0,
                "label " LABEL_SCHEDULE " asks for mode %s: mode %s stays in force until the last "
                "slice is gone, and %s",
                share_mode_to_string(a->terms.wanted_mode), share_mode_to_string(a->terms.mode),
                a->terms.place_while_changing
                        ? "new pods are placed in it meanwhile (annotation " ANNOTATION_PLACE_WHILE_CHANGING
                          ")"
                        : "no new pod is placed meanwhile");
}

static void explain_unit(const Agent *a, Fault *ret) {
        _cleanup_buf_ Buf now = BUF_NULL, wanted = BUF_NULL;

        memory_unit_format(a->terms.unit, &now);
        memory_unit_format(a->terms.wanted_unit, &wanted);
        (void) fault_set(
                ret, 0, "%s asks for unit %.*s: %s; %.*s stays in force until the last slice is gone",
                a->terms.users_unit ? "annotation " ANNOTATION_UNIT : "option --gpu-mem-unit",
                STR_ARG(buf_str(&wanted)),
                a->terms.drain ? "no new pod is placed meanwhile (annotation " ANNOTATION_UNIT_CHANGE ")"
                               : "refused while slices are held, and new pods go on being placed (to stop "
                                 "them set annotation " ANNOTATION_UNIT_CHANGE " to drain)",
                STR_ARG(buf_str(&now)));
}

/* The changes that wait, and the unit that is refused, without the holders. Returns the condition's
 * reason, that of the first one; "": nothing. */
static const char *explain_pending(const Agent *a, Fault *ret) {
        const Fault *refused = a->unit_fault.text[0] != '\0' ? &a->unit_fault : &a->wanted_fault;
        bool mode = a->roster.synced && a->terms.mode != a->terms.wanted_mode,
             unit = a->roster.synced && a->terms.unit.mib != a->terms.wanted_unit.mib;
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
        return mode                       ? "GPUShareModeKept"
               : refused->text[0] != '\0' ? "GPUMemoryUnitRefused"
               : unit && a->terms.drain   ? "GPUMemoryUnitDraining"
               : unit                     ? "GPUMemoryUnitKept"
                                          : "";
}

typedef struct Texts {
        Buf name, mem, count, cards, unit, held, gpu_count, stopping, pending, wrong;
} Texts;

static void texts_done(Texts *t) {
        buf_done(&t->name);
        buf_done(&t->mem);
        buf_done(&t->count);
        buf_done(&t->cards);
        buf_done(&t->unit);
        buf_done(&t->held);
        buf_done(&t->gpu_count);
        buf_done(&t->stopping);
        buf_done(&t->pending);
        buf_done(&t->wrong);
}

enum { LABEL_MAX = 63 };

static bool is_plain(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* As ACK writes it, blanks as "-"; and so is all else that no label may have ("Quadro RTX
 * 6000/8000"). */
static void write_label(const char *text, Buf *out) {
        for (const char *p = text; *p && out->len < LABEL_MAX; p++)
                buf_append_char(out, is_plain(*p) || *p == '.' || *p == '_' ? *p : '-');
        while (out->len > 0 && !is_plain(out->data[out->len - 1]))
                out->data[--out->len] = '\0';
}

/* With cards of several kinds the labels, which have room for one, tell of the first. */
static void write_texts(const Agent *a, Texts *t) {
        const MachineCard *first = &a->cards.cards[0];

        write_label(first->model, &t->name);
        buf_appendf(&t->mem, "%uMiB", first->mib);
        buf_append_u64(&t->count, a->cards.n);
        card_info_format(a->inventory.infos, a->inventory.cards.n, &t->cards);
}

static const char *text_of(const Buf *b) {
        return b->len > 0 && !b->broken ? b->data : "";
}

static void write_pending(Agent *a, Texts *t, NodeWords *words) {
        _cleanup_buf_ Buf holders = BUF_NULL;
        Fault change = FAULT_NULL, note = FAULT_NULL;
        const char *reason = explain_pending(a, &change);
        bool held = reason[0] != '\0' && strcmp(reason, "GPUMemoryUnitRefused") != 0;

        if (held)
                list_holders(a, &holders);
        buf_appendf(&t->pending, "%s%s" STR_FMT, change.text, held ? "; held by " : "",
                    STR_ARG(buf_str(&holders)));
        t->pending.broken |= holders.broken;
        if (t->pending.broken)
                return; /* no memory: it is said with the next change */
        if (!a->roster.synced && reason[0] == '\0')
                return; /* who holds slices is not known yet: what an earlier run said stays */
        words->conditions[CONDITION_CHANGE_PENDING] = (ConditionWords){reason, text_of(&t->pending)};
        if (strcmp(a->change_said.text, change.text) == 0)
                return;
        a->change_said = change; /* one Event for a change that waits, not for each holder that goes */
        (void) fault_set(&note, 0, "%s", text_of(&t->pending));
        if (reason[0] != '\0')
                agent_tell(a, reason, &note);
}

static bool is_refused(const Agent *a) {
        return !a->offers && a->unit_fault.text[0] != '\0';
}

/* A node that offers nothing because of its unit says so where the scheduler reads why it may not
 * place there. */
static void write_stopping(const Agent *a, Texts *t) {
        if (is_refused(a))
                buf_append_str(&t->stopping, str_from(a->unit_fault.text));
        else
                terms_write_stopping(&a->terms, &t->stopping);
}

static void write_in_force(const Agent *a, Texts *t, NodeWords *words) {
        bool sharing = share_mode_has_memory(a->terms.mode);

        memory_unit_format(a->terms.unit, &t->unit);
        words->mode_in_force = sharing ? share_mode_to_string(a->terms.mode) : "";
        words->unit_in_force = sharing && !is_refused(a) ? text_of(&t->unit) : "";
        write_stopping(a, t);
        if (a->roster.synced || !sharing)
                words->change_pending = sharing ? text_of(&t->stopping) : "";
}

static void write_misconfigured(const Agent *a, Texts *t, NodeWords *words) {
        if (!a->keys_known)
                return;
        keys_write_wrong(&a->keys, &t->wrong);
        if (!t->wrong.broken)
                words->conditions[CONDITION_MISCONFIGURED] =
                        (ConditionWords){t->wrong.len > 0 ? "InvalidKey" : "", text_of(&t->wrong)};
}

void agent_publish(Agent *a) {
        _cleanup_(texts_done) Texts t = {0};
        NodeWords words = {0};
        bool sharing = share_mode_has_memory(a->terms.mode);

        write_pending(a, &t, &words);
        write_misconfigured(a, &t, &words);
        write_in_force(a, &t, &words);
        orphans_write(a->orphans, &t.held);
        words.held_slices = text_of(&t.held);
        /* On every sharing node, because the DaemonSet stays where this label is: when the mode's
         * label is removed the node keeps its mode, and without its agent the kubelet would refuse
         * each pod from then on. */
        if (a->roster.synced)
                words.holds_slices = agent_holders(a) > 0 ? "true" : sharing ? "false" : "";
        buf_append_u64(&t.gpu_count, sharing ? a->cards.n : 0);
        if (a->cards_known)
                words.gpu_count = text_of(&t.gpu_count);
        if (a->cards_known && a->cards.n > 0) {
                write_texts(a, &t);
                words.card_name = text_of(&t.name);
                words.card_mem = text_of(&t.mem);
                words.card_count = text_of(&t.count);
                words.cards = sharing ? text_of(&t.cards) : "";
                if (sharing && a->node_text &&
                    !a->terms.users_unit) { /* before, whose unit stands there is not known */
                        words.unit = text_of(&t.unit);
                        agent_said_unit(a, words.unit);
                }
        }
        if (publisher_want(a->publisher, &words) < 0)
                log_error("out of memory: the node object is put right later");
}
