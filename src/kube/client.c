/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client.h"

#include <errno.h>
#include <sys/epoll.h>

#include "kube/client-internal.h"

/* curl says which sockets it waits for and when it wants to be called next; sd-event does the
 * waiting. While curl is on the stack (curl_multi_socket_action and the callbacks below it), no
 * handle may be added to it or removed. Callers' requests are marked on the call until then. */

/* ---- turns of the loop ---- */

static void client_destroy(KubeClient *c);

void kube_client_enter(KubeClient *c) {
        c->in_event++;
}

void kube_client_leave(KubeClient *c) {
        if (--c->in_event == 0 && c->doomed)
                client_destroy(c);
}

/* The first call that was made or cancelled inside curl. The search starts over after each step,
 * because a `done` may change the list anywhere. */
static KubeCall *next_unsettled(const KubeClient *c) {
        for (KubeCall *call = c->calls; call; call = call->next)
                if (call->state == CALL_WAITING || call->state == CALL_CANCELLED)
                        return call;
        return NULL;
}

static void settle_calls(KubeClient *c) {
        KubeCall *call;

        while (c->unsettled && (call = next_unsettled(c)))
                if (call->state == CALL_CANCELLED)
                        kube_call_destroy(call);
                else if (kube_client_start(c, call) < 0)
                        kube_call_finish(call, CURLE_OUT_OF_MEMORY);
        c->unsettled = false;
}

static void deliver_finished(KubeClient *c) {
        CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(c->multi, &left))) {
                KubeCall *call = NULL;

                (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
                                         (char **) &call); /* always set */
                kube_call_finish(call, message->data.result);
        }
}

static int run_curl(KubeClient *c, curl_socket_t fd, int events) {
        int running;

        kube_client_enter(c);
        c->in_curl++;
        (void) curl_multi_socket_action(c->multi, fd, events,
                                        &running); /* each transfer reports its own errors */
        c->in_curl--;
        settle_calls(c);
        deliver_finished(c);
        kube_client_leave(c);
        return 0;
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        int events = 0;

        if (revents & EPOLLIN)
                events |= CURL_CSELECT_IN;
        if (revents & EPOLLOUT)
                events |= CURL_CSELECT_OUT;
        if (revents & (EPOLLERR | EPOLLHUP))
                events |= CURL_CSELECT_ERR;
        return run_curl(userdata, fd, events);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        return run_curl(userdata, CURL_SOCKET_TIMEOUT, 0);
}

static int on_soon(sd_event_source *source, void *userdata) {
        return run_curl(userdata, CURL_SOCKET_TIMEOUT, 0);
}

/* ---- what curl asks of the loop ---- */

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *source_) {
        KubeClient *c = userdata;
        sd_event_source *source = source_;
        uint32_t events = 0;

        if (what == CURL_POLL_REMOVE) {
                sd_event_source_disable_unref(source);
                return 0;
        }
        if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
                events |= EPOLLIN;
        if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
                events |= EPOLLOUT;
        if (source)
                return sd_event_source_set_io_events(source, events) < 0 ? -1 : 0;
        if (sd_event_add_io(c->event, &source, fd, events, on_io, c) < 0)
                return -1;
        return curl_multi_assign(c->multi, fd, source) == CURLM_OK ? 0 : -1;
}

static int on_curl_timer(CURLM *multi, long msec, void *userdata) {
        KubeClient *c = userdata;
        int r;

        r = sd_event_source_set_enabled(c->soon, msec == 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        if (r >= 0 && msec > 0)
                r = sd_event_source_set_time_relative(c->timer, (usec_t) msec * USEC_PER_MSEC);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->timer, msec > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        return r < 0 ? -1 : 0;
}

/* ---- handles ---- */

CURL *kube_client_take_handle(KubeClient *c) {
        return c->n_pool > 0 ? c->pool[--c->n_pool] : curl_easy_init();
}

void kube_client_give_handle(KubeClient *c, CURL *easy) {
        /* harmless for a handle that was never added */
        (void) curl_multi_remove_handle(c->multi, easy);
        if (c->n_pool == KUBE_POOL) {
                curl_easy_cleanup(easy);
                return;
        }
        curl_easy_reset(easy);
        c->pool[c->n_pool++] = easy;
}

int kube_client_start(KubeClient *c, KubeCall *call) {
        if (c->in_curl > 0) {
                c->unsettled = true;
                return 0;
        }
        if (curl_multi_add_handle(c->multi, call->easy) != CURLM_OK)
                return -ENOMEM;
        call->state = CALL_STARTED;
        return 0;
}

int kube_call(KubeClient *c, const KubeRequest *request, KubeDone done, void *userdata, KubeCall **ret) {
        KubeCall *call;
        int r;

        r = kube_call_new(c, request, done, userdata, &call);
        if (r < 0)
                return r;
        r = kube_client_start(c, call);
        if (r < 0) {
                kube_call_destroy(call);
                return r;
        }
        if (ret)
                *ret = call;
        return 0;
}

KubeCall *kube_call_free(KubeCall *call) {
        if (!call)
                return NULL;
        if (call->state == CALL_FINISHED || call->client->in_curl > 0) {
                if (call->state != CALL_FINISHED)
                        call->state = CALL_CANCELLED;
                call->client->unsettled = true;
                return NULL;
        }
        kube_call_destroy(call);
        return NULL;
}

/* ---- the client ---- */

DEFINE_CLEANUP(char *, curl_free)
DEFINE_CLEANUP(CURLU *, curl_url_cleanup)

static bool is_local(const char *host) {
        return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0;
}

/* Puts tls_server_name into the URL, because curl checks a certificate against its host.
 * CURLOPT_CONNECT_TO has the real address. */
static int rename_server(KubeClient *c, CURLU *url, const char *host) {
        _cleanup_(curl_freep) char *port = NULL, *renamed = NULL;
        _cleanup_buf_ Buf text = BUF_NULL;

        if (curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK)
                return -EINVAL;
        buf_appendf(&text, "::%s:%s", host, port);
        c->connect_to = buf_take(&text);
        buf_appendf(&text, "%s:%s", host, port);
        c->host_header = buf_take(&text);
        if (!c->connect_to || !c->host_header)
                return -ENOMEM;
        if (curl_url_set(url, CURLUPART_HOST, c->config->tls_server_name, 0) != CURLUE_OK ||
            curl_url_get(url, CURLUPART_URL, &renamed, 0) != CURLUE_OK)
                return -EINVAL;
        free(c->url);
        c->url = str_dup(str_from(renamed));
        return c->url ? 0 : -ENOMEM;
}

static int init_address(KubeClient *c) {
        _cleanup_(curl_url_cleanupp) CURLU *url = curl_url();
        _cleanup_(curl_freep) char *host = NULL;
        size_t n;
        int r;

        c->url = str_dup(str_from(c->config->server));
        if (!url || !c->url)
                return -ENOMEM;
        if (curl_url_set(url, CURLUPART_URL, c->config->server, 0) != CURLUE_OK ||
            curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
                return -EINVAL;
        c->local = is_local(host);
        r = c->config->tls_server_name ? rename_server(c, url, host) : 0;
        if (r < 0)
                return r;
        n = strlen(c->url);
        if (n > 0 && c->url[n - 1] == '/')
                c->url[n - 1] = '\0'; /* curl writes an empty path as "/" */
        return 0;
}

static int init_loop(KubeClient *c) {
        int r;

        r = sd_event_add_time(c->event, &c->timer, CLOCK_MONOTONIC, 0, 1, on_timer, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(c->event, &c->soon, on_soon, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->soon, SD_EVENT_OFF);
        return r;
}

static int init_multi(KubeClient *c) {
        c->multi = curl_multi_init();
        if (!c->multi || curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket) != CURLM_OK ||
            curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c) != CURLM_OK ||
            curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer) != CURLM_OK ||
            curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c) != CURLM_OK ||
            curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long) KUBE_MAX_CONNECTIONS) !=
                    CURLM_OK ||
            curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long) KUBE_MAX_CONNECTIONS) != CURLM_OK)
                return -ENOMEM;
        return 0;
}

int kube_client_new(sd_event *event, const KubeConfig *config, KubeClient **ret) {
        KubeClient *c;
        int r;

        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return -ENOMEM;
        c = calloc(1, sizeof *c);
        if (!c) {
                curl_global_cleanup();
                return -ENOMEM;
        }
        c->event = sd_event_ref(event);
        c->config = config;
        kube_token_init(&c->token, config->token, config->token_file);
        r = init_address(c);
        if (r >= 0)
                r = init_loop(c);
        if (r >= 0)
                r = init_multi(c);
        if (r < 0) {
                client_destroy(c);
                return r;
        }
        *ret = c;
        return 0;
}

static void client_destroy(KubeClient *c) {
        while (c->calls)
                kube_call_destroy(c->calls);
        while (c->n_pool > 0)
                curl_easy_cleanup(c->pool[--c->n_pool]);
        /* closes the connections and their event sources */
        curl_multi_cleanup(c->multi);
        sd_event_source_disable_unref(c->timer);
        sd_event_source_disable_unref(c->soon);
        sd_event_unref(c->event);
        kube_token_done(&c->token);
        free(c->url);
        free(c->host_header);
        free(c->connect_to);
        free(c);
        curl_global_cleanup();
}

/* Where a callback of the client calls this, no further `done` is called, and the client is
 * destroyed after the callback. */
KubeClient *kube_client_free(KubeClient *c) {
        KubeCall *next;

        if (!c)
                return NULL;
        if (c->in_event == 0) {
                client_destroy(c);
                return NULL;
        }
        c->doomed = true;
        for (KubeCall *call = c->calls; call; call = next) {
                next = call->next;
                (void) kube_call_free(call); /* always NULL */
        }
        return NULL;
}

sd_event *kube_client_event(const KubeClient *c) {
        return c->event;
}
