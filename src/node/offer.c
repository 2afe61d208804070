/* SPDX-License-Identifier: Apache-2.0 */

/* From cards, mode and unit to what the kubelet is told. */

#include <errno.h>

#include "base/log.h"
#include "base/state_file.h"
#include "node/events-internal.h"

static bool save_text(const char *path, const Buf *text) {
        Fault fault = FAULT_NULL;

        if (state_file_write(path, text, 0600, &fault) == 0)
                return true;
        log_error("%s", fault.text); /* nothing is lost but the head start of the next restart */
        return false;
}

static void save_cards(const Agent *a) {
        _cleanup_buf_ Buf text = BUF_NULL;

        card_list_write(&a->cards, &text);
        (void) save_text(a->cards_file, &text);
}

void agent_take_fences(void *userdata, const CardFences *fences) {
        const Agent *a = userdata;
        _cleanup_buf_ Buf text = BUF_NULL;

        card_fences_write(fences, &text);
        (void) save_text(a->fences_file, &text);
}

static void save_terms(Agent *a) {
        _cleanup_buf_ Buf text = BUF_NULL;

        terms_write(&a->terms, &text);
        a->terms_saved = save_text(a->terms_file, &text);
}

void agent_said_unit(Agent *a, const char *unit) {
        /* What a full disk did not take is tried again: without it the next agent would take this
         * text for a user's. */
        if (strcmp(a->terms.said_unit, unit) == 0 && a->terms_saved)
                return;
        (void) snprintf(a->terms.said_unit, sizeof a->terms.said_unit, "%s", unit);
        save_terms(a);
}

/* The runtime reads the specification when a container starts: it stands before the first device is
 * offered. */
static void write_cdi(const Agent *a) {
        _cleanup_(driver_files_done) DriverFiles driver = {0};
        _cleanup_buf_ Buf text = BUF_NULL;
        bool simulated = a->o.simulate || a->o.simulate_dir;
        int r;

        if (a->o.access != DEVICE_ACCESS_CDI)
                return;
        if (a->cards.n == 0) {
                (void) unlink(a->cdi_file); /* a specification without devices is an error to every runtime */
                return;
        }
        if (!simulated) {
                r = driver_files_find(a->o.host_root, &driver);
                if (r < 0)
                        log_error("cannot find the driver's files under %s: %s", a->o.host_root,
                                  strerror(-r));
        }
        cdi_write(&a->cards, &driver, simulated, &text);
        (void) save_text(a->cdi_file, &text);
}

static void set_devices(Agent *a, DeviceKind kind, bool none) {
        _cleanup_free_ PluginDevice *devices = NULL;
        size_t n = 0;
        int r = 0;

        if (!none)
                r = inventory_devices(&a->inventory, kind, &devices, &n);
        a->healthy[kind] = 0;
        for (size_t i = 0; r == 0 && i < n; i++)
                a->healthy[kind] += devices[i].healthy;
        if (r == 0)
                r = plugin_set_devices(a->plugins[kind], devices, n);
        if (r != 0)
                log_error("%s is not offered anew: %s", device_resource(kind),
                          r < 0 ? "out of memory" : "the list is too long");
}

/* A unit that was good for all cards once stays in force when a smaller card is added: that card
 * offers nothing. */
static bool is_offered(Agent *a) {
        int r;

        a->unit_fault = FAULT_NULL;
        r = inventory_check_unit(&a->cards, a->terms.unit, &a->unit_fault);
        if (r == 0 && a->cards_known && a->cards.n > 0 && !a->terms.offered) {
                a->terms.offered = true;
                a->terms_saved = false;
        }
        return r == 0 || (r == INVENTORY_E_LARGE && a->terms.offered);
}

static void offer(Agent *a) {
        if (inventory_set(&a->inventory, &a->cards, a->terms.mode, a->terms.unit) < 0) {
                log_error("out of memory: the cards are offered as before");
                return;
        }
        a->offers = is_offered(a);
        if (!a->offers)
                log_error("nothing is offered: %s", a->unit_fault.text);
        for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                if (a->plugins[kind])
                        set_devices(a, (DeviceKind) kind, !a->offers || !a->cards_known);
}

size_t agent_holders(const Agent *a) {
        size_t n = orphans_count(a->orphans);

        for (const RosterPod *pod = a->roster.pods; pod; pod = pod->hh.next)
                n += pod->grant != NULL;
        return n;
}

/* Until the pods have been listed, an earlier run's slices may be out there. */
static bool slices_are_held(const Agent *a) {
        if (!a->roster.synced)
                return a->terms.mode != SHARE_MODE_NONE;
        return agent_holders(a) > 0;
}

/* The node's own ledger counts in what this agent says is in force, whatever label and annotation
 * ask for. The agent goes on admitting pods that the scheduler did not place, so a change that
 * waits stops nothing here. */
static void feed_ledger(Agent *a) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf unit = BUF_NULL;
        Fault fault = FAULT_NULL;
        Node node;
        int r;

        if (!a->node_text || node_decode(str_from(a->node_text), &arena, &node, NULL) != 0)
                return;
        node_defaults_apply(&a->o.defaults, &node);
        keys_apply_good(&a->keys, &node); /* wrong keys are reported once, by agent_take_node() */
        memory_unit_format(a->terms.unit, &unit);
        node.mode = (Str){0};
        if (a->terms.mode != SHARE_MODE_NONE)
                node.mode = str_from(share_mode_to_string(a->terms.mode));
        node.annotations.mode_in_force = node.mode;
        node.annotations.unit = buf_str(&unit);
        node.annotations.unit_in_force = buf_str(&unit);
        node.annotations.change_pending = (Str){0};
        r = roster_node(&a->roster, &node, &fault);
        if (r < 0)
                (void) fault_set(&fault, r, "out of memory");
        if (fault.text[0] != '\0' && strcmp(fault.text, a->node_fault.text) != 0)
                log_warning("node: %s", fault.text);
        a->node_fault = fault;
}

void agent_settle(Agent *a) {
        Fault fault = FAULT_NULL;

        if (a->cards_known && a->terms.wanted_unit.mib != a->terms.unit.mib &&
            inventory_check_unit(&a->cards, a->terms.wanted_unit, &fault) != 0) {
                a->terms.wanted_unit = a->terms.unit;
                a->wanted_fault = fault;
        }
        if (terms_settle(&a->terms, slices_are_held(a))) {
                log_info("in force mode=%s unit=%uMiB", share_mode_to_string(a->terms.mode),
                         a->terms.unit.mib);
                offer(a);
                a->terms_saved = false;
                feed_ledger(a);
        }
        if (!a->terms_saved && a->node_text)
                save_terms(a);
        isolation_publish_compute(&a->isolation, &a->inventory);
        agent_publish(a);
}

int agent_take_cards(Agent *a, const CardList *cards) {
        CardList copy = {0};

        if (card_list_copy(cards, &copy) < 0)
                return -ENOMEM;
        card_list_done(&a->cards);
        a->cards = copy;
        a->cards_known = true;
        write_cdi(a);
        offer(a);
        save_cards(a);
        return 0;
}

static void check_keys(Agent *a, const Node *node) {
        _cleanup_buf_ Buf unit = BUF_NULL;

        memory_unit_format(a->terms.unit, &unit);
        keys_check(&a->keys, node, share_mode_to_string(a->terms.mode),
                   buf_result(&unit) < 0 ? "" : unit.data);
        a->keys_known = true;
        for (int key = 0; key < NODE_KEYS_; key++)
                if ((a->keys.changed >> key & 1) != 0 && a->keys.wrong[key].text[0] != '\0')
                        agent_tell_node(a, "GPUShareMisconfigured", a->keys.wrong[key].text);
}

int agent_take_node(Agent *a, const Node *node, Str text, bool listed) {
        bool had_cards = a->roster.has_cards;
        char *copy = str_dup(text);

        if (!copy)
                return -ENOMEM;
        free(a->node_text);
        a->node_text = copy;
        a->wanted_fault = FAULT_NULL;
        check_keys(a, node);
        terms_want(&a->terms, &(TermsWish){.label = node->mode,
                                           .unit = node->annotations.unit,
                                           .configured = a->o.unit,
                                           .place_while_changing = keys_place_while_changing(&a->keys),
                                           .drain = keys_drain(&a->keys)});
        (void) node_compute_update(&a->isolation.compute, &node->annotations, a->o.policy,
                                   NULL); /* what is wrong there is among the keys */
        agent_settle(a);
        feed_ledger(a);
        /* Nothing is judged before it is known what the cards hold, and the pods may have been
         * listed before. */
        for (const RosterPod *pod = a->roster.pods; pod && !had_cards && a->roster.synced; pod = pod->hh.next)
                repair_look(a->repair, pod);
        return publisher_saw(a->publisher, node, text, listed);
}
