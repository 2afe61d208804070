/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/start_verifier.h"

#include <errno.h>

#include "base/log.h"
#include "node/allocate/evidence.h"
#include "node/allocate/start_check.h"

#define WAIT_MAX     (5 * USEC_PER_SEC)
#define LOOK_AGAIN   (100 * USEC_PER_MSEC)
#define LIST_TIMEOUT (4 * USEC_PER_SEC)

static const Fault no_memory = {.text = "out of memory"};

/* One PreStartContainer that is not answered yet. */
typedef struct StartCall {
        struct StartCall *next, **link;
        StartVerifier *verifier;
        RpcCall *rpc;
        DeviceKind kind;
        DeviceSet set;
        PodResourcesCall *list;
        Evidence listed; /* what List showed, when the checkpoint showed nothing */
        sd_event_source *again;
        usec_t deadline;
        bool has_waited;
        bool asked; /* it waits for the driver's answer, of which start_verifier_wake_pod() tells */
        bool woken; /* start_verifier_wake_pod() attempts it */
} StartCall;

struct StartVerifier {
        StartVerifierOptions o;
        const NodeContext *node;
        StartCall *calls;
        CheckpointFile checkpoint; /* parsed only when it changes: many calls may look at it often */
        StartVerifierCounters counters;
};

int start_verifier_new(const StartVerifierOptions *options, StartVerifier **ret) {
        StartVerifier *v = calloc(1, sizeof *v);

        if (!v)
                return -ENOMEM;
        v->o = *options;
        v->node = options->node;
        if (v->o.wait_max == 0)
                v->o.wait_max = WAIT_MAX;
        v->checkpoint = evidence_file(v->o.checkpoint);
        *ret = v;
        return 0;
}

static void call_free(StartCall *call) {
        StartVerifier *v = call->verifier;

        *call->link = call->next;
        if (call->next)
                call->next->link = call->link;
        pod_resources_call_free(call->list);
        evidence_done(&call->listed);
        sd_event_source_disable_unref(call->again);
        device_set_done(&call->set);
        free(call);
        if (!v->calls)
                checkpoint_file_done(&v->checkpoint); /* it may be large */
}

StartVerifier *start_verifier_free(StartVerifier *v) {
        if (!v)
                return NULL;
        while (v->calls)
                call_free(v->calls);
        free(v);
        return NULL;
}

StartVerifierCounters start_verifier_counters(const StartVerifier *v) {
        StartVerifierCounters counters = v->counters;

        for (const StartCall *call = v->calls; call; call = call->next)
                counters.waiting++;
        return counters;
}

/* ---- answering, now or later ---- */

static void attempt_start(StartCall *call);

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        StartCall *call = userdata;

        call->again = sd_event_source_disable_unref(call->again);
        attempt_start(call);
        return 0;
}

static int look_again(StartCall *call) {
        return sd_event_add_time_relative(call->verifier->node->event, &call->again, CLOCK_MONOTONIC,
                                          LOOK_AGAIN, 0, on_again, call);
}

static void fail_start(StartCall *call, RpcStatus status, const Fault *fault) {
        log_warning("not started: %s", fault->text);
        rpc_fail(call->rpc, status, fault->text);
        call_free(call);
}

static void on_list(void *userdata, const PodList *list, const Fault *fault) {
        StartCall *call = userdata;

        call->list = NULL;
        evidence_done(&call->listed);
        if (list)
                (void) evidence_from_list(list, call->kind, &call->set,
                                          &call->listed); /* nothing shown: List is asked again */
        if (call->listed.n_containers > 0)
                attempt_start(call);
        else if (clock_monotonic_usec() >= call->deadline) {
                Fault none = FAULT_NULL;

                (void) fault_set(&none, 0, "no container holds exactly these %zu of %s%s%s", call->set.n,
                                 device_resource(call->kind), list ? "" : ": ", list ? "" : fault->text);
                call->verifier->counters.refused++;
                fail_start(call, RPC_UNAVAILABLE, &none);
        } else if (look_again(call) < 0)
                fail_start(call, RPC_RESOURCE_EXHAUSTED, &no_memory);
}

static void wait_more(StartCall *call, int verdict, const Fault *fault) {
        StartVerifier *v = call->verifier;
        bool late = clock_monotonic_usec() >= call->deadline;
        int r;

        if (!call->has_waited)
                v->counters.waited++;
        call->has_waited = true;
        call->asked = verdict == START_CHECK_E_LIMIT;
        if (late && verdict != START_CHECK_E_LIST) {
                fail_start(call, RPC_UNAVAILABLE, fault);
                return;
        }
        if (verdict != START_CHECK_E_LIST)
                r = look_again(call);
        else
                r = call->list ? 0
                               : pod_resources_list(v->node->pod_resources, LIST_TIMEOUT, on_list, call,
                                                    &call->list);
        if (r < 0)
                fail_start(call, RPC_RESOURCE_EXHAUSTED, &no_memory);
}

static void attempt_start(StartCall *call) {
        StartVerifier *v = call->verifier;
        StartCheck check = {.node = v->node,
                            .orphans = v->o.orphans,
                            .repair = v->o.repair,
                            .kind = call->kind,
                            .set = &call->set,
                            .has_pages = call->asked,
                            .late = clock_monotonic_usec() >= call->deadline};
        Fault fault = FAULT_NULL;
        int r;

        call->again = sd_event_source_disable_unref(call->again);
        r = start_check_run(&check, &v->checkpoint, &call->listed, &fault);
        if (r == 0) {
                v->counters.proved++;
                plugin_answer_prestart(call->rpc);
                call_free(call);
        } else if (r == START_CHECK_E_WAIT || r == START_CHECK_E_LIMIT || r == START_CHECK_E_LIST)
                wait_more(call, r, &fault);
        else {
                v->counters.refused++;
                fail_start(call, r < 0 ? RPC_RESOURCE_EXHAUSTED : RPC_FAILED_PRECONDITION,
                           r < 0 ? &no_memory : &fault);
        }
}

void start_verifier_wake(StartVerifier *v) {
        StartCall *next;

        for (StartCall *call = v->calls; call; call = next) {
                next = call->next;
                if (!call->list && !call->asked)
                        attempt_start(call);
        }
}

void start_verifier_wake_pod(StartVerifier *v, const Record *record) {
        StartCall *next;

        for (StartCall *call = v->calls; call; call = call->next)
                call->woken = !call->list && record_touches(record, call->kind, &call->set);
        for (StartCall *call = v->calls; call; call = next) { /* an attempt may drop the record */
                next = call->next;
                if (call->woken)
                        attempt_start(call);
        }
}

static void on_close(void *userdata) {
        call_free(userdata);
}

void start_verifier_prestart(StartVerifier *v, DeviceKind kind, RpcCall *rpc, PluginIds ids) {
        StartCall *call = calloc(1, sizeof *call);
        Fault fault = FAULT_NULL;
        int r;

        if (!call) {
                rpc_fail(rpc, RPC_RESOURCE_EXHAUSTED, "out of memory");
                return;
        }
        *call = (StartCall){.verifier = v,
                            .rpc = rpc,
                            .kind = kind,
                            .next = v->calls,
                            .link = &v->calls,
                            .deadline = clock_monotonic_usec() + v->o.wait_max};
        if (call->next)
                call->next->link = &call->next;
        v->calls = call;
        r = device_set_parse(ids.ids, ids.n, kind, &call->set, &fault);
        if (r == 0 && call->set.n == 0)
                r = fault_set(&fault, DEVICE_E_MALFORMED, "no devices of %s", device_resource(kind));
        if (r != 0) {
                fail_start(call, r < 0 ? RPC_RESOURCE_EXHAUSTED : RPC_INVALID_ARGUMENT, &fault);
                return;
        }
        rpc_call_on_close(rpc, on_close, call);
        attempt_start(call);
}

/* ---- places by the records ---- */

void start_verifier_keep_place(StartVerifier *v, RosterPod *pod) {
        const Record *record = records_find(v->node->records, str_from(pod->uid));
        int r = record && pod->grant && pod->placed ? evidence_recall(record, v->node->roster, pod) : 0;

        if (r > 0)
                log_warning("pod=%s/%s is where its record says, not where its annotations say",
                            pod->namespace_, pod->name);
        else if (r < 0)
                log_error("out of memory: pod=%s/%s keeps the place of its annotations", pod->namespace_,
                          pod->name);
}

void start_verifier_recall(StartVerifier *v, RosterPod *pod) {
        const NodeContext *node = v->node;
        const Record *record = records_find(node->records, str_from(pod->uid));
        Fault fault = FAULT_NULL;

        start_verifier_keep_place(v, pod);
        if (!record || !record->saved || !pod->grant || pod->placed)
                return;
        if (evidence_place(record->containers, record->n_containers, node->roster, pod, &fault) != 0)
                return; /* not all of its containers have started: PreStart of the others places it */
        if (record->assume > 0)
                pod->assume = record->assume;
        log_info("recalled the place of pod=%s/%s, which is not in its annotations", pod->namespace_,
                 pod->name);
        pod_patcher_place(node->pod_patcher, pod);
        pod_patcher_assign(node->pod_patcher, pod);
}

/* A living pod that has a record. */
static void adopt_pod(StartVerifier *v, RosterPod *pod, Record *record) {
        Fault fault = FAULT_NULL;

        if (records_save(v->node->records, record, &fault) < 0)
                log_error("%s", fault.text);
        else if (pod->placed)
                start_verifier_keep_place(v, pod);
        else
                start_verifier_recall(v, pod);
        if (pod->placed)
                pod_patcher_assign(v->node->pod_patcher, pod);
}

void start_verifier_adopt(StartVerifier *v) {
        const NodeContext *node = v->node;
        Fault fault = FAULT_NULL;
        int r;

        r = evidence_adopt(&v->checkpoint, node, &fault);
        if (!v->calls)
                checkpoint_file_done(&v->checkpoint);
        if (r < 0)
                log_error("out of memory: the kubelet's checkpoint was not compared");
        else if (r > 0)
                log_warning("the kubelet's checkpoint was not compared: %s", fault.text);
        for (RosterPod *pod = node->roster->pods; pod; pod = pod->hh.next) {
                Record *record = records_find(node->records, str_from(pod->uid));

                if (record && pod->grant)
                        adopt_pod(v, pod, record);
        }
}
