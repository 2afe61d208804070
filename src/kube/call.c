/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client-internal.h"

#include <errno.h>
#include <netinet/tcp.h>

#include "kube/reply.h"

enum {
        CONNECT_TIMEOUT_MSEC = 10000,
        CONNECTION_MAX_IDLE_SEC = 60,
        KEEPALIVE_SEC = 30,
        DEFAULT_TIMEOUT_SEC = 30
};

/* ---- what curl tells us about a call ---- */

/* Called when a connection stands and the request is about to be written. A second call means that
 * curl found a kept connection dead after the first write and would write again. The server may
 * have read the first request. */
static int on_sending(void *userdata, char *ip, char *local_ip, int port, int local_port) {
        KubeCall *call = userdata;

        if (call->n_sendings++ == 0 || strcmp(call->method, "GET") == 0)
                return CURL_PREREQFUNC_OK;
        call->stopped = "the connection was lost behind the request, which is not sent twice";
        return CURL_PREREQFUNC_ABORT;
}

/* Whether the server may have read the request: curl counts the bytes that it gave to a socket,
 * over all attempts. */
static bool was_sent(const KubeCall *call) {
        long bytes = 0;

        /* cannot fail for this option */
        (void) curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &bytes);
        return bytes > 0 || call->n_sendings > 1;
}

static unsigned status_of(const KubeCall *call) {
        long status = 0;

        /* cannot fail for this option */
        (void) curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        return (unsigned) status;
}

/* Returns false to end the transfer. */
static bool deliver_data(KubeCall *call, Str bytes) {
        if (call->on_data(call->userdata, bytes) == 0)
                return call->state == CALL_STARTED;
        call->stopped = "ended by its reader";
        return false;
}

static bool take_head(KubeCall *call, Str line) {
        unsigned status;

        call->heard = clock_monotonic_usec();
        call->header_bytes += line.len;
        if (call->state != CALL_STARTED)
                return false;
        if (call->header_bytes > KUBE_MAX_HEADERS) {
                call->stopped = "more headers than an answer has";
                return false;
        }
        if (call->streams || str_trim(line).len > 0)
                return true;
        status = status_of(call);
        /* The certificate of this connection is refused, perhaps because it has expired. The next
         * connection reads the file again. */
        if (status == 401 && call->client->config->cert_file)
                (void) curl_easy_setopt(call->easy, CURLOPT_FORBID_REUSE, 1L);
        if (!call->on_data || status < 200 || status > 299)
                return true;
        call->streams = true;
        return deliver_data(call, STR(""));
}

static size_t on_header(char *data, size_t size, size_t n, void *userdata) {
        return take_head(userdata, (Str){data, n}) ? n : 0;
}

static bool take_body(KubeCall *call, Str bytes) {
        call->heard = clock_monotonic_usec();
        if (call->state != CALL_STARTED)
                return false;
        if (call->streams)
                return deliver_data(call, bytes);
        if (bytes.len > KUBE_MAX_BODY - call->body.len) {
                call->stopped = "the answer is longer than 32 MiB";
                return false;
        }
        buf_append_str(&call->body, bytes);
        if (buf_result(&call->body) == 0)
                return true;
        call->stopped = "out of memory";
        return false;
}

static size_t on_body(char *data, size_t size, size_t n, void *userdata) {
        return take_body(userdata, (Str){data, n}) ? n : 0; /* curl documents that size is 1 */
}

static int on_idle(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeCall *call = userdata;
        KubeClient *c = call->client;
        usec_t quiet = clock_monotonic_usec() - call->heard;

        kube_client_enter(c);
        if (quiet < call->idle_timeout) {
                (void) sd_event_source_set_time_relative(source, call->idle_timeout - quiet);
                /* without it only the idle timeout is lost */
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        } else {
                call->stopped = "nothing was heard for too long";
                kube_call_finish(call, CURLE_OPERATION_TIMEDOUT);
        }
        kube_client_leave(c);
        return 0;
}

/* ---- what we tell curl ---- */

static bool add_header(struct curl_slist **list, const char *name, const char *value) {
        _cleanup_buf_ Buf line = BUF_NULL;
        struct curl_slist *longer;

        buf_appendf(&line, "%s: %s", name, value);
        if (buf_result(&line) < 0)
                return false;
        longer = curl_slist_append(*list, line.data);
        if (longer)
                *list = longer;
        return longer != NULL;
}

static bool prepare_headers(KubeCall *call) {
        KubeClient *c = call->client;
        const char *token = kube_token_get(&c->token, clock_monotonic_usec());
        _cleanup_buf_ Buf bearer = BUF_NULL;

        curl_slist_free_all(TAKE_PTR(call->headers));
        if (c->host_header && !add_header(&call->headers, "Host", c->host_header))
                return false;
        if (call->request.len > 0 &&
            !add_header(&call->headers, "Content-Type",
                        call->content_type ? call->content_type : "application/json"))
                return false;
        if (!token)
                return add_header(&call->headers, "Accept", "application/json");
        buf_appendf(&bearer, "Bearer %s", token);
        return buf_result(&bearer) == 0 && add_header(&call->headers, "Authorization", bearer.data) &&
               add_header(&call->headers, "Accept", "application/json");
}

#define OPT(name, value) (curl_easy_setopt(call->easy, CURLOPT_##name, (value)) == CURLE_OK)

static bool set_address(KubeCall *call) {
        const KubeClient *c = call->client;
        _cleanup_buf_ Buf url = BUF_NULL;

        if (c->connect_to && !call->connect_to)
                call->connect_to = curl_slist_append(NULL, c->connect_to);
        if (c->connect_to && !call->connect_to)
                return false;
        buf_appendf(&url, "%s%s", c->url, call->path);
        return buf_result(&url) == 0 && OPT(URL, url.data) && OPT(PATH_AS_IS, 1L) &&
               OPT(CONNECT_TO, call->connect_to) && OPT(PROTOCOLS_STR, "http,https") &&
               OPT(PROXY, c->config->proxy) && OPT(NOPROXY, c->local && !c->config->proxy ? "*" : NULL);
}

/* Sets CA and client certificate. Where the configuration has a CA, it alone is loaded: the
 * system's would cost 7 MiB of resident memory. */
static bool set_tls(KubeCall *call) {
        const KubeConfig *k = call->client->config;

        if (k->insecure && !(OPT(SSL_VERIFYPEER, 0L) && OPT(SSL_VERIFYHOST, 0L)))
                return false;
        if (k->insecure || k->ca_file)
                if (!OPT(CAINFO, k->ca_file) || !OPT(CAPATH, NULL))
                        return false;
        return !k->cert_file || (OPT(SSLCERT, k->cert_file) && OPT(SSLKEY, k->key_file));
}

/* Sets timeouts and reuse. The other side may close an idle connection at the moment when we write
 * (API servers: after 90 s), so one that has been idle for long is not used. */
static bool set_connection(KubeCall *call) {
        long msec = call->timeout == KUBE_NO_TIMEOUT ? 0 : (long) ((call->timeout + 999) / USEC_PER_MSEC);

        return OPT(HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1) && OPT(NOSIGNAL, 1L) && OPT(TCP_NODELAY, 1L) &&
               OPT(TCP_KEEPALIVE, 1L) && OPT(TCP_KEEPIDLE, (long) KEEPALIVE_SEC) &&
               OPT(TCP_KEEPINTVL, (long) KEEPALIVE_SEC / 3) &&
               OPT(MAXAGE_CONN, (long) CONNECTION_MAX_IDLE_SEC) &&
               OPT(CONNECTTIMEOUT_MS, (long) CONNECT_TIMEOUT_MSEC) && OPT(TIMEOUT_MS, msec);
}

static bool set_callbacks(KubeCall *call) {
        return OPT(PRIVATE, call) && OPT(ERRORBUFFER, call->error) && OPT(HEADERFUNCTION, on_header) &&
               OPT(HEADERDATA, call) && OPT(WRITEFUNCTION, on_body) && OPT(WRITEDATA, call) &&
               OPT(PREREQFUNCTION, on_sending) && OPT(PREREQDATA, call);
}

/* Sets headers, method and body. A body is sent at once: `Expect` would cost a round trip. */
static bool set_request(KubeCall *call) {
        if (!prepare_headers(call) || !OPT(USERAGENT, "aliquot/" ALIQUOT_VERSION))
                return false;
        if (call->request.len > 0 || strcmp(call->method, "POST") == 0 || strcmp(call->method, "PUT") == 0 ||
            strcmp(call->method, "PATCH") == 0) {
                if (!add_header(&call->headers, "Expect", "") || !OPT(POST, 1L) ||
                    !OPT(POSTFIELDSIZE_LARGE, (curl_off_t) call->request.len) ||
                    !OPT(POSTFIELDS, call->request.data ? call->request.data : ""))
                        return false;
        }
        return OPT(CUSTOMREQUEST, strcmp(call->method, "GET") == 0 ? NULL : call->method) &&
               OPT(HTTPHEADER, call->headers);
}

#undef OPT

static int prepare_transfer(KubeCall *call) {
        call->easy = kube_client_take_handle(call->client);
        call->heard = clock_monotonic_usec();
        if (!call->easy || !set_address(call) || !set_tls(call) || !set_connection(call) ||
            !set_callbacks(call) || !set_request(call))
                return -ENOMEM;
        return 0;
}

/* ---- creation and end of a call ---- */

static bool copy_request(KubeCall *call, const KubeRequest *request) {
        /* DELETE is the longest */
        (void) snprintf(call->method, sizeof call->method, "%s", request->method);
        call->path = str_dup(str_from(request->path));
        if (request->content_type)
                call->content_type = str_dup(str_from(request->content_type));
        buf_append_str(&call->request, request->body);
        call->timeout = request->timeout > 0 ? request->timeout : DEFAULT_TIMEOUT_SEC * USEC_PER_SEC;
        call->idle_timeout = request->idle_timeout;
        call->on_data = request->on_data;
        return call->path && (call->content_type || !request->content_type) &&
               buf_result(&call->request) == 0;
}

static void link_call(KubeClient *c, KubeCall *call) {
        call->client = c;
        call->link = &c->calls;
        call->next = c->calls;
        if (call->next)
                call->next->link = &call->next;
        c->calls = call;
}

int kube_call_new(KubeClient *c, const KubeRequest *request, KubeDone done, void *userdata, KubeCall **ret) {
        KubeCall *call = calloc(1, sizeof *call);
        int r;

        if (!call)
                return -ENOMEM;
        link_call(c, call);
        call->done = done;
        call->userdata = userdata;
        r = copy_request(call, request) ? prepare_transfer(call) : -ENOMEM;
        if (r == 0 && call->idle_timeout > 0)
                r = sd_event_add_time_relative(c->event, &call->idle, CLOCK_MONOTONIC, call->idle_timeout,
                                               call->idle_timeout / 10 + 1, on_idle, call);
        if (r < 0) {
                kube_call_destroy(call);
                return -ENOMEM;
        }
        *ret = call;
        return 0;
}

void kube_call_destroy(KubeCall *call) {
        if (call->easy)
                kube_client_give_handle(call->client, call->easy);
        sd_event_source_disable_unref(call->idle);
        *call->link = call->next;
        if (call->next)
                call->next->link = call->link;
        curl_slist_free_all(call->headers);
        curl_slist_free_all(call->connect_to);
        free(call->path);
        free(call->content_type);
        buf_done(&call->request);
        buf_done(&call->body);
        free(call);
}

/* Repeats a request that was answered with 401 if the kubelet has written a newer token meanwhile.
 * The server has not acted on it. */
static bool send_again(KubeCall *call) {
        if (call->sent_again || status_of(call) != 401 ||
            !kube_token_renew(&call->client->token, clock_monotonic_usec()))
                return false;
        call->sent_again = true;
        kube_client_give_handle(call->client, TAKE_PTR(call->easy));
        buf_clear(&call->body);
        call->n_sendings = 0;
        call->header_bytes = 0;
        call->state = CALL_WAITING;
        return prepare_transfer(call) == 0 && kube_client_start(call->client, call) == 0;
}

/* The server's clock, in seconds since 1970; 0 where it does not tell (RFC 9110, 6.6.1). */
static int64_t date_of(const KubeCall *call) {
        struct curl_header *header;
        time_t date;

        if (curl_easy_header(call->easy, "Date", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
                return 0;
        date = curl_getdate(header->value, NULL);
        return date > 0 ? date : 0;
}

static void deliver_reply(KubeCall *call, CURLcode result) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        curl_off_t retry_after = 0;
        KubeTransfer t = {
                .method = call->method,
                .path = call->path,
                .error = call->stopped  ? call->stopped
                         : *call->error ? call->error
                                        : curl_easy_strerror(result),
                .body = buf_str(&call->body),
        };
        KubeReply reply;

        if (call->easy) {
                (void) curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER,
                                         &retry_after); /* 0 when there is none */
                t.status = status_of(call);
                t.sent = was_sent(call);
                t.date = date_of(call);
                t.answered = result == CURLE_OK && t.status > 0;
        }
        if (retry_after > 0 && retry_after < 24 * 3600)
                t.retry_after = (usec_t) retry_after * USEC_PER_SEC;
        kube_reply_init(&reply, &t, &arena);
        call->done(call->userdata, &reply);
}

void kube_call_finish(KubeCall *call, CURLcode result) {
        if (call->state != CALL_STARTED && call->state != CALL_WAITING)
                return;
        if (result == CURLE_OK && send_again(call))
                return;
        call->state = CALL_FINISHED;
        sd_event_source_disable_unref(TAKE_PTR(call->idle));
        if (call->done)
                deliver_reply(call, result);
        kube_call_destroy(call);
}
