/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/extender.h"

#include "base/metric_text.h"
#include "scheduler/gang/gang_report.h"
#include "share/refusal_reason.h"
#include "wire/json_write.h"

#define PREFIX    "/gpushare-scheduler"
#define TYPE_JSON "application/json"
#define TYPE_TEXT "text/plain; charset=utf-8"

/* The answer's buffer is reused for the next answer, up to this size. */
enum { OUT_KEEP_MAX = 4 << 20 };

void extender_done(Extender *e) {
        buf_done(&e->out);
}

/* ---- the routes ---- */

typedef struct Call {
        Extender *extender;
        Str body;
        Str rest; /* what of the path follows the route */
        Buf *out;
        const char *type; /* content type of the answer */
} Call;

static unsigned on_filter(Call *c) {
        return verb_filter(c->extender->context, c->body, c->out);
}

static unsigned on_prioritize(Call *c) {
        return verb_prioritize(c->extender->context, c->body, c->out);
}

static unsigned on_preempt(Call *c) {
        return verb_preempt(c->extender->context, c->body, c->out);
}

static unsigned on_inspect(Call *c) {
        return verb_inspect(c->extender->context, c->rest, c->out);
}

static unsigned on_why(Call *c) {
        unsigned status = verb_why(c->extender->context, c->rest, c->out);

        c->type = TYPE_TEXT;
        if (status == 200 && !c->extender->context->leading)
                buf_append_str(c->out,
                               STR("\nthis replica does not lead: what the leader holds for a gang or "
                                   "an eviction counts as free here\n"));
        return status;
}

/* Gangs are known to the leader alone. */
static unsigned on_gangs(Call *c) {
        const Extender *e = c->extender;
        const char *why = !e->context->leading && e->why_not_leading ? e->why_not_leading(e->userdata) : NULL;

        if (!c->extender->context->gangs) {
                buf_append_str(c->out, STR("gangs are off: aliquot scheduler runs without --gangs\n"));
                return 404;
        }
        if (!e->context->leading) {
                buf_appendf(c->out, "this replica does not lead, and holds no gangs%s%s\n", why ? ": " : "",
                            why ? why : "");
                return 503;
        }
        gang_report_list(c->extender->context->gangs, c->extender->context->now, c->out);
        return 200;
}

static unsigned on_version(Call *c) {
        buf_append_str(c->out, STR("{\"version\":\"" ALIQUOT_VERSION "\"}"));
        return 200;
}

static unsigned on_healthz(Call *c) {
        c->type = TYPE_TEXT;
        buf_append_str(c->out, STR("ok\n"));
        return 200;
}

/* Called only when the view is in sync: see needs_view. */
static unsigned on_readyz(Call *c) {
        const Extender *e = c->extender;
        const char *why_not = e->why_not_ready ? e->why_not_ready(e->userdata) : NULL;

        if (!why_not)
                return on_healthz(c);
        buf_append_str(c->out, str_from(why_not));
        return 503;
}

static unsigned on_metrics(Call *c) {
        MetricsState state = {
                .leading = c->extender->context->leading,
                .binds_open = c->extender->context->binder ? binder_n_open(c->extender->context->binder) : 0,
                .webhook = c->extender->webhook,
                .heard = c->extender->heard,
                .userdata = c->extender->userdata};

        c->type = METRIC_TEXT_TYPE;
        metrics_write(c->extender->context->metrics, c->extender->context->view, &state, c->out);
        if (c->extender->context->gangs)
                gang_report_metrics(c->extender->context->gangs, c->out);
        if (c->extender->write_listeners)
                c->extender->write_listeners(c->extender->userdata, c->out);
        return 200;
}

typedef struct Route {
        const char *method;
        Str path;
        unsigned (*answer)(Call *c); /* NULL: bind, which answers later */
        int handler;                 /* MetricsHandler; -1: no metrics */
        bool needs_view;             /* 503 until the view is in sync */
        bool has_rest;               /* "/NAME" may follow the path */
        bool at_root;                /* also without PREFIX */
} Route;

static const Route routes[] = {
        {"POST", STR("/filter"), on_filter, METRICS_HANDLER_FILTER, .needs_view = true},
        {"POST", STR("/prioritize"), on_prioritize, METRICS_HANDLER_PRIORITIZE, .needs_view = true},
        {"POST", STR("/bind"), NULL, METRICS_HANDLER_BIND, .needs_view = true},
        {"POST", STR("/preempt"), on_preempt, METRICS_HANDLER_PREEMPT, .needs_view = true},
        {"GET", STR("/inspect"), on_inspect, METRICS_HANDLER_INSPECT, .needs_view = true, .has_rest = true},
        {"GET", STR("/why"), on_why, METRICS_HANDLER_INSPECT, .needs_view = true, .has_rest = true},
        {"GET", STR("/gangs"), on_gangs, METRICS_HANDLER_INSPECT, .needs_view = true},
        {"GET", STR("/version"), on_version, -1, .at_root = true},
        {"GET", STR("/healthz"), on_healthz, -1, .at_root = true},
        {"GET", STR("/readyz"), on_readyz, -1, .needs_view = true, .at_root = true},
        {"GET", STR("/metrics"), on_metrics, -1, .at_root = true},
};

static const Route *route_find(Str path, Str *ret_rest) {
        bool prefixed = str_has_prefix(path, STR(PREFIX "/"));
        size_t skip = prefixed ? sizeof PREFIX - 1 : 0;
        Str at = {path.data + skip, path.len - skip};

        for (size_t i = 0; i < ELEMENTSOF(routes); i++) {
                const Route *r = &routes[i];

                if (!str_has_prefix(at, r->path) || (!prefixed && !r->at_root))
                        continue;
                *ret_rest = (Str){at.data + r->path.len, at.len - r->path.len};
                if (str_is_empty(*ret_rest))
                        return r;
                if (r->has_rest && str_has_prefix(*ret_rest, STR("/"))) {
                        *ret_rest = (Str){ret_rest->data + 1, ret_rest->len - 1};
                        return r;
                }
        }
        return NULL;
}

static const char *not_in_sync(const View *v) {
        return !v->kinds[VIEW_NODES].synced ? "the view is not in sync yet: nodes have not been listed\n"
                                            : "the view is not in sync yet: pods have not been listed\n";
}

/* Returns 0 when the route may answer; else the HTTP status, with the text in *out. */
static unsigned route_check(const Extender *e, const Route *route, const HttpRequest *request, Buf *out) {
        if (!route) {
                buf_appendf(out, "no such path: %s\n", request->path);
                return 404;
        }
        if (strcmp(request->method, route->method) != 0) {
                buf_appendf(out, "%s takes %s, not %s\n", request->path, route->method, request->method);
                return 405;
        }
        if (route->needs_view && !view_in_sync(e->context->view)) {
                buf_append_str(out, str_from(not_in_sync(e->context->view)));
                return 503;
        }
        return 0;
}

static void count_answer(Extender *e, const Route *route, unsigned status, usec_t since) {
        if (!route || route->handler < 0)
                return;
        histogram_observe(&e->context->metrics->handlers[route->handler], clock_monotonic_usec() - since);
        if (status != 200)
                e->context->metrics->errors[route->handler]++;
}

unsigned extender_answer(Extender *e, const HttpRequest *request, Buf *out, const char **ret_type,
                         const char **ret_allow) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        usec_t since = clock_monotonic_usec();
        Str rest = {NULL, 0};
        const Route *route = route_find(str_from(request->path), &rest);
        Call c = {
                .extender = e,
                .body = request->body,
                .rest = rest,
                .out = out,
                .type = TYPE_JSON,
        };
        unsigned status = route_check(e, route, request, out);

        e->context->now = since;
        e->context->arena = &arena;
        *ret_allow = status == 405 ? route->method : NULL;
        if (status == 0)
                status = route->answer ? route->answer(&c) : 404;
        if (buf_result(out) < 0) {
                buf_done(out);
                buf_append_str(out, STR("out of memory\n"));
                status = 503;
        }
        e->context->arena = NULL;
        *ret_type = status == 200 ? c.type : TYPE_TEXT;
        count_answer(e, route, status, since);
        return status;
}

/* ---- bind ---- */

typedef struct BindCall {
        Extender *extender;
        HttpExchange *exchange;
        Bind *bind;
        usec_t since;
} BindCall;

const char *extender_may_not_bind(Extender *e) {
        const char *why = !e->context->leading && e->why_not_leading ? e->why_not_leading(e->userdata) : NULL;

        if (!e->context->leading) {
                (void) snprintf(e->why_not, sizeof e->why_not,
                                "this replica is not the leader, and does not bind%s%s", why ? ": " : "",
                                why ? why : "");
                return e->why_not;
        }
        if (e->fresh && !*e->fresh)
                return "this replica has become the leader just now, and lists the pods before it binds";
        return NULL;
}

/* Answers with an ExtenderBindingResult. An error is in the body and the status is 200, because
 * kube-scheduler shows people only the text of the body. It uses that text as a format (Eventf). */
static void respond_result(HttpExchange *x, const char *error) {
        _cleanup_buf_ Buf out = BUF_NULL, text = BUF_NULL;

        refusal_reason_escape(error, &text);
        buf_append_str(&out, STR("{\"Error\":"));
        json_write_quoted(&out, buf_str(&text));
        buf_append_char(&out, '}');
        if (buf_result(&text) == 0 && buf_result(&out) == 0)
                http_respond(x, 200, TYPE_JSON, buf_str(&out));
        else
                http_respond(x, 503, TYPE_TEXT, STR("out of memory\n"));
}

static void on_bound(void *userdata, const char *error) {
        BindCall *call = userdata;
        Extender *e = call->extender;

        histogram_observe(&e->context->metrics->handlers[METRICS_HANDLER_BIND],
                          clock_monotonic_usec() - call->since);
        if (*error)
                e->context->metrics->errors[METRICS_HANDLER_BIND]++;
        respond_result(call->exchange, error);
        free(call);
}

/* kube-scheduler has closed the connection: after its httpTimeout, 5 s by default. */
static void on_gone(void *userdata) {
        BindCall *call = userdata;

        if (call->bind)
                binder_abandon(call->bind);
        free(call);
}

static void bind_start(Extender *e, HttpExchange *x, const BindingArgs *args) {
        BindCall *call = calloc(1, sizeof *call);
        Bind *bind;

        if (!call) {
                http_respond(x, 503, TYPE_TEXT, STR("out of memory\n"));
                return;
        }
        *call = (BindCall){.extender = e, .exchange = x, .since = clock_monotonic_usec()};
        binder_bind(e->context->binder, args, on_bound, call, &bind);
        if (!bind)
                return; /* answered already, and the call freed */
        call->bind = bind;
        http_exchange_on_close(x, on_gone, call);
}

static void bind_handle(Extender *e, HttpExchange *x, const HttpRequest *request) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf out = BUF_NULL;
        Fault fault = FAULT_NULL;
        const char *why_not;
        BindingArgs args;
        int r;

        r = args_read_binding(request->body, &arena, &args, &fault);
        why_not = r == 0 ? extender_may_not_bind(e) : NULL;
        if (why_not)
                respond_result(x, why_not);
        else if (r == 0)
                bind_start(e, x, &args);
        else {
                unsigned status = verb_failed(r, &fault, &out);

                http_respond(x, status, TYPE_TEXT, buf_str(&out));
        }
        if (why_not || r != 0)
                e->context->metrics->errors[METRICS_HANDLER_BIND]++;
}

static bool is_posted(const Route *route) {
        return strcmp(route->method, "POST") == 0;
}

void extender_handle(void *userdata, HttpExchange *x, const HttpRequest *request) {
        Extender *e = userdata;
        const char *type, *allow;
        Str rest;
        const Route *route = route_find(str_from(request->path), &rest);
        unsigned status;

        if (route && is_posted(route) && !e->context->leading && e->on_asked)
                e->on_asked(e->userdata);
        if (route && !route->answer && strcmp(request->method, route->method) == 0 &&
            view_in_sync(e->context->view)) {
                bind_handle(e, x, request);
                return;
        }
        buf_clear(&e->out);
        status = extender_answer(e, request, &e->out, &type, &allow);
        if (allow)
                http_respond_header(x, "Allow", allow);
        http_respond(x, status, type, buf_str(&e->out));
        if (e->out.capacity > OUT_KEEP_MAX)
                buf_done(&e->out);
}

void extender_handle_reads(void *userdata, HttpExchange *x, const HttpRequest *request) {
        Str rest;
        const Route *route = route_find(str_from(request->path), &rest);

        if (route && is_posted(route))
                http_respond(x, 404, TYPE_TEXT, STR("no such path: this port answers questions alone\n"));
        else
                extender_handle(userdata, x, request);
}
