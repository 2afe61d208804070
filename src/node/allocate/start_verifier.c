/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/start_verifier.h"

#include <errno.h>

#include "base/log.h"
#include "node/allocate/evidence.h"
#include "wire/annotation.h"
#include "wire/pod.h"

#define PATIENCE     (5 * USEC_PER_SEC)
#define LOOK_AGAIN   (100 * USEC_PER_MSEC)
#define LIST_TIMEOUT (4 * USEC_PER_SEC)

static const Fault no_memory = {.text = "out of memory"};

/* One PreStartContainer that is not answered yet. */
typedef struct Proof {
        struct Proof *next, **link;
        StartVerifier *verifier;
        RpcCall *call;
        DeviceKind kind;
        DeviceSet set;
        PodResourcesCall *list;
        Evidence listed; /* what List said, when the checkpoint said nothing */
        sd_event_source *again;
        usec_t deadline;
        bool has_waited;
} Proof;

struct StartVerifier {
        StartVerifierOptions o;
        Proof *proofs;
        CheckpointFile
                checkpoint; /* many may wait, and look again ten times a second: it is parsed when it changes */
        StartVerifierCounters counters;
};

int start_verifier_new(const StartVerifierOptions *options, StartVerifier **ret) {
        StartVerifier *p = calloc(1, sizeof *p);

        if (!p)
                return -ENOMEM;
        p->o = *options;
        if (p->o.patience == 0)
                p->o.patience = PATIENCE;
        p->checkpoint = evidence_file(p->o.checkpoint);
        *ret = p;
        return 0;
}

static void proof_free(Proof *proof) {
        StartVerifier *p = proof->verifier;

        *proof->link = proof->next;
        if (proof->next)
                proof->next->link = proof->link;
        pod_resources_call_free(proof->list);
        evidence_done(&proof->listed);
        sd_event_source_disable_unref(proof->again);
        device_set_done(&proof->set);
        free(proof);
        if (!p->proofs)
                checkpoint_file_done(&p->checkpoint); /* its memory is not for nothing */
}

StartVerifier *start_verifier_free(StartVerifier *p) {
        if (!p)
                return NULL;
        while (p->proofs)
                proof_free(p->proofs);
        free(p);
        return NULL;
}

StartVerifierCounters start_verifier_counters(const StartVerifier *p) {
        StartVerifierCounters counters = p->counters;

        for (const Proof *proof = p->proofs; proof; proof = proof->next)
                counters.waiting++;
        return counters;
}

/* ---- one attempt: 0 proved, or why not yet, or why not at all ---- */

enum { PROOF_E_WAIT = 1, PROOF_E_REFUSED, PROOF_E_LIST };

/* "3 of gpu0, 2 of gpu1" */
static void write_cards(const DeviceSet *set, Buf *out) {
        uint32_t card, count;
        size_t at = 0;

        while (device_set_next_card(set, &at, &card, &count))
                buf_appendf(out, "%s%u of gpu%u", out->len > 0 ? ", " : "", count, card);
}

static void write_shares(const CardShare *shares, size_t n, Buf *out) {
        for (size_t i = 0; i < n; i++)
                buf_appendf(out, "%s%u of gpu%u", i > 0 ? ", " : "", shares[i].count, shares[i].card);
}

static bool shares_are(const CardShare *shares, size_t n, const DeviceSet *set) {
        uint32_t card, count;
        size_t at = 0, i = 0;

        while (device_set_next_card(set, &at, &card, &count)) {
                if (i == n || shares[i].card != card || shares[i].count != count)
                        return false;
                i++;
        }
        return i == n;
}

static bool is_among(const Evidence *e, const RosterContainer *c) {
        for (size_t i = 0; i < e->n_containers; i++)
                if (strcmp(e->containers[i], c->name) == 0)
                        return true;
        return false;
}

static bool has_started(const Proof *proof, const RosterPod *pod, const RosterContainer *c) {
        const Record *record = records_find(proof->verifier->o.records, str_from(pod->uid));
        const RecordContainer *known = record ? record_container(record, str_from(c->name)) : NULL;

        return known && known->started;
}

/* Is this what the annotations give the container? The kubelet names devices and no container, and
 * gives those of an init container to later ones, too; they run one after the other, in the pod's
 * order. So whoever has them and has not started yet is meant, or, when all have, the last: an init
 * container that starts again passes for a later one, never a later one for it. */
static int check_place(const Proof *proof, const RosterPod *pod, const Evidence *e,
                       const RosterContainer **ret, Fault *fault) {
        _cleanup_buf_ Buf given = BUF_NULL, place = BUF_NULL;
        CardShare shares[CARD_INDEX_MAX + 1];
        const RosterContainer *last = NULL;
        size_t n = 0;

        for (size_t i = 0; i < pod->n_containers; i++) {
                const RosterContainer *c = &pod->containers[i];

                if (!is_among(e, c))
                        continue;
                last = c;
                n = roster_shares(pod, c, proof->kind, shares);
                if (!shares_are(shares, n, &proof->set))
                        continue;
                *ret = c;
                if (!has_started(proof, pod, c))
                        break;
        }
        if (*ret)
                return 0;
        write_cards(&proof->set, &given);
        write_shares(shares, n, &place);
        return fault_set(
                fault, PROOF_E_REFUSED,
                "pod %s/%s: container %s was given %.*s by the kubelet, but its place is %.*s: delete "
                "the pod to have it placed again",
                pod->namespace_, pod->name, last ? last->name : "(unknown)",
                STR_ARG(given.len > 0 ? buf_str(&given) : STR("nothing")),
                STR_ARG(place.len > 0 ? buf_str(&place) : STR("not on any card")));
}

/* On an isolated node no container starts that has a mount over its gate, CGPU_DISABLE or not. The
 * webhook refuses such a pod, but does not see every pod. This comes before the record, because a
 * recorded container counts as proved. */
static int check_cover(const Proof *proof, const RosterPod *pod, const RosterContainer *c, Fault *fault) {
        const StartVerifierOptions *o = &proof->verifier->o;

        if (!o->isolation || !share_mode_is_isolated(o->inventory->mode) || !c->gate_cover)
                return 0;
        return fault_set(fault, PROOF_E_REFUSED, "pod %s/%s: container %s: %s", pod->namespace_, pod->name,
                         c->name, c->gate_cover);
}

/* An old holder of the same devices: deleted by force, or counted free too early by the kubelet. */
static int check_holder(const Proof *proof, const RosterPod *pod, Fault *fault) {
        const StartVerifierOptions *o = &proof->verifier->o;
        Record *old;

        while ((old = records_holder(o->records, proof->kind, &proof->set, str_from(pod->uid)))) {
                const RosterPod *living = roster_find(o->roster, str_from(old->uid));

                if (living && living->grant)
                        return fault_set(fault, PROOF_E_WAIT, /* our watch may be behind */
                                         "pod %s/%s: the kubelet gave it devices of %s that pod %s/%s holds",
                                         pod->namespace_, pod->name, device_resource(proof->kind),
                                         old->namespace_, old->name);
                if (!orphans_ended(o->orphans, old))
                        return fault_set(fault, PROOF_E_WAIT,
                                         "pod %s/%s waits: processes of pod %s/%s, which is gone, still hold "
                                         "its slice",
                                         pod->namespace_, pod->name, old->namespace_, old->name);
        }
        return 0;
}

static int keep_record(const Proof *proof, const RosterPod *pod, const RosterContainer *c, Fault *fault) {
        const StartVerifierOptions *o = &proof->verifier->o;
        Record *record;
        int r;

        r = records_give(o->records, str_from(pod->uid), str_from(pod->namespace_), str_from(pod->name),
                         str_from(c->name), c->kind == CONTAINER_INIT, proof->kind, &proof->set);
        record = r == 0 ? records_find(o->records, str_from(pod->uid)) : NULL;
        if (record && o->isolation)
                isolation_record_slice(o->inventory, record, str_from(c->name));
        if (record)
                r = records_save(o->records, record, fault);
        return r < 0 ? fault_wrap(fault, PROOF_E_WAIT, "pod %s/%s waits for its record", pod->namespace_,
                                  pod->name)
                     : 0;
}

/* After all that may make it wait: who waits is asked for again, and has not started. */
static int keep_start(const Proof *proof, const RosterPod *pod, const RosterContainer *c, Fault *fault) {
        Records *records = proof->verifier->o.records;
        Record *record = records_find(records, str_from(pod->uid));
        int r = 0;

        if (proof->kind != DEVICE_MEM || has_started(proof, pod, c))
                return 0;
        record_set_assume(record, pod->assume);
        record_set_started(record, str_from(c->name), true);
        r = records_save(records, record, fault);
        if (r == 0)
                return 0;
        record_set_started(record, str_from(c->name), false);
        return fault_wrap(fault, PROOF_E_WAIT, "pod %s/%s waits for its record", pod->namespace_, pod->name);
}

/* The last thing before it starts, and what it does not start without. */
static int isolate(const Proof *proof, const RosterPod *pod, const RosterContainer *c, Fault *fault) {
        const StartVerifierOptions *o = &proof->verifier->o;
        const Record *record = records_find(o->records, str_from(pod->uid));
        const RecordContainer *given = record ? record_container(record, str_from(c->name)) : NULL;

        if (!o->isolation || proof->kind != DEVICE_MEM)
                return 0;
        if (!given || isolation_prepare(o->isolation, o->inventory, pod, c, given, fault) != 0)
                return fault_wrap(fault, PROOF_E_WAIT, "pod %s/%s: container %s", pod->namespace_, pod->name,
                                  c->name);
        return 0;
}

static int prove_pod(Proof *proof, RosterPod *pod, const Evidence *e, Fault *fault) {
        const RosterContainer *c = NULL;
        int r;

        if (pod->refusal)
                return fault_set(fault, PROOF_E_REFUSED, "pod %s/%s: %s", pod->namespace_, pod->name,
                                 pod->refusal);
        if (!pod->grant)
                return fault_set(fault, PROOF_E_WAIT, "pod %s/%s has ended, as the API server says",
                                 pod->namespace_, pod->name);
        if (!pod->placed) {
                r = evidence_place(e->held, e->n_held, proof->verifier->o.roster, pod, fault);
                if (r != 0)
                        return r < 0 ? r : PROOF_E_REFUSED;
                pod_patcher_place(proof->verifier->o.pod_patcher, pod);
        }
        r = check_place(proof, pod, e, &c, fault);
        if (r == 0)
                r = check_cover(proof, pod, c, fault);
        if (r == 0)
                r = check_holder(proof, pod, fault);
        if (r == 0)
                r = keep_record(proof, pod, c, fault);
        if (r == 0)
                r = isolate(proof, pod, c, fault);
        if (r == 0)
                r = keep_start(proof, pod, c, fault);
        if (r != 0)
                return r;
        pod_patcher_assign(proof->verifier->o.pod_patcher, pod);
        if (proof->verifier->o.repair)
                repair_look(proof->verifier->o.repair, pod);
        return 0;
}

/* Allocate writes the record of all that a container is given, and the proof of one kind saves it:
 * of memory it says that the container has run only where its pages are, too. */
static bool has_run(const Proof *proof, const RecordContainer *given) {
        const StartVerifierOptions *o = &proof->verifier->o;

        return !o->isolation || proof->kind != DEVICE_MEM ||
               isolation_is_complete(o->isolation, o->inventory, given);
}

/* The API server cannot be asked, but this node has proved the same before: a container that starts
 * again. Of an init container and later ones that have the same devices the pages are of the last
 * that started, so that nobody is taken for it as long as one may be meant that has not
 * (check_place). */
static bool is_on_record(const Proof *proof, const Evidence *e) {
        const Record *record = records_find(proof->verifier->o.records, str_from(e->uid));
        const RecordContainer *given = NULL;
        size_t n = 0, n_started = 0;

        for (size_t i = 0; record && record->saved && i < record->n_containers; i++)
                if (device_set_eq(&record->containers[i].given[proof->kind], &proof->set)) {
                        given = &record->containers[i];
                        n++;
                        n_started += given->started;
                }
        return (n == 1 || (n > 1 && (proof->kind != DEVICE_MEM || n_started == n))) && has_run(proof, given);
}

static int attempt(Proof *proof, Fault *fault) {
        StartVerifier *p = proof->verifier;
        const StartVerifierOptions *o = &p->o;
        _cleanup_(evidence_done) Evidence found = {0};
        const Evidence *e = &found;
        RosterPod *pod;
        int r;

        r = evidence_from_checkpoint(&p->checkpoint, o->roster, proof->kind, &proof->set, &found, fault);
        if (r == EVIDENCE_E_NONE) {
                if (proof->listed.n_containers == 0)
                        return fault_wrap(fault, PROOF_E_LIST, "%zu of %s", proof->set.n,
                                          device_resource(proof->kind));
                e = &proof->listed;
                r = 0;
        }
        if (r == EVIDENCE_E_TWICE)
                return PROOF_E_WAIT; /* one of the two may be gone, and our watch behind */
        if (r != 0)
                return r;
        pod = e->uid ? roster_find(o->roster, str_from(e->uid))
                     : roster_find_name(o->roster, str_from(e->namespace_), str_from(e->name));
        if (pod)
                return prove_pod(proof, pod, e, fault);
        if (e->uid && is_on_record(proof, e))
                return 0;
        return fault_set(fault, PROOF_E_WAIT, "the pod with uid %s is not known from the API server yet",
                         e->uid ? e->uid : "(unknown)");
}

/* ---- answering, now or later ---- */

static void proof_try(Proof *proof);

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Proof *proof = userdata;

        proof->again = sd_event_source_disable_unref(proof->again);
        proof_try(proof);
        return 0;
}

static void fail(Proof *proof, RpcStatus status, const Fault *fault) {
        log_warning("not started: %s", fault->text);
        rpc_fail(proof->call, status, fault->text);
        proof_free(proof);
}

static void on_list(void *userdata, const PodList *list, const Fault *fault) {
        Proof *proof = userdata;

        proof->list = NULL;
        evidence_done(&proof->listed);
        if (list)
                (void) evidence_from_list(list, proof->kind, &proof->set,
                                          &proof->listed); /* none: it is asked again */
        if (proof->listed.n_containers > 0)
                proof_try(proof);
        else if (clock_monotonic_usec() >= proof->deadline) {
                Fault none = FAULT_NULL;

                (void) fault_set(&none, 0, "no container holds exactly these %zu of %s%s%s", proof->set.n,
                                 device_resource(proof->kind), list ? "" : ": ", list ? "" : fault->text);
                proof->verifier->counters.refused++;
                fail(proof, RPC_UNAVAILABLE, &none);
        } else if (sd_event_add_time_relative(proof->verifier->o.event, &proof->again, CLOCK_MONOTONIC,
                                              LOOK_AGAIN, 0, on_again, proof) < 0)
                fail(proof, RPC_RESOURCE_EXHAUSTED, &no_memory);
}

static void wait_more(Proof *proof, int verdict, const Fault *fault) {
        StartVerifier *p = proof->verifier;
        bool late = clock_monotonic_usec() >= proof->deadline;
        int r;

        if (!proof->has_waited)
                p->counters.waited++;
        proof->has_waited = true;
        if (late && verdict == PROOF_E_WAIT) {
                fail(proof, RPC_UNAVAILABLE, fault);
                return;
        }
        if (verdict == PROOF_E_LIST)
                r = proof->list ? 0
                                : pod_resources_list(p->o.pod_resources, LIST_TIMEOUT, on_list, proof,
                                                     &proof->list);
        else
                r = sd_event_add_time_relative(p->o.event, &proof->again, CLOCK_MONOTONIC, LOOK_AGAIN, 0,
                                               on_again, proof);
        if (r < 0)
                fail(proof, RPC_RESOURCE_EXHAUSTED, &no_memory);
}

static void proof_try(Proof *proof) {
        Fault fault = FAULT_NULL;
        int r;

        proof->again = sd_event_source_disable_unref(proof->again);
        r = attempt(proof, &fault);
        if (r == 0) {
                proof->verifier->counters.proved++;
                plugin_answer_prestart(proof->call);
                proof_free(proof);
        } else if (r == PROOF_E_WAIT || r == PROOF_E_LIST)
                wait_more(proof, r, &fault);
        else {
                proof->verifier->counters.refused++;
                fail(proof, r < 0 ? RPC_RESOURCE_EXHAUSTED : RPC_FAILED_PRECONDITION,
                     r < 0 ? &no_memory : &fault);
        }
}

void start_verifier_wake(StartVerifier *p) {
        Proof *next;

        for (Proof *proof = p->proofs; proof; proof = next) {
                next = proof->next;
                if (!proof->list)
                        proof_try(proof);
        }
}

static void on_close(void *userdata) {
        proof_free(userdata);
}

void start_verifier_prestart(StartVerifier *p, DeviceKind kind, RpcCall *call, PluginIds ids) {
        Proof *proof = calloc(1, sizeof *proof);
        Fault fault = FAULT_NULL;
        int r;

        if (!proof) {
                rpc_fail(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
                return;
        }
        *proof = (Proof){.verifier = p,
                         .call = call,
                         .kind = kind,
                         .next = p->proofs,
                         .link = &p->proofs,
                         .deadline = clock_monotonic_usec() + p->o.patience};
        if (proof->next)
                proof->next->link = &proof->next;
        p->proofs = proof;
        r = device_set_parse(ids.ids, ids.n, kind, &proof->set, &fault);
        if (r == 0 && proof->set.n == 0)
                r = fault_set(&fault, DEVICE_E_MALFORMED, "no devices of %s", device_resource(kind));
        if (r != 0) {
                fail(proof, r < 0 ? RPC_RESOURCE_EXHAUSTED : RPC_INVALID_ARGUMENT, &fault);
                return;
        }
        rpc_call_on_close(call, on_close, proof);
        proof_try(proof);
}

void start_verifier_keep_place(StartVerifier *p, RosterPod *pod) {
        const Record *record = records_find(p->o.records, str_from(pod->uid));
        int r = record && pod->grant && pod->placed ? evidence_recall(record, p->o.roster, pod) : 0;

        if (r > 0)
                log_warning("pod=%s/%s is where its record says, not where its annotations say",
                            pod->namespace_, pod->name);
        else if (r < 0)
                log_error("out of memory: pod=%s/%s keeps the place of its annotations", pod->namespace_,
                          pod->name);
}

void start_verifier_recall(StartVerifier *p, RosterPod *pod) {
        const Record *record = records_find(p->o.records, str_from(pod->uid));
        Fault fault = FAULT_NULL;

        start_verifier_keep_place(p, pod);
        if (!record || !record->saved || !pod->grant || pod->placed)
                return;
        if (evidence_place(record->containers, record->n_containers, p->o.roster, pod, &fault) != 0)
                return; /* not all of its containers have started: PreStart of the others comes to it */
        if (record->assume > 0)
                pod->assume = record->assume;
        log_info("recalled the place of pod=%s/%s, which is not in its annotations", pod->namespace_,
                 pod->name);
        pod_patcher_place(p->o.pod_patcher, pod);
        pod_patcher_assign(p->o.pod_patcher, pod);
}

void start_verifier_adopt(StartVerifier *p) {
        Fault fault = FAULT_NULL;
        int r;

        r = evidence_adopt(&p->checkpoint, p->o.roster, p->o.records, &fault);
        if (!p->proofs)
                checkpoint_file_done(&p->checkpoint);
        if (r < 0)
                log_error("out of memory: the kubelet's checkpoint was not compared");
        else if (r > 0)
                log_warning("the kubelet's checkpoint was not compared: %s", fault.text);
        for (RosterPod *pod = p->o.roster->pods; pod; pod = pod->hh.next) {
                Record *record = records_find(p->o.records, str_from(pod->uid));

                if (!record || !pod->grant)
                        continue;
                if (records_save(p->o.records, record, &fault) < 0)
                        log_error("%s", fault.text);
                else if (pod->placed)
                        start_verifier_keep_place(p, pod);
                else
                        start_verifier_recall(p, pod);
                if (pod->placed)
                        pod_patcher_assign(p->o.pod_patcher, pod);
        }
}
