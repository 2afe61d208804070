/* SPDX-License-Identifier: Apache-2.0 */

/* Events of the cards: the list of cards, and at each census what each process holds and uses. */

#include <errno.h>

#include "base/log.h"
#include "gpu/cards/simulated_cards.h"
#include "node/agent-internal.h"

static void on_cards(void *userdata, const CardList *cards) {
        Agent *a = userdata;

        for (size_t i = 0; i < cards->n; i++)
                log_info("card index=%u uuid=%s mib=%u healthy=%s%s%s", cards->cards[i].index,
                         cards->cards[i].uuid, cards->cards[i].mib,
                         cards->cards[i].healthy ? "true" : "false", cards->cards[i].trouble[0] ? ": " : "",
                         cards->cards[i].trouble);
        if (cards->unnamed[0] != '\0')
                log_warning("%s: it is not shared", cards->unnamed);
        if (agent_set_cards(a, cards) < 0)
                log_error("out of memory: the cards are offered as before");
        agent_apply_config(a);
        a->allocate.context.cards_are_old = false;
        start_verifier_wake(a->allocate.start_verifier);
}

static void on_card_trouble(void *userdata, const Fault *fault) {
        Agent *a = userdata;

        a->cards.troubles++;
        log_warning("cards: %s", fault->text);
        node_events_once(&a->events.node, REASON_DRIVER_TROUBLE, fault);
}

/* Judges the driver. Only new containers are refused: running ones keep their slices, because no
 * driver can be replaced below them. */
static void on_driver(void *userdata, const char *version, bool locks) {
        Agent *a = userdata;

        a->cards.driver = locks ? driver_release_judge(str_from(version), a->o.known_drivers)
                                : driver_release_without_locks();
        a->isolation.unsupported = a->cards.driver.refused ? a->cards.driver.fault : (Fault) FAULT_NULL;
        (void) snprintf(a->cards.driver.version, sizeof a->cards.driver.version, "%s", version);
        log_info("driver version=%s", version);
        if (a->cards.driver.fault.text[0] != '\0') {
                log_warning("%s", a->cards.driver.fault.text);
                node_events_once(&a->events.node, REASON_DRIVER_UNSUPPORTED, &a->cards.driver.fault);
        }
        agent_publish(a);
}

static void warn_of_untold(const ComputeAudit *audit, const CardCensus *census, NodeEvents *events) {
        for (size_t i = 0; i < census->n_spans && compute_audit_wants(audit); i++) {
                Fault why = FAULT_NULL;

                if (census->spans[i].untold[0] == '\0')
                        continue;
                (void) fault_set(
                        &why, 0,
                        "the driver does not report what processes use of %s, so a container may use more "
                        "than its share unseen: %s",
                        census->spans[i].uuid, census->spans[i].untold);
                node_events_once(events, REASON_USE_UNTOLD, &why);
                return;
        }
}

static void on_usage(void *userdata, const CardCensus *census) {
        Agent *a = userdata;
        Fault why = FAULT_NULL;

        a->cards.census_at = clock_monotonic_usec();
        if (census->untold[0] != '\0') {
                (void) fault_set(
                        &why, 0,
                        "not all processes that hold memory of the cards are known, so a container may hold "
                        "more than its slice unseen: %s",
                        census->untold);
                node_events_once(&a->events.node, REASON_PROCESSES_UNTOLD, &why);
        }
        memory_audit_take(a->audit.memory, census);
        warn_of_untold(a->audit.compute, census, &a->events.node);
        compute_audit_take(a->audit.compute, census);
}

static void on_session(void *userdata) {
        const Agent *a = userdata;

        memory_limits_session(a->limits);
}

static const CardSourceHandler card_handler = {on_cards, on_card_trouble, agent_save_fences,
                                               on_usage, on_driver,       on_session};

/* The simulated driver's NVML reads the variable in the child process that is forked later. */
static int use_simulated(const SimulatedDriver *s, Buf *nvml, Buf *ctl, CardSourceOptions *options) {
        int r = s->dir ? simulated_driver_nvml(s, nvml) : -ENOMEM;

        if (r < 0)
                return r;
        if (!options->library)
                options->library = nvml->data;
        buf_appendf(ctl, "%s/nvidiactl", s->dir);
        r = buf_result(ctl);
        if (r < 0)
                return r;
        options->ctl = ctl->data;
        return setenv("ALIQUOT_SIM_DIR", s->dir, 1) < 0 ? -errno : 0;
}

int agent_start_card_events(Agent *a, Fault *fault) {
        _cleanup_(card_list_done) CardList simulated = {0};
        _cleanup_buf_ Buf nvml = BUF_NULL, ctl = BUF_NULL;
        CardSourceOptions options = {
                .library = a->o.nvml,
                .host_root = a->o.host_root,
                .known = a->cards.known ? &a->cards.list : NULL,
                .fences = &a->cards.fences,
                .census = a->o.census,
        };
        int r;

        if (a->o.simulate) {
                r = cards_simulate(str_from(a->o.simulate), str_from(a->o.node_name), &simulated, fault);
                if (r != 0)
                        return r < 0 ? r : -EINVAL;
                options.simulated = &simulated;
        }
        if (a->o.simulate_dir) {
                r = use_simulated(&a->isolation.simulated, &nvml, &ctl, &options);
                if (r < 0)
                        return r;
        }
        r = card_source_new(a->event, &options, &card_handler, a, &a->cards.source);
        if (r == 0)
                memory_limits_set_source(a->limits, a->cards.source);
        return r;
}
