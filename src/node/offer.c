/* SPDX-License-Identifier: Apache-2.0 */

/* Offers the cards to the kubelet as devices, in the mode and unit in force, and changes these when
 * nothing holds slices. */

#include <errno.h>

#include "base/log.h"
#include "base/state_file.h"
#include "gpu/cards/cdi.h"
#include "gpu/cards/out_of_service.h"
#include "node/agent-internal.h"

static bool save_text_as(const char *path, const Buf *text, mode_t mode) {
        Fault fault = FAULT_NULL;

        if (state_file_write(path, text, mode, &fault) == 0)
                return true;
        log_error("%s", fault.text); /* only the quick start after the next restart is lost */
        return false;
}

static bool save_text(const char *path, const Buf *text) {
        return save_text_as(path, text, 0600);
}

/* Writes the cards out of service to a file for `aliquot smi`, which any user may run and which
 * asks no API server. */
static void save_out_of_service(const Agent *a) {
        _cleanup_buf_ Buf path = BUF_NULL, text = BUF_NULL;

        out_of_service_path(a->isolation.slicedir.path, &path);
        out_of_service_write(&a->cards.list, &a->node.cordon.cards, &text);
        if (buf_result(&path) < 0 || buf_result(&text) < 0)
                log_error("out of memory: aliquot smi shows other cards out of service than there are");
        else if (text.len > 0)
                (void) save_text_as(path.data, &text, 0644);
        else
                (void) unlink(path.data);
}

static void save_cards(const char *path, const CardList *cards) {
        _cleanup_buf_ Buf text = BUF_NULL;

        card_list_write(cards, &text);
        (void) save_text(path, &text);
}

void agent_save_fences(void *userdata, const CardFences *fences) {
        Agent *a = userdata;
        _cleanup_buf_ Buf text = BUF_NULL;

        a->cards.fences = *fences;
        card_fences_write(fences, &text);
        (void) save_text(a->paths.fences, &text);
}

static void save_node_config(const char *path, NodeState *s) {
        _cleanup_buf_ Buf text = BUF_NULL;

        node_config_write(&s->config, &text);
        s->config_saved = save_text(path, &text);
}

static void save_published_unit(void *userdata, const char *unit) {
        Agent *a = userdata;

        /* A write that failed is tried again: without the file the next agent would take its own
         * text for a user's. */
        if (strcmp(a->node.config.published_unit, unit) == 0 && a->node.config_saved)
                return;
        node_config_publish_unit(&a->node.config, unit);
        save_node_config(a->paths.node_config, &a->node);
}

/* Writes the CDI specification. The runtime reads it when a container starts, so it must exist
 * before the first device is offered. */
static void write_cdi(const char *path, const AgentOptions *o, const CardList *cards) {
        _cleanup_(driver_files_done) DriverFiles driver = {0};
        _cleanup_buf_ Buf text = BUF_NULL;
        bool simulated = o->simulate || o->simulate_dir;
        int r;

        if (o->access != DEVICE_ACCESS_CDI)
                return;
        if (cards->n == 0) {
                (void) unlink(path); /* runtimes reject a specification without devices */
                return;
        }
        if (!simulated) {
                r = driver_files_find(o->host_root, &driver);
                if (r < 0)
                        log_error("cannot find the driver's files under %s: %s", o->host_root, strerror(-r));
        }
        cdi_write(cards, &driver, simulated, &text);
        (void) save_text(path, &text);
}

static void set_devices(Agent *a, OfferedResource resource, bool none) {
        _cleanup_free_ PluginDevice *devices = NULL;
        size_t n = 0;
        int r = 0;

        if (!none)
                r = inventory_devices(&a->inventory, resource, &devices, &n);
        if (r == 0)
                cordon_apply(&a->node.cordon, device_offered_kind(resource), devices, n);
        a->plugins.healthy[resource] = 0;
        for (size_t i = 0; r == 0 && i < n; i++)
                a->plugins.healthy[resource] += devices[i].healthy;
        if (r == 0)
                r = plugin_set_devices(a->plugins.list[resource], devices, n);
        if (r != 0)
                log_error("%s is not offered anew: %s", device_offered_name(resource),
                          r < 0 ? "out of memory" : "the list is too long");
}

/* Whether the cards can be offered in the unit in force. One that was good for all cards stays when
 * a smaller card is added, which then offers nothing. */
static bool is_offered(NodeState *s, const AgentCards *cards) {
        int r;

        s->unit_fault = FAULT_NULL;
        r = inventory_check_unit(&cards->list, s->config.unit, &s->unit_fault);
        if (r == 0 && cards->known && cards->list.n > 0 && !s->config.offered) {
                s->config.offered = true;
                s->config_saved = false;
        }
        return r == 0 || (r == INVENTORY_E_LARGE && s->config.offered);
}

static void set_all_devices(Agent *a) {
        for (int i = 0; i < OFFERED_RESOURCES_; i++)
                if (a->plugins.list[i])
                        set_devices(a, (OfferedResource) i, !a->node.offers || !a->cards.known);
}

static void offer_cards(Agent *a) {
        if (inventory_set(&a->inventory, &a->cards.list, a->node.config.mode, a->node.config.unit) < 0) {
                log_error("out of memory: the cards are offered as before");
                return;
        }
        a->node.offers = is_offered(&a->node, &a->cards);
        if (!a->node.offers)
                log_error("nothing is offered: %s", a->node.unit_fault.text);
        set_all_devices(a);
}

size_t agent_count_holders(const Agent *a) {
        size_t n = orphans_count(a->allocate.orphans);

        for (const RosterPod *pod = a->roster.pods; pod; pod = pod->hh.next)
                n += pod->grant != NULL;
        return n;
}

/* Before the first list of pods, slices of an earlier run may exist. */
static bool slices_are_held(const Agent *a) {
        if (!a->roster.synced)
                return a->node.config.mode != SHARE_MODE_NONE;
        return agent_count_holders(a) > 0;
}

/* Gives the Node to the node's own ledger, which counts in the mode and unit in force, whatever
 * label and annotation ask for. A pending change blocks nothing here, because the agent still
 * admits pods that no scheduler placed. */
static void feed_ledger(Agent *a) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf unit = BUF_NULL;
        Fault fault = FAULT_NULL;
        Node node;
        int r;

        if (!a->node.text || node_decode(str_from(a->node.text), &arena, &node, NULL) != 0)
                return;
        node_defaults_apply(&a->o.defaults, &node);
        node_keys_apply_good(&a->node.keys, &node); /* agent_observe_node() has told the wrong keys */
        memory_unit_format(a->node.config.unit, &unit);
        node.mode = (Str){0};
        if (a->node.config.mode != SHARE_MODE_NONE)
                node.mode = str_from(share_mode_to_string(a->node.config.mode));
        node.annotations.mode_in_force = node.mode;
        node.annotations.unit = buf_str(&unit);
        node.annotations.unit_in_force = buf_str(&unit);
        node.annotations.change_pending = (Str){0};
        r = roster_node(&a->roster, &node, &fault);
        if (r < 0)
                (void) fault_set(&fault, r, "out of memory");
        if (fault.text[0] != '\0' && strcmp(fault.text, a->node.ledger_fault.text) != 0)
                log_warning("node: %s", fault.text);
        a->node.ledger_fault = fault;
}

void agent_publish(Agent *a) {
        _cleanup_buf_ Buf held = BUF_NULL;
        const char *backend;
        const Fault *why;
        MemoryMechanism mechanism = memory_limits_mechanism(a->limits, &backend, &why);

        orphans_write(a->allocate.orphans, &held);
        desired_node_publish(&(DesiredNodeFacts){.state = &a->node,
                                                 .cards = a->cards.known ? &a->cards.list : NULL,
                                                 .driver = &a->cards.driver,
                                                 .inventory = &a->inventory,
                                                 .roster = &a->roster,
                                                 .records = &a->records,
                                                 .n_orphans = orphans_count(a->allocate.orphans),
                                                 .n_holders = agent_count_holders(a),
                                                 .held_slices = &held,
                                                 .limits_known = mechanism != MEMORY_UNTRIED,
                                                 .no_limits = mechanism == MEMORY_UNAVAILABLE ? why : NULL,
                                                 .limits_backend = backend,
                                                 .on_unit = save_published_unit,
                                                 .userdata = a},
                             &a->told, a->publisher);
}

void agent_apply_config(Agent *a) {
        Fault fault = FAULT_NULL;

        if (a->cards.known && a->node.config.wanted_unit.mib != a->node.config.unit.mib &&
            inventory_check_unit(&a->cards.list, a->node.config.wanted_unit, &fault) != 0) {
                a->node.config.wanted_unit = a->node.config.unit;
                a->node.wanted_unit_fault = fault;
        }
        if (!node_state_waits(&a->node) && node_config_apply(&a->node.config, slices_are_held(a))) {
                log_info("in force mode=%s unit=%uMiB", share_mode_to_string(a->node.config.mode),
                         a->node.config.unit.mib);
                offer_cards(a);
                a->node.config_saved = false;
                feed_ledger(a);
        }
        if (!card_indexes_is_empty(&a->node.cordon.cards))
                set_all_devices(a); /* devices of pods that have ended are not offered any more */
        if (!a->node.config_saved && a->node.text)
                save_node_config(a->paths.node_config, &a->node);
        isolation_publish_compute(&a->isolation, &a->inventory);
        agent_tell_cards(&a->events, &a->cards.list);
        agent_publish(a);
}

int agent_set_cards(Agent *a, const CardList *cards) {
        CardList copy = {0};

        if (card_list_copy(cards, &copy) < 0)
                return -ENOMEM;
        card_list_done(&a->cards.list);
        a->cards.list = copy;
        a->cards.known = true;
        /* Before there is a source they are an earlier run's: since a reboot the device files may
         * be other cards'. */
        if (a->cards.source)
                write_cdi(a->paths.cdi, &a->o, &a->cards.list);
        offer_cards(a);
        save_cards(a->paths.cards, &a->cards.list);
        save_out_of_service(a);
        return 0;
}

static void take_cordon(Agent *a) {
        if (memcmp(&a->node.keys.cordon, &a->node.cordon.cards, sizeof a->node.keys.cordon) == 0)
                return;
        a->node.cordon.cards = a->node.keys.cordon;
        set_all_devices(a);
        save_out_of_service(a);
}

static void take_memory_isolation(Agent *a) {
        const char *good = a->node.keys.good[NODE_KEY_MEMORY_ISOLATION];
        char *kept = a->node.config.memory_isolation;

        a->node.config_saved &= strcmp(good, kept) == 0;
        (void) snprintf(kept, sizeof a->node.config.memory_isolation, "%.15s", good);
        memory_limits_want(
                a->limits,
                node_keys_limits_memory(&a->node.keys, a->o.defaults.values[NODE_KEY_MEMORY_ISOLATION]));
}

static void tell_wrong_keys(const NodeKeys *keys, NodeEvents *events) {
        for (int key = 0; key <= NODE_KEYS_; key++)
                if ((keys->changed >> key & 1) != 0 && keys->wrong[key].text[0] != '\0')
                        node_events_now(events, REASON_MISCONFIGURED, keys->wrong[key].text);
}

int agent_observe_node(Agent *a, const Node *node, Str text, bool listed) {
        bool had_cards = a->roster.has_cards, grown = false;
        char *copy = str_dup(text);
        int r;

        if (!copy || slice_growth_observe(&a->allocate.growth, node->annotations.growth, &grown) < 0) {
                free(copy);
                return -ENOMEM;
        }
        free(a->node.text);
        a->node.text = copy;
        a->node.wanted_unit_fault = FAULT_NULL;
        node_state_check_keys(&a->node, node, text, a->cards.known ? &a->cards.list : NULL);
        tell_wrong_keys(&a->node.keys, &a->events.node);
        take_memory_isolation(a);
        take_cordon(a);
        node_state_take_other_plugin(&a->node, text);
        node_config_request(
                &a->node.config,
                &(NodeConfigRequest){.label = node->mode,
                                     .unit = node->annotations.unit,
                                     .configured = a->o.unit,
                                     .place_while_changing = node_keys_place_while_changing(&a->node.keys),
                                     .drain = node_keys_drain(&a->node.keys)});
        (void) node_compute_update(&a->isolation.compute, &node->annotations, a->o.policy,
                                   NULL); /* node_keys_check() has reported wrong values */
        agent_apply_config(a);
        feed_ledger(a);
        /* Pods are checked only once the cards' contents are known, and the pods may have been
         * listed before that. */
        for (RosterPod *pod = a->roster.pods; pod && (!had_cards || grown) && a->roster.synced;
             pod = pod->hh.next) {
                agent_look_at_resize(a, pod);
                if (!had_cards)
                        repair_look(a->allocate.repair, pod);
        }
        r = publisher_observe(a->publisher, node, text, listed);
        agent_plan_growth(a);
        return r;
}
