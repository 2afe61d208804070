/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/grower.h"

#include <errno.h>

#include "base/log.h"
#include "base/told.h"
#include "kube/escape.h"
#include "scheduler/controllers/growth_wish.h"
#include "share/ledger_growth.h"
#include "wire/node.h"

#define TICK (1 * USEC_PER_SEC)
/* longest pause after a quota, an error, or a permit that the agent gave back */
#define AGAIN          (30 * USEC_PER_SEC)
#define REASON_REFUSED "GPUGrowthRefused"
/* Time-out of a call: that of a Binding (kube/api.c), so that no permit of a former leader
 * arrives. */
#define TIMEOUT (4 * USEC_PER_SEC)

/* A wish's first pause is AGAIN / 2^HALVED; it doubles each time, up to AGAIN. */
enum { HALVED = 5 };

typedef struct Wish {
        UT_hash_handle hh; /* by uid */
        Str namespace_, name, uid;
        GrowthWish asked;
        bool is_static;   /* a static pod: its UID changes with its mirror */
        bool is_ending;   /* being deleted: the agent does not resize it any more */
        bool is_begun;    /* its growth is under way */
        bool returns;     /* it wants limits back that it gave up, and there is no room */
        Told told;        /* the last Event's note */
        usec_t again;     /* not tried before this time */
        unsigned n_ended; /* number of growths that have ended, at most HALVED */
        char texts[];     /* holds the texts above */
} Wish;

struct Grower {
        GrowerOptions o;
        Wish *wishes, *next; /* next: where the next round begins; NULL: at the first */
        sd_event_source *soon, *timer;
        KubeCall *call;
        char *uid, *node; /* of the pod whose growth is under way; NULL: none */
        bool mem, core;   /* which resource the growth takes beyond the limits */
        bool settles;     /* a permit is written, and the watch may not have shown it yet */
        uint64_t serial;  /* of the patch under way */
        /* Hash of the resourceVersion of the last patch, and of one with an unknown outcome. */
        uint64_t sent, unknown; /* 0: none */
};

int grower_new(const GrowerOptions *options, Grower **ret) {
        Grower *g = calloc(1, sizeof *g);

        if (!g)
                return -ENOMEM;
        g->o = *options;
        g->o.tick = options->tick > 0 ? options->tick : TICK;
        g->o.again = options->again > 0 ? options->again : AGAIN;
        *ret = g;
        return 0;
}

static void drop_wish(Grower *g, Wish *w) {
        if (g->next == w)
                g->next = w->hh.next;
        HASH_DELETE(hh, g->wishes, w);
        free(w);
}

Grower *grower_free(Grower *g) {
        if (!g)
                return NULL;
        kube_call_free(g->call);
        sd_event_source_disable_unref(g->soon);
        sd_event_source_disable_unref(g->timer);
        while (g->wishes)
                drop_wish(g, g->wishes);
        free(g->uid);
        free(g->node);
        free(g);
        return NULL;
}

static Wish *find_wish(const Grower *g, Str uid) {
        Wish *w;

        HASH_FIND(hh, g->wishes, uid.data, uid.len, w);
        return w;
}

static Grant *grant_of(const Grower *g, Str uid) {
        const ViewPod *pod = view_pod_find(g->o.context->view, uid);

        return pod && !pod->reserved ? pod->grant : NULL;
}

static void tell_pod(const Grower *g, Wish *w, const char *note) {
        if (!w || !told_is_news(&w->told, str_from(note), 0, 0))
                return;
        kube_event(g->o.context->recorder, &(KubeEvent){.kind = "Pod",
                                                        .namespace_ = w->namespace_,
                                                        .name = w->name,
                                                        .uid = w->uid,
                                                        .type = "Warning",
                                                        .reason = REASON_REFUSED,
                                                        .note = note,
                                                        .replaces = true});
}

/* ---- the pod whose growth is under way ---- */

static void look_soon(Grower *g);
static void look_later(Grower *g);

/* The wish that the growth under way belongs to. NULL: the pod's annotations have changed since. */
static Wish *begun_wish(const Grower *g) {
        Wish *w = find_wish(g, str_from(g->uid));

        return w && w->is_begun ? w : NULL;
}

/* Ends the growth under way. Its reservation stays until the watch shows the annotation with this
 * serial; 0: no permit was written. The next wish that is due begins at once. */
static void end_growth(Grower *g, uint64_t serial) {
        LedgerNode *n = ledger_node_find(g->o.context->view->ledger, str_from(g->node));
        Wish *w = begun_wish(g);

        if (w) {
                w->again = clock_monotonic_usec() + (g->o.again >> (HALVED - w->n_ended));
                w->n_ended += w->n_ended < HALVED;
                w->is_begun = false;
        }
        if (n)
                ledger_growth_settle(n, str_from(g->uid), serial);
        free(TAKE_PTR(g->uid));
        free(TAKE_PTR(g->node));
        g->sent = g->unknown = 0;
        g->settles |= serial > 0;
        look_soon(g);
}

static void refuse_growth(Grower *g, const char *note) {
        tell_pod(g, begun_wish(g), note);
        end_growth(g, 0);
}

static int call_api(Grower *g, const KubeRequest *request, KubeDone done) {
        KubeRequest r = *request;

        r.timeout = TIMEOUT;
        return kube_call(g->o.context->client, &r, done, g, &g->call);
}

static bool is_good(const KubeReply *reply) {
        return reply->outcome == KUBE_DONE && reply->status / 100 == 2;
}

/* ---- the patch ---- */

static void on_written(void *userdata, const KubeReply *reply) {
        Grower *g = userdata;

        g->call = NULL;
        if (is_good(reply)) {
                log_info("growth permitted: uid=%s node=%s", g->uid, g->node);
                end_growth(g, g->serial);
                return;
        }
        if (reply->outcome == KUBE_UNKNOWN || reply->status >= 500)
                g->unknown = g->sent;
        if (g->unknown == 0 && reply->outcome == KUBE_DONE && reply->status != 409 && reply->status != 429) {
                refuse_growth(g, reply->fault.text);
                return;
        }
        /* 409, 429 or an unknown outcome: the next look reads the node again. */
        log_info("the growth of a slice on node %s waits: %s", g->node, reply->fault.text);
        look_later(g);
}

static int node_path(const Grower *g, Buf *out) {
        kube_node_path(out, str_from(g->node));
        return buf_result(out);
}

static int send_patch(Grower *g, const Growth *growth, Str version) {
        _cleanup_buf_ Buf path = BUF_NULL, patch = BUF_NULL;

        growth_wish_patch(growth, version, &patch);
        g->sent = str_hash64(version, 0) | 1;
        if (node_path(g, &path) < 0 || buf_result(&patch) < 0)
                return -ENOMEM;
        return call_api(g,
                        &(KubeRequest){.method = "PATCH",
                                       .path = path.data,
                                       .content_type = "application/merge-patch+json",
                                       .body = buf_str(&patch)},
                        on_written);
}

/* Writes the permit into the node's annotation. node: the answer to a GET from the quorum. */
static void permit_growth(Grower *g, const Node *node, Arena *arena) {
        const Grant *grant = grant_of(g, str_from(g->uid));
        Fault fault = FAULT_NULL;
        Growth growth;
        int r = growth_read(node->annotations.growth, arena, &growth, &fault);

        if (g->unknown != (str_hash64(node->meta.resource_version, 0) | 1))
                g->unknown = 0; /* the node has changed since, so the unknown patch cannot succeed later */
        if (r != 0 || growth.serial == 0) {
                refuse_growth(g, r > 0 ? fault.text : "the node's agent lets no slice grow");
                return;
        }
        r = grant && (begun_wish(g) || g->unknown != 0) ? growth_wish_raise(grant, arena, &growth) : 0;
        if (r == 0) { /* an earlier patch has succeeded, or the pod withdrew its wish */
                end_growth(g, growth.serial);
                return;
        }
        if (r == -E2BIG) {
                refuse_growth(g, "the node has too many slices that have grown");
                return;
        }
        g->serial = ++growth.serial;
        if (r < 0 || scheduler_context_may_not_act(g->o.context) ||
            send_patch(g, &growth, node->meta.resource_version) < 0)
                look_later(g);
}

static void on_node(void *userdata, const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = reply->fault;
        Grower *g = userdata;
        Node node;
        int r = is_good(reply) ? node_decode(reply->body, &arena, &node, &fault) : 0;

        g->call = NULL;
        if (is_good(reply) && r == 0)
                permit_growth(g, &node, &arena);
        else if (reply->outcome == KUBE_DONE && reply->status == 404)
                end_growth(g, 0);
        else if (g->unknown == 0 && r >= 0 && !kube_reply_is_transient(reply))
                refuse_growth(g, fault.text);
        else {
                log_warning("the growth of a slice waits: %s", fault.text);
                look_later(g);
        }
}

static void read_node(Grower *g) {
        _cleanup_buf_ Buf path = BUF_NULL;

        if (node_path(g, &path) < 0 ||
            call_api(g, &(KubeRequest){.method = "GET", .path = path.data}, on_node) < 0)
                look_later(g);
}

/* ---- the quotas ---- */

static void on_quotas(void *userdata, const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Grower *g = userdata;
        Fault fault = reply->fault;
        Str name = {NULL, 0};

        g->call = NULL;
        if (!begun_wish(g) || !grant_of(g, str_from(g->uid))) {
                end_growth(g, 0);
                return;
        }
        if (!is_good(reply) || growth_wish_quota(reply->body, g->mem, g->core, &arena, &name, &fault) != 0) {
                (void) fault_wrap(&fault, 0, "the ResourceQuotas of the namespace cannot be read");
                refuse_growth(g, fault.text);
                return;
        }
        if (str_is_empty(name)) {
                read_node(g);
                return;
        }
        (void) fault_set(&fault, 0,
                         "a slice does not grow beyond its limit where a ResourceQuota counts the limits: "
                         "quota \"" STR_FMT "\" of the namespace names the resource",
                         STR_ARG(name));
        refuse_growth(g, fault.text);
}

static void read_quotas(Grower *g, const Wish *w) {
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_append_str(&path, STR("/api/v1/namespaces/"));
        kube_url_escape(&path, w->namespace_);
        buf_append_str(&path, STR("/resourcequotas"));
        if (buf_result(&path) < 0 ||
            call_api(g, &(KubeRequest){.method = "GET", .path = path.data}, on_quotas) < 0)
                end_growth(g, 0);
}

/* ---- the choice ---- */

/* Begins the growth of a wish with reserved sizes; g->mem and g->core are set. Returns false when
 * memory is out: the reservation is released. */
static bool begin_growth(Grower *g, Wish *w, LedgerNode *n) {
        g->uid = str_dup(w->uid);
        g->node = str_dup(ledger_node_name(n));
        if (!g->uid || !g->node) {
                ledger_growth_release(n, w->uid);
                free(TAKE_PTR(g->uid));
                free(TAKE_PTR(g->node));
                return false;
        }
        w->is_begun = true;
        if (g->mem || g->core)
                read_quotas(g, w);
        else
                read_node(g);
        return true;
}

/* A pod on one of these cards that waits to have its limit again; NULL: none. */
static const Wish *find_return(const Grower *g, const Wish *w, const LedgerNode *n,
                               const GrowthEntry *entries, size_t count) {
        for (const Wish *other = g->wishes; other; other = other->hh.next) {
                const Grant *grant = other != w && other->returns ? grant_of(g, other->uid) : NULL;

                if (grant && grant_node(grant) == n && growth_wish_shares_card(grant, entries, count))
                        return other;
        }
        return NULL;
}

enum { E_NEVER = 1 };

/* Reserves the entries in the ledger. Returns 0, -ENOMEM, or a positive value with a fault for an
 * Event. */
static int reserve_wish(const Grower *g, const Wish *w, LedgerNode *n, const GrowthEntry *entries,
                        size_t count, Fault *fault) {
        const Wish *first = g->mem || g->core ? find_return(g, w, n, entries, count) : NULL;

        if (first)
                return fault_set(
                        fault, E_NEVER,
                        "pod " STR_FMT "/" STR_FMT " waits to have its limit again on a card of node " STR_FMT
                        ": no slice of the card grows beyond a limit before it",
                        STR_ARG(first->namespace_), STR_ARG(first->name), STR_ARG(ledger_node_name(n)));
        if (w->is_static)
                return fault_set(fault, E_NEVER, "a static pod does not grow beyond its limit");
        if (ledger_growth_serial(n) == 0)
                return fault_set(fault, E_NEVER,
                                 "the agent of node " STR_FMT " lets no slice grow beyond its limit",
                                 STR_ARG(ledger_node_name(n)));
        return growth_wish_reserve(n, entries, count, fault);
}

static bool try_wish(Grower *g, Wish *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        const Grant *grant = grant_of(g, w->uid);
        LedgerNode *n = grant ? grant_node(grant) : NULL;
        Fault fault = FAULT_NULL;
        GrowthEntry *entries;
        size_t count;
        int r;

        w->returns = false;
        if (!n || w->is_ending || !share_mode_is_isolated(ledger_node_mode(n)) ||
            growth_wish_entries(grant, &w->asked, &arena, &entries, &count) < 0 || count == 0 ||
            ledger_growth_is_reserved(n, w->uid) || growth_wish_is_charged(n, entries, count))
                return false;
        growth_wish_beyond(n, entries, count, &g->mem, &g->core);
        r = reserve_wish(g, w, n, entries, count, &fault);
        if (r > 0)
                tell_pod(g, w, fault.text);
        w->returns = r > 0 && !g->mem && !g->core;
        return r == 0 && begin_growth(g, w, n);
}

/* Whether the wish can be dropped: the pod is gone, or it asks for nothing and has all of its
 * limits. */
static bool is_over(const Grower *g, const Wish *w, usec_t now) {
        const Grant *grant = grant_of(g, w->uid);

        return !view_pod_find(g->o.context->view, w->uid) ||
               (w->again <= now && grant && !growth_wish_is_one(grant, &w->asked));
}

/* Ends a reservation if the watch has not shown its permit in time. Returns whether one is still
 * expected. */
static bool expire_reservations(const Grower *g, usec_t now) {
        const Ledger *ledger = g->o.context->view->ledger;
        bool left = false;

        for (size_t i = 0; i < ledger_n_nodes(ledger); i++)
                left |= ledger_growth_expire(ledger_node_at(ledger, i), now);
        return left;
}

/* Tries the wishes in turn, starting behind the one that began last, so that each gets its turn. */
static void look_at_wishes(Grower *g) {
        usec_t now = clock_monotonic_usec();

        if (g->call || scheduler_context_may_not_act(g->o.context))
                return;
        if (g->uid) {
                read_node(g);
                return;
        }
        for (unsigned left = HASH_COUNT(g->wishes); left > 0 && g->wishes; left--) {
                Wish *w = g->next ? g->next : g->wishes;

                g->next = w->hh.next;
                if (is_over(g, w, now))
                        drop_wish(g, w);
                else if (w->again <= now && try_wish(g, w))
                        return;
        }
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Grower *g = userdata;

        g->timer = sd_event_source_disable_unref(g->timer);
        g->settles = g->settles && expire_reservations(g, clock_monotonic_usec());
        look_at_wishes(g);
        look_later(g);
        return 0;
}

static void look_later(Grower *g) {
        if (!g->timer && (g->wishes || g->uid || g->settles) &&
            sd_event_add_time_relative(kube_client_event(g->o.context->client), &g->timer, CLOCK_MONOTONIC,
                                       g->o.tick, 0, on_timer, g) < 0)
                log_error("out of memory: growth waits for the next change of a pod");
}

static int on_soon(sd_event_source *source, void *userdata) {
        Grower *g = userdata;

        g->soon = sd_event_source_disable_unref(g->soon);
        look_at_wishes(g);
        look_later(g);
        return 0;
}

/* Looks in the next round of the event loop, because the caller is in the middle of its own
 * work. */
static void look_soon(Grower *g) {
        if (!g->soon && sd_event_add_defer(kube_client_event(g->o.context->client), &g->soon, on_soon, g) < 0)
                look_later(g);
}

/* ---- the pods ---- */

/* NULL without memory. */
static Wish *add_wish(Grower *g, const Grant *grant, const GrowthWish *asked) {
        Str namespace_ = grant_namespace(grant), name = grant_name(grant), uid = grant_uid(grant);
        Wish *w =
                calloc(1, sizeof *w + namespace_.len + name.len + uid.len + asked->mem.len + asked->core.len);
        char *at = w ? w->texts : NULL;

        if (w) {
                w->namespace_ = str_put(&at, namespace_);
                w->name = str_put(&at, name);
                w->uid = str_put(&at, uid);
                w->asked.mem = str_put(&at, asked->mem);
                w->asked.core = str_put(&at, asked->core);
                /* the pod has a grant, so the view knows it */
                w->is_ending = view_pod_find(g->o.context->view, w->uid)->terminating;
                HASH_ADD_KEYPTR(hh, g->wishes, w->uid.data, w->uid.len, w);
        }
        if (w && hash_added(w, hh))
                return w;
        free(w);
        log_error("out of memory: a slice does not grow before its pod changes");
        return NULL;
}

static bool is_same(const Wish *w, const Pod *pod) {
        return w->is_ending == pod->meta.terminating && str_eq(w->asked.mem, pod->annotations.resize_mem) &&
               str_eq(w->asked.core, pod->annotations.resize_core);
}

void grower_pod(Grower *g, const Pod *pod) {
        const GrowthWish asked = {pod->annotations.resize_mem, pod->annotations.resize_core};
        const Grant *grant = grant_of(g, pod->meta.uid);
        Wish *w = find_wish(g, pod->meta.uid);
        bool asks = grant && growth_wish_is_one(grant, &asked);

        if (w && asks && is_same(w, pod))
                return;
        if (w)
                drop_wish(g, w);
        if (!asks)
                return;
        w = add_wish(g, grant, &asked);
        if (!w)
                return;
        w->is_static = !str_is_empty(pod->annotations.mirror);
        if (!g->uid && !scheduler_context_may_not_act(g->o.context))
                (void) try_wish(g, w);
        look_later(g);
}

void grower_node(Grower *g, Str name) {
        LedgerNode *n = ledger_node_find(g->o.context->view->ledger, name);

        if (!n || ledger_growth_serial(n) == 0)
                return;
        for (Grant *grant = ledger_node_grants(n); grant; grant = grant_next(grant))
                if (ledger_growth_is_below(n, grant_uid(grant)) && !find_wish(g, grant_uid(grant)) &&
                    grant_of(g, grant_uid(grant)) == grant)
                        (void) add_wish(g, grant, &(GrowthWish){{NULL, 0}, {NULL, 0}});
        look_later(g);
}
