/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/resolver.h"

#include <errno.h>

#include "base/log.h"
#include "kube/api.h"
#include "node/allocate/allocator.h"
#include "node/allocate/pod_candidate.h"
#include "node/allocate/resolver-internal.h"

#define LIST_TIMEOUT  (2 * USEC_PER_SEC)
#define CALL_DEADLINE (6 * USEC_PER_SEC) /* the kubelet's main loop stands still while it waits for us */
#define LOOK_AGAIN    (20 * USEC_PER_MSEC)

int resolver_new(const ResolverOptions *options, Resolver **ret) {
        Resolver *r = calloc(1, sizeof *r);

        if (!r)
                return -ENOMEM;
        r->o = *options;
        r->node = options->node;
        *ret = r;
        return 0;
}

void resolver_call_free(PreferredCall *call) {
        *call->link = call->next;
        if (call->next)
                call->next->link = call->link;
        pod_resources_call_free(call->list);
        kube_call_free(call->get);
        free(call->get_name);
        for (size_t i = 0; i < call->n_gone; i++)
                free(call->gone[i]);
        sd_event_source_disable_unref(call->again);
        sd_event_source_disable_unref(call->deadline);
        device_set_done(&call->available);
        device_set_done(&call->must_include);
        free(call);
}

Resolver *resolver_free(Resolver *r) {
        if (!r)
                return NULL;
        while (r->calls)
                resolver_call_free(r->calls);
        pending_admission_end(&r->pending);
        free(r);
        return NULL;
}

ResolverCounters resolver_counters(const Resolver *r) {
        return r->counters;
}

/* ---- which container is it ---- */

static PodCandidateQuery query_of(const PreferredCall *call) {
        const NodeContext *node = call->resolver->node;

        return (PodCandidateQuery){.roster = node->roster,
                                   .records = node->records,
                                   .kind = call->kind,
                                   .size = call->size,
                                   .gone = call->gone,
                                   .n_gone = call->n_gone};
}

static void look_at_list(PreferredCall *call);

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        PreferredCall *call = userdata;

        call->again = sd_event_source_disable_unref(call->again);
        look_at_list(call);
        return 0;
}

static bool can_place(const PreferredCall *call, const RosterPod *pod) {
        return pod->placed || call->resolver->node->roster->has_cards;
}

/* Whether the container can be answered now. Where the cards of its annotations are impossible, the
 * Node's cards must be known for another placement. */
static bool can_settle(const PreferredCall *call, const PodCandidate *found) {
        Fault why = FAULT_NULL;

        return can_place(call, found->pod) &&
               (call->resolver->node->roster->has_cards ||
                !resolver_must_move(call, found->pod, found->container, found->listed, &why));
}

/* Answers with what is known, though List has not shown the container. */
static void give_up(PreferredCall *call) {
        const Resolver *r = call->resolver;
        PodCandidateQuery query = query_of(call);
        const RosterContainer *c = NULL;
        RosterPod *pod = NULL;

        if (!call->listed)
                pod = pod_candidate_guess(&query, pending_admission_uid(&r->pending), &c);
        if (!pod || !can_place(call, pod)) {
                resolver_settle_unknown(call);
                return;
        }
        log_warning("the kubelet does not list its pods: %u of %s are taken for pod=%s/%s", call->size,
                    inventory_resource(call->resolver->node->inventory, call->kind), pod->namespace_,
                    pod->name);
        resolver_settle(call, pod, c, false, NULL);
}

static void look_again(PreferredCall *call) {
        if (call->looks++ >= RESOLVER_LOOKS_MAX ||
            sd_event_add_time_relative(call->resolver->node->event, &call->again, CLOCK_MONOTONIC, LOOK_AGAIN,
                                       0, on_again, call) < 0)
                give_up(call);
}

/* Looks again until the Node's cards are known: an agent that has just begun may know its pods
 * before. Such looks do not count; the deadline of the call ends them. */
static void wait_for_cards(PreferredCall *call) {
        call->looks = 0;
        look_again(call);
}

/* Whether the pod may be static: these are called NAME-NODE in the API, where they appear when they
 * have been admitted. */
static bool may_be_static(const PreferredCall *call) {
        const char *node_name = call->resolver->node->roster->node_name;
        size_t n = strlen(call->get_name), node = strlen(node_name);

        return n > node && call->get_name[n - node - 1] == '-' &&
               strcmp(call->get_name + n - node, node_name) == 0;
}

/* Takes the pod's object from a GET: the kubelet knew of the pod before our watch did. */
static void on_pod(void *userdata, const KubeReply *reply) {
        PreferredCall *call = userdata;
        Roster *roster = call->resolver->node->roster;
        size_t known = HASH_COUNT(roster->pods);

        call->get = NULL;
        if (reply->outcome == KUBE_DONE && reply->status == 404 && !may_be_static(call) &&
            call->n_gone < RESOLVER_LOOKS_MAX)
                call->gone[call->n_gone++] = TAKE_PTR(call->get_name);
        if (reply->outcome == KUBE_DONE && reply->status == 200)
                (void) roster_pod(roster, REFLECTOR_MODIFIED, reply->body);
        /* An agent that has just begun may have to ask for each pod of the node. */
        if (HASH_COUNT(roster->pods) > known)
                call->looks = 0;
        look_again(call);
}

/* Refuses a pod that was deleted meanwhile: it has no cards any more, and must not take those of
 * another pod. Its failure has no effect. */
static void refuse_gone(PreferredCall *call) {
        Fault fault = FAULT_NULL;

        (void) fault_set(&fault, 0, "pod %s is gone from the API server", call->gone[call->n_gone - 1]);
        resolver_refuse(call, NULL, fault.text);
}

static int keep_name(PreferredCall *call, const ListedPod *pod) {
        Buf name = BUF_NULL;

        buf_appendf(&name, STR_FMT "/" STR_FMT, STR_ARG(pod->namespace_), STR_ARG(pod->name));
        free(call->get_name);
        call->get_name = buf_take(&name);
        return call->get_name ? 0 : -ENOMEM;
}

static void get_pod(PreferredCall *call, const ListedPod *pod) {
        if (keep_name(call, pod) < 0 || kube_get_pod(call->resolver->node->client, pod->namespace_, pod->name,
                                                     on_pod, call, &call->get) < 0)
                look_again(call);
}

static void on_list(void *userdata, const PodList *list, const Fault *fault) {
        PreferredCall *call = userdata;
        const RosterPod *refused;
        PodCandidateQuery query = query_of(call);
        PodCandidate found;

        call->list = NULL;
        if (!list) {
                log_warning("the kubelet does not list its pods: %s", fault->text);
                look_again(call);
                return;
        }
        call->listed = true;
        found = pod_candidate_find(&query, list);
        if (found.n > 1)
                log_warning("%zu pods could be the one that is admitted; taken for %s/%s", found.n,
                            found.pod->namespace_, found.pod->name);
        if (found.pod && !call->get_name && pod_candidate_is_doubtful(&query, &found))
                get_pod(call, found.listed);
        else if (found.pod && !can_settle(call, &found))
                wait_for_cards(call);
        else if (found.pod)
                resolver_settle(call, found.pod, found.container, found.with_other, found.listed);
        else if (found.new)
                get_pod(call, found.new);
        else if ((refused = pod_candidate_refused(&query, list)))
                resolver_refuse(call, refused, refused->refusal);
        else if (found.gone)
                refuse_gone(call);
        else
                look_again(call);
}

static void look_at_list(PreferredCall *call) {
        if (pod_resources_list(call->resolver->node->pod_resources, LIST_TIMEOUT, on_list, call,
                               &call->list) < 0)
                look_again(call);
}

/* ---- the calls ---- */

static void on_close(void *userdata) {
        resolver_call_free(userdata);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        give_up(userdata);
        return 0;
}

static int start_deadline(PreferredCall *call) {
        int r = sd_event_add_time_relative(call->resolver->node->event, &call->deadline, CLOCK_MONOTONIC,
                                           CALL_DEADLINE, 0, on_deadline, call);

        if (r >= 0)
                r = sd_event_source_set_priority(call->deadline, POD_RESOURCES_DEADLINE_PRIORITY);
        return r < 0 ? r : 0;
}

static int read_request(PreferredCall *call, const PreferredRequest *request, Fault *fault) {
        int r;

        r = device_set_parse(request->available.ids, request->available.n, call->kind, &call->available,
                             fault);
        if (r == 0)
                r = device_set_parse(request->must_include.ids, request->must_include.n, call->kind,
                                     &call->must_include, fault);
        if (r != 0)
                return r;
        if (request->size == 0 || request->size > call->available.n)
                return fault_set(fault, DEVICE_E_MALFORMED, "%u devices of %zu available ones", request->size,
                                 call->available.n);
        return 0;
}

static void fail_call(RpcCall *rpc, int r, const Fault *fault) {
        if (r < 0)
                rpc_fail(rpc, RPC_RESOURCE_EXHAUSTED, "out of memory");
        else
                rpc_fail(rpc, RPC_INVALID_ARGUMENT, fault->text);
}

void resolver_preferred(Resolver *r, DeviceKind kind, RpcCall *rpc, const PreferredRequest *request) {
        PreferredCall *call = calloc(1, sizeof *call);
        Fault fault = FAULT_NULL;
        const RosterContainer *c;
        RosterPod *pod;
        int e;

        if (!call) {
                rpc_fail(rpc, RPC_RESOURCE_EXHAUSTED, "out of memory");
                return;
        }
        *call = (PreferredCall){.resolver = r,
                                .rpc = rpc,
                                .kind = kind,
                                .size = request->size,
                                .began = clock_monotonic_usec(),
                                .next = r->calls,
                                .link = &r->calls};
        if (call->next)
                call->next->link = &call->next;
        r->calls = call;
        e = read_request(call, request, &fault);
        if (e == 0)
                e = start_deadline(call);
        if (e != 0) {
                fail_call(rpc, e, &fault);
                resolver_call_free(call);
                return;
        }
        rpc_call_on_close(rpc, on_close, call);
        if (pending_admission_continues(&r->pending, r->node->roster, kind, request->size, &pod, &c))
                resolver_settle(call, pod, c, false, NULL);
        else
                look_at_list(call);
}

void resolver_forget(Resolver *r) {
        pending_admission_end(&r->pending);
}

void resolver_allocate(Resolver *r, DeviceKind kind, RpcCall *rpc, PluginIds ids) {
        _cleanup_devices_ DeviceSet set = DEVICE_SET_NULL;
        Fault fault = FAULT_NULL;
        Allocator allocator = {
                .node = r->node, .pending = &r->pending, .with_cdi = r->o.access == DEVICE_ACCESS_CDI};
        int e;

        e = device_set_parse(ids.ids, ids.n, kind, &set, &fault);
        if (e == 0)
                e = allocator_check(&allocator, kind, &set, &fault);
        if (e != 0) {
                fail_call(rpc, e, &fault);
                return;
        }
        r->counters.allocated++;
        if (!allocator_answer(&allocator, kind, &set, rpc))
                r->counters.strayed++;
}
