/* SPDX-License-Identifier: Apache-2.0 */

/* From cards, mode and unit to what the kubelet is told. */

#include <errno.h>

#include "base/log.h"
#include "base/state_file.h"
#include "node/agent-internal.h"

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
        /* What a full disk did not take is tried again: without it the next agent would take our word for the user's. */
        if (strcmp(a->terms.said_unit, unit) == 0 && a->terms_saved)
                return;
        (void) snprintf(a->terms.said_unit, sizeof a->terms.said_unit, "%s", unit);
        save_terms(a);
}

/* The runtime reads the specification when a container starts: it stands before the first device is offered. */
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

static void offer(Agent *a) {
        bool too_long;

        a->unit_fault = FAULT_NULL;
        too_long = inventory_check_unit(&a->cards, a->terms.unit, &a->unit_fault) != 0;
        if (inventory_set(&a->inventory, &a->cards, a->terms.mode, a->terms.unit) < 0) {
                log_error("out of memory: the cards are offered as before");
                return;
        }
        if (too_long)
                log_error("nothing is offered: %s", a->unit_fault.text);
        for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                if (a->plugins[kind])
                        set_devices(a, (DeviceKind) kind, too_long || !a->cards_known);
}

size_t agent_holders(const Agent *a) {
        size_t n = dying_count(a->dying);

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
                save_terms(a);
                offer(a);
        }
        isolation_say_compute(&a->isolation, &a->inventory);
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

static void take_compute(Agent *a, const Node *node) {
        const ComputeTerms *t = &a->isolation.compute.terms;
        Fault said = FAULT_NULL, fault = FAULT_NULL;

        if (node_compute_want(&a->isolation.compute, &node->annotations, a->o.policy, &said) == 0)
                return;
        (void) fault_set(&fault, 0, "%s; what was in force stays: policy %u", said.text, t->policy);
        agent_warn(a, "GPUComputePolicyRefused", &fault);
}

void agent_take_node(Agent *a, const Node *node) {
        Fault fault = FAULT_NULL;

        a->wanted_fault = FAULT_NULL;
        if (terms_want(&a->terms, node->mode, node->annotations.unit, a->o.unit, &fault) != 0)
                agent_warn(a, "GPUMemoryUnitRefused", &fault);
        take_compute(a, node);
        agent_settle(a);
        if (publisher_saw(a->publisher, node) < 0)
                log_error("out of memory: the node object is put right with its next event");
}
