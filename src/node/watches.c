/* SPDX-License-Identifier: Apache-2.0 */

/* Watches of the API server: the pods of this node, and its Node object. */

#include <errno.h>

#include "base/log.h"
#include "kube/escape.h"
#include "node/agent-internal.h"
#include "node/allocate/slice_resize.h"

#define LIST_AGAIN   (1 * USEC_PER_SEC)
#define RESIZE_AGAIN (5 * USEC_PER_SEC)

static int follow_pods(Agent *a);

static int on_list_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Agent *a = userdata;

        a->watches.list_again = sd_event_source_disable_unref(a->watches.list_again);
        if (follow_pods(a) < 0)
                log_error("out of memory: pods are not followed any more");
        return 0;
}

static void list_again_later(Agent *a) {
        log_error("out of memory: pods are listed again");
        if (!a->watches.list_again)
                (void) sd_event_add_time_relative(a->event, &a->watches.list_again, CLOCK_MONOTONIC,
                                                  LIST_AGAIN, 0, on_list_again, a);
}

static void on_pods_begin(void *userdata) {
        Agent *a = userdata;

        roster_list_begin(&a->roster);
}

static void on_pod_object(void *userdata, ReflectorEvent event, Str object) {
        Agent *a = userdata;

        if (roster_pod(&a->roster, event, object) < 0)
                list_again_later(a);
}

/* Starts after the first list of pods: the arbiter reports each kernel once, and a report of an
 * unknown pod would be lost. Until then the pipe keeps the reports. */
static void start_hung_reader(Agent *a) {
        int r = hung_reader_new(a->event, a->o.arbiter, enforce_hung, &a->audit, &a->audit.hung_reader);

        if (r < 0)
                log_error("nobody will hear of kernels that do not end: %s", strerror(-r));
}

static int on_resize_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Agent *a = userdata;

        a->watches.resize_again = sd_event_source_disable_unref(a->watches.resize_again);
        for (RosterPod *pod = a->roster.pods; pod; pod = pod->hh.next)
                agent_look_at_resize(a, pod);
        agent_plan_growth(a);
        return 0;
}

static void look_at_resizes_later(Agent *a, const char *what) {
        if (!a->watches.resize_again &&
            sd_event_add_time_relative(a->event, &a->watches.resize_again, CLOCK_MONOTONIC, RESIZE_AGAIN, 0,
                                       on_resize_again, a) < 0)
                log_error("out of memory: %s is resized when it changes", what);
}

void agent_plan_growth(Agent *a) {
        const Roster *roster = &a->roster;
        _cleanup_buf_ Buf text = BUF_NULL;
        const char *seen = a->allocate.growth.seen ? a->allocate.growth.seen : "";
        bool waits = false;
        int r;

        if (!roster->synced || roster->listing || !roster->has_cards)
                return;
        r = slice_growth_plan(&a->allocate.growth, &a->allocate.context,
                              clock_realtime_nsec() / NSEC_PER_USEC, &text, &waits);
        if (r < 0 ||
            publisher_set_growth(a->publisher, r > 0 ? seen : NULL, text.data ? text.data : "") < 0 || waits)
                look_at_resizes_later(a, "a slice");
}

void agent_look_at_resize(Agent *a, RosterPod *pod) {
        const SliceResize resize = {.node = &a->allocate.context,
                                    .ignores_disable = a->o.ignores_disable,
                                    .on_refused = agent_tell_resize_refused,
                                    .userdata = &a->events};

        if (slice_resize_look(&resize, pod))
                look_at_resizes_later(a, pod->name);
}

static void on_pods_end(void *userdata) {
        Agent *a = userdata;
        bool first = !a->roster.synced;

        roster_list_end(&a->roster);
        if (first) {
                start_verifier_adopt(a->allocate.start_verifier);
                start_hung_reader(a);
        }
        orphans_sweep(a->allocate.orphans);
        isolation_sweep(&a->isolation, &a->records);
        for (RosterPod *pod = a->roster.pods; pod; pod = pod->hh.next) {
                agent_look_at_resize(a, pod);
                repair_look(a->allocate.repair, pod);
        }
        agent_plan_growth(a);
        agent_apply_config(a);
        start_verifier_wake(a->allocate.start_verifier);
}

static void on_pod_change(void *userdata, Str uid, RosterPod *pod) {
        Agent *a = userdata;
        bool held = records_find(&a->records, uid) != NULL;

        if (pod)
                start_verifier_keep_place(a->allocate.start_verifier, pod);
        if (!a->roster.synced)
                return; /* all pods are checked when the list is complete */
        orphans_look(a->allocate.orphans, uid, pod);
        if (pod) {
                start_verifier_recall(a->allocate.start_verifier, pod);
                agent_look_at_resize(a, pod);
                repair_look(a->allocate.repair, pod);
        } else
                repair_forget(a->allocate.repair, uid);
        if (a->roster.listing)
                return;
        /* The object of an ended pod may stay. */
        if (!pod || (held && !records_find(&a->records, uid)))
                isolation_sweep(&a->isolation, &a->records);
        agent_plan_growth(a);
        agent_apply_config(a);
        start_verifier_wake(a->allocate.start_verifier);
}

static void on_pods_trouble(void *userdata, const Fault *fault) {
        log_warning("pods: %s", fault->text);
}

static const ReflectorHandler pods_handler = {on_pods_begin, on_pod_object, on_pods_end, on_pods_trouble};

static void on_nodes_begin(void *userdata) {
}

static void on_node_object(void *userdata, ReflectorEvent event, Str object) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        Agent *a = userdata;
        Node node;
        int r;

        if (event == REFLECTOR_DELETED)
                return; /* the kubelet creates it again; the last values stay in force until then */
        r = node_decode(object, &arena, &node, &fault);
        if (r == 0)
                node_defaults_apply(&a->o.defaults, &node);
        if (r == 0 && !str_eq(node.meta.name, str_from(a->o.node_name)))
                return;
        if (r == 0) {
                node_events_set_uid(&a->events.node, node.meta.uid);
                r = agent_observe_node(a, &node, object, event == REFLECTOR_LISTED);
        }
        if (r != 0)
                log_warning("node: %s", fault.text[0] ? fault.text : "out of memory");
}

static void on_nodes_end(void *userdata) {
}

static void on_nodes_trouble(void *userdata, const Fault *fault) {
        log_warning("node: %s", fault->text);
}

static const ReflectorHandler nodes_handler = {on_nodes_begin, on_node_object, on_nodes_end,
                                               on_nodes_trouble};

static int follow_objects(Agent *a, const char *path, const char *field, const ReflectorHandler *handler,
                          Reflector **ret) {
        _cleanup_buf_ Buf selector = BUF_NULL;

        buf_appendf(&selector, "fieldSelector=%s%%3D", field);
        kube_url_escape(&selector, str_from(a->o.node_name));
        if (buf_result(&selector) < 0)
                return -ENOMEM;
        *ret = reflector_free(*ret);
        return reflector_new(a->client, &(ReflectorOptions){.path = path, .selector = selector.data}, handler,
                             a, ret);
}

static int follow_pods(Agent *a) {
        return follow_objects(a, "/api/v1/pods", "spec.nodeName", &pods_handler, &a->watches.pods);
}

int agent_start_watches(Agent *a) {
        int r;

        a->roster.on_pod = on_pod_change;
        a->roster.userdata = a;
        r = follow_pods(a);
        return r < 0 ? r
                     : follow_objects(a, "/api/v1/nodes", "metadata.name", &nodes_handler, &a->watches.nodes);
}
