/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/random.h>

#include "kube/client-internal.h"
#include "wire/json_table.h"

/* libcurl's multi interface asks for two things: to be told when a socket is ready, and to be called when a deadline has
 * passed. Both are sources of our loop. A call is one easy handle; it ends in call_finish(), which alone decides what is
 * known about its outcome.
 *
 * One trap is curl's own: a request that gets no byte of answer on a *reused* connection is sent again on a fresh one
 * (the server may have closed the idle connection just then). A POST may therefore arrive twice. Our writes bear that:
 * a Binding carries the UID and is refused the second time, a patch carries a resourceVersion, and the caller reads the
 * object when the answer is a conflict. */

enum {
        CONNECT_TIMEOUT_MS = 10000,
        CONNECTIONS_IDLE = 32,
        CALL_TIMEOUT_USEC = 30 * 1000 * 1000,
};

/* ---- joining the loop ---- */

static void client_enter(KubeClient *c);
static void client_leave(KubeClient *c);
static void call_add(KubeCall *call);

static int on_socket_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        KubeClient *c = userdata;
        int action = 0, running;

        if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
                action |= CURL_CSELECT_IN;
        if (revents & EPOLLOUT)
                action |= CURL_CSELECT_OUT;
        if (revents & EPOLLERR)
                action |= CURL_CSELECT_ERR;
        client_enter(c);
        (void) curl_multi_socket_action(c->multi, fd, action, &running); /* faults end the calls concerned */
        client_leave(c);
        return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeClient *c = userdata;
        int running;

        client_enter(c);
        (void) curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        client_leave(c);
        return 0;
}

/* curl wants to hear about this socket (or no longer). assigned: our source for it, kept by curl. */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *assigned) {
        static const uint32_t events[] = {
                [CURL_POLL_IN] = EPOLLIN,
                [CURL_POLL_OUT] = EPOLLOUT,
                [CURL_POLL_INOUT] = EPOLLIN | EPOLLOUT,
        };
        KubeClient *c = userdata;
        sd_event_source *source = assigned;

        if (what == CURL_POLL_REMOVE) {
                sd_event_source_disable_unref(source);
                return 0;
        }
        if (what < 0 || (size_t) what >= ELEMENTSOF(events))
                return 0;
        if (source)
                return sd_event_source_set_io_events(source, events[what]) < 0 ? -1 : 0;
        if (sd_event_add_io(c->event, &source, fd, events[what], on_socket_ready, c) < 0)
                return -1;
        (void) curl_multi_assign(c->multi, fd, source); /* fails only for a socket curl does not know */
        return 0;
}

static int on_curl_timer(CURLM *multi, long milliseconds, void *userdata) {
        KubeClient *c = userdata;

        if (milliseconds < 0)
                return sd_event_source_set_enabled(c->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
        if (sd_event_source_set_time_relative(c->timer, (usec_t) milliseconds * USEC_PER_MSEC) < 0)
                return -1;
        return sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

/* ---- what comes back ---- */

static size_t on_header(char *line, size_t size, size_t n, void *userdata) {
        KubeCall *call = userdata;
        Str text = {line, size * n}, name = str_split(&text, ':');
        uint64_t seconds;

        if (name.len == strlen("Retry-After") && strncasecmp(name.data, "Retry-After", name.len) == 0 &&
            str_to_u64(str_trim(text), &seconds) && seconds < 86400)
                call->retry_after = seconds * USEC_PER_SEC;
        return size * n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *userdata) {
        KubeCall *call = userdata;
        long status = 0;

        n *= size;
        if (call->cancelled)
                return 0;
        (void) curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        if (call->on_data && status >= 200 && status < 300)
                return call->on_data(call->userdata, (Str){bytes, n}) == 0 ? n : 0;
        if (n > KUBE_MAX_BODY - call->body.len) {
                call->too_long = true;
                return 0;
        }
        buf_append(&call->body, bytes, n);
        return buf_result(&call->body) == 0 ? n : 0;
}

/* `reason` and `message` of a Status object. */
typedef struct StatusObject {
        Str reason, message;
} StatusObject;

static const JsonField status_fields[] = {
        JSON_FIELD(StatusObject, reason, "reason", json_field_str),
        JSON_FIELD(StatusObject, message, "message", json_field_str),
};

/* The texts point into the arena or the body; both live until the callback is over. */
static StatusObject read_status(Str body, Arena *arena) {
        StatusObject s = {0};
        JsonReader r;

        json_init(&r, body);
        if (json_peek(&r) != JSON_OBJECT)
                return s; /* a proxy's page, perhaps: the HTTP status says enough */
        json_decode(&r, arena, status_fields, ELEMENTSOF(status_fields), &s);
        if (json_finish(&r, NULL) != 0)
                return (StatusObject){0};
        return s;
}

/* Could the server have acted? Only when bytes of the request went out. */
static KubeOutcome outcome_of(const KubeCall *call, CURLcode code, long status) {
        long sent = 0;

        if (code == CURLE_OK && status > 0)
                return KUBE_DONE;
        (void) curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &sent);
        return sent > 0 ? KUBE_UNKNOWN : KUBE_NOT_SENT;
}

static void describe_failure(const KubeCall *call, CURLcode code, KubeReply *reply) {
        const char *why = call->too_long   ? "the answer is over the limit"
                          : call->error[0] ? call->error
                                           : curl_easy_strerror(code);

        (void) fault_set(&reply->fault, 0, "%s %s: %s%s", call->method, call->path, why,
                         reply->outcome == KUBE_UNKNOWN ? " (it may have been carried out)" : "");
}

static void call_finish(KubeCall *call, CURLcode code) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        KubeReply reply = {.reason = "", .retry_after = call->retry_after};
        long status = 0;

        (void) curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        reply.outcome = outcome_of(call, code, status);
        if (reply.outcome == KUBE_DONE) {
                reply.status = (unsigned) status;
                reply.body = buf_str(&call->body);
                if (status >= 400) {
                        StatusObject s = read_status(reply.body, &arena);
                        Str reason = arena_str(&arena, s.reason);

                        reply.reason = reason.data ? reason.data : "";
                        (void) fault_set(&reply.fault, 0, "%s %s: %ld " STR_FMT, call->method, call->path,
                                         status, STR_ARG(s.message));
                }
                if (status == 401)
                        kube_token_forget(&call->client->token);
        } else
                describe_failure(call, code, &reply);
        call->finishing = true;
        if (!call->cancelled)
                call->done(call->userdata, &reply);
        call_destroy(call);
}

static void client_reap(KubeClient *c) {
        CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(c->multi, &left))) {
                KubeCall *call;

                if (message->msg != CURLMSG_DONE)
                        continue;
                (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
                call_finish(call, message->data.result);
        }
}

static void client_enter(KubeClient *c) {
        c->busy++;
        c->in_curl = true;
}

/* What callbacks asked for while curl was running, and could not be done under its feet. */
static void client_catch_up(KubeClient *c) {
        KubeCall *call, *next;

        for (call = c->calls; call; call = next) {
                next = call->next;
                if (call->cancelled)
                        call_destroy(call);
                else if (!call->added)
                        call_add(call);
        }
        c->behind = false;
}

static void client_leave(KubeClient *c) {
        c->in_curl = false;
        client_reap(c);
        if (--c->busy > 0)
                return;
        if (c->freed)
                client_destroy(c);
        else if (c->behind)
                client_catch_up(c);
}

/* ---- calls ---- */

void call_destroy(KubeCall *call) {
        if (call->link) {
                *call->link = call->next;
                if (call->next)
                        call->next->link = call->link;
        }
        if (call->easy) {
                if (call->added)
                        (void) curl_multi_remove_handle(call->client->multi, call->easy);
                curl_easy_cleanup(call->easy);
        }
        curl_slist_free_all(call->headers);
        buf_done(&call->body);
        free(call->request_body);
        free(call->method);
        free(call->path);
        free(call);
}

KubeCall *kube_call_free(KubeCall *call) {
        if (!call || call->finishing || call->cancelled)
                return NULL;
        if (call->client->busy > 0) {
                call->cancelled = call->client->behind = true; /* curl must not be re-entered */
                return NULL;
        }
        call_destroy(call);
        return NULL;
}

static int add_header(KubeCall *call, const char *name, const char *value) {
        _cleanup_free_ char *line = NULL;
        struct curl_slist *more;

        if (asprintf(&line, "%s: %s", name, value) < 0) {
                line = NULL;
                return -ENOMEM;
        }
        more = curl_slist_append(call->headers, line);
        if (!more)
                return -ENOMEM;
        call->headers = more;
        return 0;
}

static int add_authorization(KubeCall *call) {
        const char *token = kube_token_get(&call->client->token, clock_monotonic_usec());
        _cleanup_free_ char *value = NULL;

        if (!token)
                return 0;
        if (asprintf(&value, "Bearer %s", token) < 0) {
                value = NULL;
                return -ENOMEM;
        }
        return add_header(call, "Authorization", value);
}

static int add_headers(KubeCall *call, const KubeRequest *request) {
        int r;

        r = add_header(call, "Content-Type",
                       request->content_type ? request->content_type : "application/json");
        if (r == 0)
                r = add_header(call, "Accept", "application/json");
        if (r == 0)
                r = add_header(call, "User-Agent", "aliquot/" ALIQUOT_VERSION);
        if (r == 0)
                r = add_header(call, "Expect", ""); /* takes curl's own away: no round trip before the body */
        return r == 0 ? add_authorization(call) : r;
}

/* Only arms curl's timer: the request leaves from the loop, so that `done` never comes before kube_call() returns. */
static void call_add(KubeCall *call) {
        call->added = true;
        if (curl_multi_add_handle(call->client->multi, call->easy) != CURLM_OK)
                call_finish(call, CURLE_OUT_OF_MEMORY); /* it says so itself for no other reason */
}

static void set_tls(CURL *easy, const KubeConfig *config) {
        /* The cluster's CA alone: the system's folder would cost 8 MiB, and trust that nobody asked for. */
        (void) curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        if (config->ca_file)
                (void) curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file);
        if (config->cert_file) {
                (void) curl_easy_setopt(easy, CURLOPT_SSLCERT, config->cert_file);
                (void) curl_easy_setopt(easy, CURLOPT_SSLKEY, config->key_file);
        }
        if (config->insecure) {
                (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
                (void) curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
        }
}

static void set_limits(CURL *easy, const KubeRequest *request) {
        usec_t timeout = request->timeout ? request->timeout : CALL_TIMEOUT_USEC;

        (void) curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        (void) curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long) CONNECT_TIMEOUT_MS);
        if (timeout != UINT64_MAX)
                (void) curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                                        (long) ((timeout + USEC_PER_MSEC - 1) / USEC_PER_MSEC));
        if (request->idle_timeout > 0) {
                (void) curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
                (void) curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                                        (long) ((request->idle_timeout + USEC_PER_SEC - 1) / USEC_PER_SEC));
        }
}

static int set_request(KubeCall *call, const KubeRequest *request) {
        CURL *easy = call->easy;
        _cleanup_free_ char *url = NULL;

        if (asprintf(&url, "%s%s", call->client->base, request->path) < 0) {
                url = NULL;
                return -ENOMEM;
        }
        if (curl_easy_setopt(easy, CURLOPT_URL, url) != CURLE_OK)
                return -ENOMEM;
        (void) curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
        (void) curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
        (void) curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
        if (call->client->connect_to)
                (void) curl_easy_setopt(easy, CURLOPT_CONNECT_TO, call->client->connect_to);
        if (strcmp(call->method, "GET") != 0) {
                call->request_body = str_dup(request->body);
                if (!call->request_body)
                        return -ENOMEM;
                (void) curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->request_body);
                (void) curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) request->body.len);
        }
        (void) curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
        (void) curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        (void) curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
        (void) curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        (void) curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
        (void) curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error);
        (void) curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
        return 0;
}

int kube_call(KubeClient *c, const KubeRequest *request, KubeDone done, void *userdata, KubeCall **ret) {
        KubeCall *call = calloc(1, sizeof *call);
        int r;

        if (!call)
                return -ENOMEM;
        call->client = c;
        call->done = done;
        call->userdata = userdata;
        call->on_data = request->on_data;
        call->method = str_dup(str_from(request->method));
        call->path = str_dup(str_from(request->path));
        call->easy = curl_easy_init();
        r = call->method && call->path && call->easy ? add_headers(call, request) : -ENOMEM;
        if (r == 0)
                r = set_request(call, request);
        if (r == 0) {
                set_tls(call->easy, c->config);
                set_limits(call->easy, request);
                /* Inside one of curl's own callbacks it has to wait until curl has returned. */
                if (!c->in_curl && curl_multi_add_handle(c->multi, call->easy) != CURLM_OK)
                        r = -ENOMEM;
                call->added = r == 0 && !c->in_curl;
        }
        if (r < 0) {
                call_destroy(call);
                return r;
        }
        c->behind = c->behind || !call->added;
        call->link = &c->calls;
        call->next = c->calls;
        if (call->next)
                call->next->link = &call->next;
        c->calls = call;
        if (ret)
                *ret = call;
        return 0;
}

/* ---- the client ---- */

/* With a TLS server name other than the address, curl verifies and announces the name of the URL, and is told where to
 * connect instead. */
static int set_base(KubeClient *c) {
        const KubeConfig *config = c->config;
        const char *host = strstr(config->server, "://"), *port;
        _cleanup_free_ char *to = NULL;

        if (!config->tls_server_name) {
                c->base = str_dup(str_from(config->server));
                return c->base ? 0 : -ENOMEM;
        }
        host = host ? host + 3 : config->server;
        port = strrchr(host, ':');
        if (!port || strchr(port, ']'))
                port = ":443";
        if (asprintf(&c->base, "https://%s%s", config->tls_server_name, port) < 0) {
                c->base = NULL;
                return -ENOMEM;
        }
        if (asprintf(&to, "::%.*s%s", (int) strcspn(host, "/"), host, strchr(host, ':') ? "" : ":443") < 0) {
                to = NULL;
                return -ENOMEM;
        }
        c->connect_to = curl_slist_append(NULL, to);
        return c->connect_to ? 0 : -ENOMEM;
}

int kube_client_new(sd_event *event, const KubeConfig *config, KubeClient **ret) {
        static bool initialised;
        _cleanup_(kube_client_freep) KubeClient *c = NULL;
        int r;

        if (!initialised && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return -ENOMEM;
        initialised = true;
        c = calloc(1, sizeof *c);
        if (!c)
                return -ENOMEM;
        c->event = sd_event_ref(event);
        c->config = config;
        kube_token_init(&c->token, config->token, config->token_file);
        r = set_base(c);
        if (r < 0)
                return r;
        c->multi = curl_multi_init();
        if (!c->multi)
                return -ENOMEM;
        r = sd_event_add_time_relative(event, &c->timer, CLOCK_MONOTONIC, 0, 1, on_deadline, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        (void) curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
        (void) curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
        (void) curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
        (void) curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
        (void) curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long) CONNECTIONS_IDLE);
        *ret = TAKE_PTR(c);
        return 0;
}

void client_destroy(KubeClient *c) {
        while (c->calls)
                call_destroy(c->calls);
        if (c->multi)
                (void) curl_multi_cleanup(c->multi);
        sd_event_source_disable_unref(c->timer);
        sd_event_unref(c->event);
        curl_slist_free_all(c->connect_to);
        kube_token_done(&c->token);
        free(c->base);
        free(c);
}

KubeClient *kube_client_free(KubeClient *c) {
        if (!c)
                return NULL;
        if (c->busy > 0) {
                c->freed = true;
                for (KubeCall *call = c->calls; call; call = call->next)
                        call->cancelled = true;
                return NULL;
        }
        client_destroy(c);
        return NULL;
}

sd_event *kube_client_event(const KubeClient *c) {
        return c->event;
}

/* ---- trying again ---- */

bool kube_reply_is_transient(const KubeReply *reply) {
        return reply->outcome != KUBE_DONE || reply->status == 429 || reply->status >= 500;
}

usec_t kube_backoff(unsigned attempt, usec_t base, usec_t cap, usec_t retry_after) {
        usec_t most = base;
        uint64_t random = 0;

        while (attempt-- > 0 && most < cap)
                most *= 2;
        most = most < cap ? most : cap;
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
                random = clock_nsec(CLOCK_MONOTONIC);
        /* Full jitter, but never at once: a quarter of the range at least. */
        most = most / 4 + random % (most - most / 4 + 1);
        return retry_after > most ? retry_after : most;
}
