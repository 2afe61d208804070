/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page/page_server.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "scheduler/page/page_files.h"
#include "scheduler/page/page_host.h"
#include "scheduler/page/page_rows.h"
#include "scheduler/page/page_use.h"
#include "scheduler/page/page_viewers.h"

#define TYPE_JSON "application/json"
#define TYPE_TEXT "text/plain; charset=utf-8"

enum {
        /* Streams, and the short requests beside them; a browser opens up to six connections. */
        CONNECTIONS_MAX = PAGE_VIEWERS_MAX + 48,
        CONNECTIONS_OF_ADDRESS = 48, /* streams do not count; all viewers may come through one proxy */
        IDLE_SEC = 30,               /* also for a client that does not read its answer */
        REQUEST_SEC = 15,
        NAME_MAX_LEN = 253, /* the longest name in Kubernetes (RFC 1123); UIDs are shorter */
};

struct PageServer {
        SchedulerContext *context;
        PageState state;
        PageViewers *viewers;
        PageUse *use;
        HttpServer *server;
        const char *hosts; /* names of --page-hosts, or NULL */
};

/* Headers of every answer. The page may load nothing from other sites, run no inline script, and
 * stand in no frame. No cache may keep a copy, where a later user of the browser would find it. */
static const struct {
        const char *name, *value;
} headers[] = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
         "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
};

static void refuse_request(HttpExchange *x, unsigned status, const char *text) {
        http_respond(x, status, TYPE_TEXT, str_from(text));
}

/* ---- the routes ---- */

static void on_events(PageServer *p, HttpExchange *x, const char *method) {
        if (strcmp(method, "HEAD") == 0) /* a stream would never end */
                http_respond(x, 200, "text/event-stream", STR(""));
        else if (page_viewers_is_full(p->viewers))
                refuse_request(x, 503, "16 viewers look at this page already, and more are not served\n");
        else
                page_viewers_add(p->viewers, x);
}

static void on_node(PageServer *p, HttpExchange *x, Str name) {
        const LedgerNode *node =
                name.len <= NAME_MAX_LEN ? ledger_node_find(p->context->view->ledger, name) : NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf out = BUF_NULL;

        if (!node || !page_rows_shows(node))
                refuse_request(x, 404, "no node of this name shares a GPU\n");
        else if (page_rows_slices(node, &p->state.resizes, &p->context->view->fences, &arena, &out) < 0)
                refuse_request(x, 503, "out of memory\n");
        else
                http_respond(x, 200, TYPE_JSON, buf_str(&out));
}

static void on_use(PageServer *p, HttpExchange *x, Str name) {
        const LedgerNode *node =
                name.len <= NAME_MAX_LEN ? ledger_node_find(p->context->view->ledger, name) : NULL;

        if (!node || !page_rows_shows(node))
                refuse_request(x, 404, "no node of this name shares a GPU\n");
        else
                page_use_answer(p->use, x, name);
}

static void on_why(PageServer *p, HttpExchange *x, Str uid) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf out = BUF_NULL;
        unsigned status;

        if (uid.len > NAME_MAX_LEN) {
                refuse_request(x, 404, "no pod has such a UID\n");
                return;
        }
        p->context->arena = &arena;
        status = verb_why(p->context, uid, &out);
        p->context->arena = NULL;
        http_respond(x, status, TYPE_TEXT, buf_str(&out));
}

/* Whether the path begins with the prefix; *ret: what follows. */
static bool rest_of(const char *path, const char *prefix, Str *ret) {
        Str all = str_from(path), p = str_from(prefix);

        if (!str_has_prefix(all, p))
                return false;
        *ret = (Str){all.data + p.len, all.len - p.len};
        return true;
}

static void route_request(PageServer *p, HttpExchange *x, const HttpRequest *request) {
        const PageFile *file = page_files_find(request->path);
        Str rest;

        if (file)
                http_respond(x, 200, file->content_type, file->bytes);
        else if (strcmp(request->path, "/events") == 0)
                on_events(p, x, request->method);
        else if (rest_of(request->path, "/node/", &rest))
                on_node(p, x, rest);
        else if (rest_of(request->path, "/use/", &rest))
                on_use(p, x, rest);
        else if (rest_of(request->path, "/why/", &rest))
                on_why(p, x, rest);
        else
                refuse_request(x, 404, "no such path\n");
}

/* Whether the page may answer the request; otherwise this function answers it. */
static bool reads_page(HttpExchange *x, const HttpRequest *request) {
        bool reads = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;

        if (!page_host_may_fetch(http_request_header(x, "Sec-Fetch-Site"), strcmp(request->path, "/") == 0))
                refuse_request(x, 403, "another site may not read this page\n");
        else if (!reads) {
                http_respond_header(x, "Allow", "GET, HEAD");
                refuse_request(x, 405, "the page takes GET and HEAD\n");
        } else
                return true;
        return false;
}

static void add_headers(HttpExchange *x) {
        for (size_t i = 0; i < ELEMENTSOF(headers); i++)
                http_respond_header(x, headers[i].name, headers[i].value);
}

static void on_request(void *userdata, HttpExchange *x, const HttpRequest *request) {
        PageServer *p = userdata;

        add_headers(x);
        if (!page_host_is_ours(http_request_header(x, "Host"), p->hosts))
                refuse_request(x, 421,
                               "the header Host must be localhost, an address or a name of --page-hosts\n");
        else if (reads_page(x, request))
                route_request(p, x, request);
}

/* ---- the object ---- */

static void on_limit(void *userdata, const char *text) {
        log_warning("%s", text);
}

static int serve_page(PageServer *p, const PageServerOptions *o, Fault *fault) {
        HttpServerOptions http = {.listen = o->listen,
                                  .name = "page",
                                  .max_connections = CONNECTIONS_MAX,
                                  .max_of_address = CONNECTIONS_OF_ADDRESS,
                                  .on_limit = on_limit,
                                  .idle_sec = IDLE_SEC,
                                  .request_sec = REQUEST_SEC};
        int r = page_host_check_listen(o->listen, fault);

        if (r == 0 && o->hosts)
                r = page_host_check_names(o->hosts, fault);
        return r < 0 ? r : http_server_new(o->event, &http, on_request, p, &p->server, fault);
}

int page_server_new(const PageServerOptions *options, PageServer **ret, Fault *fault) {
        _cleanup_(page_server_freep) PageServer *p = calloc(1, sizeof *p);
        int r;

        if (!p)
                return -ENOMEM;
        p->hosts = options->hosts;
        p->context = options->context;
        p->state.view = options->context->view;
        p->state.leading = &options->context->leading;
        p->state.gangs = options->context->gangs;
        p->state.cluster = options->cluster;
        r = page_viewers_new(options->event, &p->state, &p->viewers);
        if (r == 0)
                r = page_use_new(options->context->client, options->namespace_, &p->use);
        if (r == 0)
                r = serve_page(p, options, fault);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

PageServer *page_server_free(PageServer *p) {
        if (!p)
                return NULL;
        http_server_free(p->server); /* ends the streams, before what they use is freed */
        page_use_free(p->use);
        page_viewers_free(p->viewers);
        page_state_done(&p->state);
        free(p);
        return NULL;
}

const HttpServer *page_server_listener(const PageServer *p) {
        return p->server;
}

void page_server_pod(PageServer *p, const Pod *pod) {
        if (page_waiting_pod(&p->state.waiting, p->context->view, pod) < 0)
                log_warning("out of memory: the page lacks a waiting pod");
        if (page_resizes_pod(&p->state.resizes, p->context->view, pod) < 0)
                log_warning("out of memory: the page lacks a resize");
}

void page_server_listed(PageServer *p) {
        page_waiting_sweep(&p->state.waiting, p->context->view);
        page_resizes_sweep(&p->state.resizes, p->context->view);
}
