/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/resolver.h"

#include <errno.h>

#include "base/log.h"
#include "kube/api.h"
#include "node/allocate/allocator.h"
#include "node/allocate/device_choice.h"
#include "node/allocate/pod_candidate.h"
#include "share/placement.h"
#include "wire/annotation.h"

#define LIST_TIMEOUT (2 * USEC_PER_SEC)
#define ASK_DEADLINE (6 * USEC_PER_SEC) /* the kubelet's main loop stands still while it waits for us */
#define LOOK_AGAIN   (20 * USEC_PER_MSEC)
#define LOOKS_MAX    10

enum { GONE_MAX = LOOKS_MAX }; /* one is asked for at each look */

/* One GetPreferredAllocation that is not answered yet. */
typedef struct Ask {
        struct Ask *next, **link;
        Resolver *resolver;
        RpcCall *call;
        DeviceKind kind;
        DeviceSet available, must_include;
        uint32_t size;
        PodResourcesCall *list;
        KubeCall *get;
        char *asked_for;      /* the pod of that call: NAMESPACE/NAME */
        char *gone[GONE_MAX]; /* those that the API server did not have */
        size_t n_gone;
        sd_event_source *again, *deadline;
        unsigned looks;
        bool listed; /* the kubelet has answered a List */
} Ask;

#define UNKNOWN_POD_TTL (1 * USEC_PER_SEC)

/* The last pod that nobody knew: its other resource comes right behind, and must be of the same
 * card. */
typedef struct UnknownPod {
        DeviceKind kind;
        uint32_t card;
        usec_t until;
} UnknownPod;

struct Resolver {
        ResolverOptions o;
        UnknownPod unknown;
        Ask *asks;
        PendingAdmission turn;
        ResolverCounters counters;
};

int resolver_new(const ResolverOptions *options, Resolver **ret) {
        Resolver *a = calloc(1, sizeof *a);

        if (!a)
                return -ENOMEM;
        a->o = *options;
        *ret = a;
        return 0;
}

static void ask_free(Ask *ask) {
        *ask->link = ask->next;
        if (ask->next)
                ask->next->link = ask->link;
        pod_resources_call_free(ask->list);
        kube_call_free(ask->get);
        free(ask->asked_for);
        for (size_t i = 0; i < ask->n_gone; i++)
                free(ask->gone[i]);
        sd_event_source_disable_unref(ask->again);
        sd_event_source_disable_unref(ask->deadline);
        device_set_done(&ask->available);
        device_set_done(&ask->must_include);
        free(ask);
}

Resolver *resolver_free(Resolver *a) {
        if (!a)
                return NULL;
        while (a->asks)
                ask_free(a->asks);
        pending_admission_done(&a->turn);
        free(a);
        return NULL;
}

ResolverCounters resolver_counters(const Resolver *a) {
        return a->counters;
}

/* ---- the answer ---- */

static void refuse(Ask *ask, const RosterPod *pod, const char *why) {
        Fault fault = FAULT_NULL;

        (void) fault_set(&fault, 0, "%s", why);
        if (pod)
                (void) fault_wrap(&fault, 0, "pod %s/%s", pod->namespace_, pod->name);
        log_warning("refused %s: %s", device_resource(ask->kind), fault.text);
        ask->resolver->counters.refused++;
        pending_admission_end(&ask->resolver->turn);
        rpc_fail(ask->call, RPC_FAILED_PRECONDITION, fault.text);
        ask_free(ask);
}

static void answer(Ask *ask, const DeviceSet *chosen) {
        char(*texts)[DEVICE_TEXT_MAX] = calloc(chosen->n > 0 ? chosen->n : 1, sizeof *texts);
        Str *ids = calloc(chosen->n > 0 ? chosen->n : 1, sizeof *ids);

        if (texts && ids) {
                for (size_t i = 0; i < chosen->n; i++) {
                        device_format(chosen->ids[i], ask->kind, texts[i]);
                        ids[i] = str_from(texts[i]);
                }
                plugin_answer_preferred(ask->call, ids, chosen->n);
        } else
                rpc_fail(ask->call, RPC_RESOURCE_EXHAUSTED, "out of memory");
        free(texts);
        free(ids);
        ask_free(ask);
}

static bool is_held(void *userdata, DeviceKind kind, DeviceId id) {
        const Ask *ask = userdata;
        DeviceSet one = {&id, 1};

        return records_holder(ask->resolver->o.records, kind, &one,
                              pending_admission_uid(&ask->resolver->turn)) != NULL;
}

static int choose(Ask *ask, const CardShare *shares, size_t n, DeviceSet *ret, Fault *fault) {
        DeviceChoice choice = {
                .kind = ask->kind,
                .available = &ask->available,
                .must_include = &ask->must_include,
                .shares = shares,
                .n_shares = n,
                .is_held = is_held,
                .userdata = ask,
        };

        return device_choice_make(&choice, ret, fault);
}

static void settle_unknown(Ask *ask);

/* Gives the pod cards by the node's own ledger. 0, PLACEMENT_E_REFUSED with a sentence, or negative
 * errno; on failure the pod has no grant any more. */
static int choose_cards(Ask *ask, RosterPod *pod, Buf *ret_why) {
        const ResolverOptions *o = &ask->resolver->o;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Placement placement;
        LedgerNode *node;
        Refusal refusal;
        int r;

        pod->grant = grant_free(pod->grant);  /* what it asks for must not stand in its own way */
        node = roster_ledger_node(o->roster); /* not before: the ledger drops a node with its last grant */
        if (!node) {
                buf_append_str(ret_why, STR("the node has no cards"));
                return PLACEMENT_E_REFUSED;
        }
        r = placement_choose_cards(node, &pod->request, &arena, &placement, &refusal);
        if (r > 0)
                refusal_format(&refusal, ret_why);
        return r == 0 ? roster_place(o->roster, pod, placement.slices, placement.n_slices) : r;
}

/* Another scheduler bound it, or it is a static pod: the node gives it a place, if a card has
 * room. */
static int place(Ask *ask, RosterPod *pod, Buf *ret_why) {
        int r = choose_cards(ask, pod, ret_why);

        if (r != 0)
                return r;
        ask->resolver->counters.placed++;
        log_info("placed pod=%s/%s, which came without a place", pod->namespace_, pod->name);
        pod_patcher_place(ask->resolver->o.pod_patcher, pod);
        return 0;
}

/* ---- a place that is not possible ---- */

static uint32_t count_available(const Ask *ask, uint32_t card) {
        uint32_t at_card, count;
        size_t at = 0;

        while (device_set_next_card(&ask->available, &at, &at_card, &count))
                if (at_card == card)
                        return count;
        return 0;
}

/* The cards of its annotations must be there and have room for the whole pod, by what the kubelet
 * has given to no other pod. */
static bool is_possible(const Ask *ask, const RosterPod *pod, const RosterContainer *c, Fault *why) {
        CardShare shares[CARD_INDEX_MAX + 1];
        size_t n = roster_shares(pod, c, ask->kind, shares);

        if (n == 0) {
                (void) fault_set(why, 0, "%u of %s do not divide into its cards", ask->size,
                                 device_resource(ask->kind));
                return false;
        }
        for (size_t i = 0; i < n; i++) {
                uint32_t card = shares[i].card, free = count_available(ask, card),
                         needed = ask->kind == DEVICE_MEM ? grant_mem_on_card(pod->grant, card)
                                                          : grant_core_on_card(pod->grant, card);

                if (!inventory_card(ask->resolver->o.inventory, card)) {
                        (void) fault_set(why, 0, "gpu%u is no card of this node", card);
                        return false;
                }
                if (free >= needed)
                        continue;
                (void) fault_set(why, 0, "gpu%u has %u of %s free, the pod needs %u there", card, free,
                                 device_resource(ask->kind), needed);
                return false;
        }
        return true;
}

/* By the kubelet's List, by what it offers again of init containers, and by the records: an agent
 * that was killed in the middle of an admission has lost the record of what it gave. */
static bool was_given_nothing(const Ask *ask, const RosterPod *pod, const ListedPod *listed) {
        const Record *record = records_find(ask->resolver->o.records, str_from(pod->uid));

        if (ask->must_include.n > 0)
                return false;
        for (size_t i = 0; i < listed->n_containers; i++)
                if (listed->containers[i].n_devices > 0)
                        return false;

        for (size_t i = 0; record && i < record->n_containers; i++)
                for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                        if (record->containers[i].given[kind].n > 0)
                                return false;
        return true;
}

static void tell_moved(const Ask *ask, const RosterPod *pod, const Fault *why) {
        const ResolverOptions *o = &ask->resolver->o;
        _cleanup_buf_ Buf cards = BUF_NULL;
        Fault note = FAULT_NULL;
        const Slice *slices;
        size_t n;

        slices = grant_slices(pod->grant, &n);
        for (size_t i = 0; i < n; i++)
                if (i == 0 || slices[i].card != slices[i - 1].card)
                        buf_appendf(&cards, "%sgpu%u", i > 0 ? ", " : "", slices[i].card);
        (void) fault_set(&note, 0,
                         "the place of its annotations is not possible: %s; it is placed anew, on " STR_FMT,
                         why->text, STR_ARG(buf_str(&cards)));
        if (o->on_moved)
                o->on_moved(o->userdata, pod, &note);
}

/* A user may have written the place, or the cards have changed since. Where there is no other place
 * either, the pod keeps it. 0 or negative errno. */
static int move(Ask *ask, RosterPod *pod, const Fault *why) {
        _cleanup_buf_ Buf refused = BUF_NULL;
        _cleanup_free_ Slice *before = NULL;
        const Slice *slices;
        size_t n;
        int r;

        slices = grant_slices(pod->grant, &n);
        before = calloc(n + 1, sizeof *before);
        if (!before)
                return -ENOMEM;
        if (n > 0)
                memcpy(before, slices, n * sizeof *before);
        r = choose_cards(ask, pod, &refused);
        if (r != 0)
                return roster_place(ask->resolver->o.roster, pod, before, n);
        ask->resolver->counters.moved++;
        tell_moved(ask, pod, why);
        pod_patcher_place(ask->resolver->o.pod_patcher, pod);
        return 0;
}

/* The pod and its container are known. with_other: it has nothing of the other resource yet.
 * listed: the pod as the kubelet lists it; NULL: it is not listed, or its place was judged
 * before. */
static void settle(Ask *ask, RosterPod *pod, const RosterContainer *c, bool with_other,
                   const ListedPod *listed) {
        _cleanup_devices_ DeviceSet chosen = DEVICE_SET_NULL;
        _cleanup_buf_ Buf why = BUF_NULL;
        CardShare shares[CARD_INDEX_MAX + 1];
        Fault fault = FAULT_NULL;
        size_t n;
        int r = 0;

        if (!pod->placed && !ask->resolver->o.roster->has_cards) {
                settle_unknown(
                        ask); /* nor is it known yet what the cards hold: PreStart places it by its devices */
                return;
        }
        if (!pod->placed)
                r = place(ask, pod, &why);
        else if (listed && was_given_nothing(ask, pod, listed) && !is_possible(ask, pod, c, &fault))
                r = move(ask, pod, &fault);
        fault = FAULT_NULL;
        if (r != 0) {
                refuse(ask, pod, r < 0 ? "out of memory" : why.data ? why.data : "no card has room");
                return;
        }
        r = pending_admission_begin(&ask->resolver->turn, pod, c, ask->kind, with_other);
        n = roster_shares(pod, c, ask->kind, shares);
        if (r == 0 && n == 0)
                r = fault_set(&fault, DEVICE_CHOICE_E_SHORT,
                              "container %s: %u of %s do not divide into the cards of the pod's annotations",
                              c->name, ask->size, device_resource(ask->kind));
        if (r == 0)
                r = choose(ask, shares, n, &chosen, &fault);
        if (r == 0)
                r = pending_admission_offer(&ask->resolver->turn, ask->kind, &chosen);
        if (r != 0) {
                refuse(ask, pod, r < 0 ? "out of memory" : fault.text);
                return;
        }
        ask->resolver->counters.settled++;
        answer(ask, &chosen);
}

static bool card_of_last_unknown(const Ask *ask, uint32_t *ret) {
        const UnknownPod *s = &ask->resolver->unknown;
        uint32_t card, count;
        size_t at = 0;

        while (s->kind != ask->kind && clock_monotonic_usec() < s->until &&
               device_set_next_card(&ask->available, &at, &card, &count))
                if (card == s->card && count >= ask->size) {
                        *ret = card;
                        return true;
                }
        return false;
}

/* The card that the ledger would take for so much; without one, that on which the kubelet has the
 * least room for it. */
static bool card_for_unknown(const Ask *ask, uint32_t *ret) {
        RequestContainer one = {.mem = ask->kind == DEVICE_MEM ? ask->size : 0,
                                .core = ask->kind == DEVICE_CORE ? ask->size : 0};
        Request request = {
                .mem = one.mem, .core = one.core, .cards = 1, .containers = &one, .n_containers = 1};
        LedgerNode *node = roster_ledger_node(ask->resolver->o.roster);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        uint32_t card, count, least = UINT32_MAX;
        Placement placement;
        Refusal refusal;
        size_t at = 0;

        if (card_of_last_unknown(ask, ret))
                return true;
        if (ask->kind == DEVICE_MEM && node &&
            placement_choose_cards(node, &request, &arena, &placement, &refusal) == 0) {
                *ret = placement.slices[0].card;
                return true;
        }
        while (device_set_next_card(&ask->available, &at, &card, &count))
                if (count >= ask->size && count < least) {
                        least = count;
                        *ret = card;
                }
        return least != UINT32_MAX;
}

/* Nobody knows the pod. Of a static one the API server has no picture until it is admitted; or the
 * API server is away. PreStart will hold it against the pod's annotations before anything runs. */
static void settle_unknown(Ask *ask) {
        _cleanup_devices_ DeviceSet chosen = DEVICE_SET_NULL;
        Fault fault = FAULT_NULL;
        CardShare share = {0, ask->size};

        ask->resolver->counters.unknown++;
        pending_admission_end(&ask->resolver->turn);
        if (!card_for_unknown(ask, &share.card)) {
                refuse(ask, NULL, "the pod is not known from the API server, and no card has room for it");
                return;
        }
        if (choose(ask, &share, 1, &chosen, &fault) != 0) {
                refuse(ask, NULL, fault.text[0] ? fault.text : "out of memory");
                return;
        }
        ask->resolver->unknown =
                (UnknownPod){ask->kind, share.card, clock_monotonic_usec() + UNKNOWN_POD_TTL};
        log_warning("a pod that is not known well enough asks for %u of %s: it gets gpu%u", ask->size,
                    device_resource(ask->kind), share.card);
        answer(ask, &chosen);
}

/* ---- who is it ---- */

static PodCandidateQuery candidate_query(const Ask *ask) {
        const ResolverOptions *o = &ask->resolver->o;

        return (PodCandidateQuery){.roster = o->roster,
                                   .records = o->records,
                                   .kind = ask->kind,
                                   .size = ask->size,
                                   .gone = ask->gone,
                                   .n_gone = ask->n_gone};
}

static void look(Ask *ask);

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Ask *ask = userdata;

        ask->again = sd_event_source_disable_unref(ask->again);
        look(ask);
        return 0;
}

static void give_up(Ask *ask) {
        PodCandidateQuery of = candidate_query(ask);
        const RosterContainer *c = NULL;
        RosterPod *pod = ask->listed
                                 ? NULL
                                 : pod_candidate_guess(&of, pending_admission_uid(&ask->resolver->turn), &c);

        if (!pod || (!pod->placed && !ask->resolver->o.roster->has_cards)) {
                settle_unknown(ask);
                return;
        }
        log_warning("the kubelet does not list its pods: %u of %s are taken for pod=%s/%s", ask->size,
                    device_resource(ask->kind), pod->namespace_, pod->name);
        settle(ask, pod, c, false, NULL);
}

static void look_again(Ask *ask) {
        if (ask->looks++ >= LOOKS_MAX ||
            sd_event_add_time_relative(ask->resolver->o.event, &ask->again, CLOCK_MONOTONIC, LOOK_AGAIN, 0,
                                       on_again, ask) < 0)
                give_up(ask);
}

/* Static pods are called NAME-NODE in the API, where they appear when they have been admitted. */
static bool may_be_static(const Ask *ask) {
        size_t n = strlen(ask->asked_for), node = strlen(ask->resolver->o.roster->node_name);

        return n > node && ask->asked_for[n - node - 1] == '-' &&
               strcmp(ask->asked_for + n - node, ask->resolver->o.roster->node_name) == 0;
}

/* The kubelet heard of the pod before we did: its object is asked for by name. */
static void on_pod(void *userdata, const KubeReply *reply) {
        Ask *ask = userdata;

        ask->get = NULL;
        if (reply->outcome == KUBE_DONE && reply->status == 404 && !may_be_static(ask) &&
            ask->n_gone < GONE_MAX)
                ask->gone[ask->n_gone++] = TAKE_PTR(ask->asked_for);
        if (reply->outcome == KUBE_DONE && reply->status == 200)
                (void) roster_pod(ask->resolver->o.roster, REFLECTOR_MODIFIED, reply->body);
        look_again(ask);
}

/* One that was deleted meanwhile has no place any more, and must not take somebody else's: nobody
 * minds that it fails. */
static void refuse_gone(Ask *ask) {
        Fault fault = FAULT_NULL;

        (void) fault_set(&fault, 0, "pod %s is gone from the API server", ask->gone[ask->n_gone - 1]);
        refuse(ask, NULL, fault.text);
}

static int remember_name(Ask *ask, const ListedPod *pod) {
        Buf name = BUF_NULL;

        buf_appendf(&name, STR_FMT "/" STR_FMT, STR_ARG(pod->namespace_), STR_ARG(pod->name));
        free(ask->asked_for);
        ask->asked_for = buf_take(&name);
        return ask->asked_for ? 0 : -ENOMEM;
}

static void ask_for(Ask *ask, const ListedPod *pod) {
        if (remember_name(ask, pod) < 0 ||
            kube_get_pod(ask->resolver->o.client, pod->namespace_, pod->name, on_pod, ask, &ask->get) < 0)
                look_again(ask);
}

static void on_list(void *userdata, const PodList *list, const Fault *fault) {
        Ask *ask = userdata;
        const RosterPod *refused;
        PodCandidateQuery of = candidate_query(ask);
        PodCandidate found;

        ask->list = NULL;
        if (!list) {
                log_warning("the kubelet does not list its pods: %s", fault->text);
                look_again(ask);
                return;
        }
        ask->listed = true;
        found = pod_candidate_find(&of, list);
        if (found.n > 1)
                log_warning("%zu pods could be the one that is admitted; taken for %s/%s", found.n,
                            found.pod->namespace_, found.pod->name);
        if (found.pod && !ask->asked_for && pod_candidate_is_doubtful(&of, &found))
                ask_for(ask, found.listed);
        else if (found.pod)
                settle(ask, found.pod, found.container, found.with_other, found.listed);
        else if (found.new)
                ask_for(ask, found.new);
        else if ((refused = pod_candidate_refused(&of, list)))
                refuse(ask, refused, refused->refusal);
        else if (found.gone)
                refuse_gone(ask);
        else
                look_again(ask);
}

static void look(Ask *ask) {
        if (pod_resources_list(ask->resolver->o.pod_resources, LIST_TIMEOUT, on_list, ask, &ask->list) < 0)
                look_again(ask);
}

/* ---- the calls ---- */

static void on_close(void *userdata) {
        ask_free(userdata);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        give_up(userdata);
        return 0;
}

static int ask_init(Ask *ask, const PreferredRequest *request, Fault *fault) {
        int r;

        r = device_set_parse(request->available.ids, request->available.n, ask->kind, &ask->available, fault);
        if (r == 0)
                r = device_set_parse(request->must_include.ids, request->must_include.n, ask->kind,
                                     &ask->must_include, fault);
        if (r != 0)
                return r;
        if (request->size == 0 || request->size > ask->available.n)
                return fault_set(fault, DEVICE_E_MALFORMED, "%u devices of %zu available ones", request->size,
                                 ask->available.n);
        return 0;
}

void resolver_preferred(Resolver *a, DeviceKind kind, RpcCall *call, const PreferredRequest *request) {
        Ask *ask = calloc(1, sizeof *ask);
        Fault fault = FAULT_NULL;
        const RosterContainer *c;
        RosterPod *pod;
        int r;

        if (!ask) {
                rpc_fail(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
                return;
        }
        *ask = (Ask){.resolver = a,
                     .call = call,
                     .kind = kind,
                     .size = request->size,
                     .next = a->asks,
                     .link = &a->asks};
        if (ask->next)
                ask->next->link = &ask->next;
        a->asks = ask;
        r = ask_init(ask, request, &fault);
        if (r == 0)
                r = sd_event_add_time_relative(a->o.event, &ask->deadline, CLOCK_MONOTONIC, ASK_DEADLINE, 0,
                                               on_deadline, ask);
        if (r != 0) {
                rpc_fail(call, r < 0 ? RPC_RESOURCE_EXHAUSTED : RPC_INVALID_ARGUMENT,
                         r < 0 ? "out of memory" : fault.text);
                ask_free(ask);
                return;
        }
        rpc_call_on_close(call, on_close, ask);
        if (pending_admission_continues(&a->turn, a->o.roster, kind, request->size, &pod, &c))
                settle(ask, pod, c, false, NULL);
        else
                look(ask);
}

void resolver_forget(Resolver *a) {
        pending_admission_end(&a->turn);
}

void resolver_allocate(Resolver *a, DeviceKind kind, RpcCall *call, PluginIds ids) {
        _cleanup_devices_ DeviceSet set = DEVICE_SET_NULL;
        Fault fault = FAULT_NULL;
        Allocator allocator = {
                .roster = a->o.roster,
                .records = a->o.records,
                .inventory = a->o.inventory,
                .isolation = a->o.isolation,
                .turn = &a->turn,
                .with_cdi = a->o.access == DEVICE_ACCESS_CDI,
        };
        int r;

        r = device_set_parse(ids.ids, ids.n, kind, &set, &fault);
        if (r == 0)
                r = allocator_check(&allocator, kind, &set, &fault);
        if (r != 0) {
                rpc_fail(call, r < 0 ? RPC_RESOURCE_EXHAUSTED : RPC_INVALID_ARGUMENT,
                         r < 0 ? "out of memory" : fault.text);
                return;
        }
        a->counters.allocated++;
        if (!allocator_answer(&allocator, kind, &set, call))
                a->counters.strayed++;
}
