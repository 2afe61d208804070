/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/webhook.h"

#include <errno.h>

#include "base/log.h"
#include "net/http/reload.h"
#include "scheduler/webhook/ca_injector.h"
#include "scheduler/webhook/cert_rotate.h"

#define PATH           "/gpushare-scheduler/webhook/"
#define REASON_CA_AGES "WebhookCaAges"

enum {
        /* An update carries the old and the new object, and the API server accepts requests of 3
         * MiB. The rest is for the envelope. */
        BODY_MAX = 7 << 20,
        /* An API server handles 600 requests at a time by default, each on a connection
         * (max-requests-inflight, max-mutating-requests-inflight: kube-apiserver's reference). */
        CONNECTIONS_MAX = 2048,
        CONNECTIONS_OF_ADDRESS = 1024,
        NAMES = 3,
        OUT_KEEP_MAX = 64 << 10,
};

struct Webhook {
        WebhookOptions o;
        HttpServer *server;
        HttpReload *reload;
        CertRotate *rotation;
        CaInjector *injector;
        char *names[NAMES + 1]; /* the Service's DNS names; NULL-terminated */
        Buf out;
        WebhookCounts counts;
};

/* ---- answering ---- */

static const struct {
        const char *path;
        ReviewTask task;
} routes[] = {
        {PATH "mutate", REVIEW_MUTATE},
        {PATH "validate", REVIEW_VALIDATE},
};

static void respond_line(HttpExchange *x, unsigned status, const char *text) {
        _cleanup_buf_ Buf line = BUF_NULL;

        buf_append_str(&line, str_from(text));
        buf_append_char(&line, '\n');
        http_respond(x, status, "text/plain; charset=utf-8", buf_str(&line));
}

static void answer_review(Webhook *w, HttpExchange *x, ReviewTask task, Str body) {
        ReviewVerdict verdict = REVIEW_ALLOWED;
        Fault fault = FAULT_NULL;
        int r;

        buf_clear(&w->out);
        r = review_answer(task, &w->o.rules, body, &w->out, &verdict, &fault);
        if (r == 0) {
                w->counts.verdicts[verdict]++;
                http_respond(x, 200, "application/json", buf_str(&w->out));
        } else if (r == REVIEW_E_MALFORMED) {
                w->counts.malformed++;
                respond_line(x, 400, fault.text);
        } else
                respond_line(x, 503, "out of memory");
        if (w->out.capacity > OUT_KEEP_MAX || r < 0)
                buf_done(&w->out);
}

/* Handles a request. GET /healthz is for the kubelet if it reaches no other port. Without a
 * certificate TLS fails before. */
static void handle_request(void *userdata, HttpExchange *x, const HttpRequest *request) {
        if (strcmp(request->path, "/healthz") == 0 && strcmp(request->method, "GET") == 0) {
                respond_line(x, 200, "ok");
                return;
        }
        for (size_t i = 0; i < ELEMENTSOF(routes); i++) {
                if (strcmp(request->path, routes[i].path) != 0)
                        continue;
                if (strcmp(request->method, "POST") == 0) {
                        answer_review(userdata, x, routes[i].task, request->body);
                        return;
                }
                http_respond_header(x, "Allow", "POST");
                respond_line(x, 405, "reviews are sent by POST");
                return;
        }
        respond_line(x, 404, "no such path; there are " PATH "mutate and " PATH "validate");
}

/* ---- the certificate of the Secret ---- */

static void on_news(void *userdata, const char *what) {
        log_info("%s", what);
}

static void on_trouble(void *userdata, const Fault *fault) {
        log_warning("%s", fault->text);
}

static void on_limit(void *userdata, const char *text) {
        log_warning("%s", text);
}

static void serve_keyring(Webhook *w, const Keyring *k) {
        CertificateLife life;
        Fault fault = FAULT_NULL;
        int r = http_server_set_certificate(w->server, k->texts[KEYRING_CERT], k->texts[KEYRING_KEY], &fault);

        if (r != 0) {
                log_warning("the certificate of Secret %s/" WEBHOOK_SECRET " is not served: %s",
                            w->o.service_namespace, fault.text);
                return;
        }
        if (certificate_life(k->texts[KEYRING_CERT], &life))
                w->counts.certificate_end = life.not_after;
        if (certificate_life(k->texts[KEYRING_AUTHORITIES], &life))
                w->counts.authority_end = life.not_after;
        log_info("serving the certificate of Secret " WEBHOOK_SECRET);
}

/* Sets the bundle first: if this replica writes it, the write begins before the certificate is
 * served. */
static void on_keyring(void *userdata, const Keyring *k) {
        Webhook *w = userdata;

        if (k->texts[KEYRING_AUTHORITIES] &&
            ca_injector_set_bundle(w->injector, k->texts[KEYRING_AUTHORITIES]) < 0)
                log_warning("out of memory: the caBundle is not kept in step");
        serve_keyring(w, k);
}

static void on_ageing(void *userdata) {
        Webhook *w = userdata;

        kube_event(w->o.recorder,
                   &(KubeEvent){.kind = "Secret",
                                .namespace_ = str_from(w->o.service_namespace),
                                .name = STR(WEBHOOK_SECRET),
                                .type = "Warning",
                                .reason = REASON_CA_AGES,
                                .note = "two thirds of the life of the webhook's CA are over: see "
                                        "docs/operate/admission.md for how another one is made"});
}

static char *join_name(const char *a, const char *b, const char *suffix) {
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_appendf(&text, "%s.%s%s", a, b, suffix);
        return buf_take(&text);
}

static int set_names(Webhook *w) {
        static const char *const suffixes[NAMES] = {".svc", ".svc.cluster.local", ""};

        for (size_t i = 0; i < NAMES; i++) {
                w->names[i] = join_name(w->o.service_name, w->o.service_namespace, suffixes[i]);
                if (!w->names[i])
                        return -ENOMEM;
        }
        return 0;
}

static int keep_secret(Webhook *w) {
        CaInjectorOptions injector = {
                .client = w->o.client,
                .service_namespace = w->o.service_namespace,
                .service_name = w->o.service_name,
        };
        CertRotateOptions rotation = {
                .client = w->o.client,
                .namespace_ = w->o.service_namespace,
                .secret = WEBHOOK_SECRET,
                .names = (const char *const *) w->names,
                .on_keyring = on_keyring,
                .on_news = on_news,
                .on_ageing = on_ageing,
                .on_trouble = on_trouble,
                .userdata = w,
        };
        int r = set_names(w);

        if (r == 0)
                r = ca_injector_new(&injector, &w->injector);
        return r < 0 ? r : cert_rotate_new(&rotation, &w->rotation);
}

/* ---- the certificate of files ---- */

static void on_file(void *userdata, const char *what) {
        log_info("serving the certificate of the files again");
}

static int follow_files(Webhook *w, Fault *fault) {
        HttpReloadOptions options = {
                .server = w->server,
                .cert = w->o.tls_cert,
                .key = w->o.tls_key,
                .on_news = on_file,
                .on_trouble = on_trouble,
        };
        int r = http_reload_new(w->o.event, &options, &w->reload, fault);

        return r > 0 ? -EINVAL : r;
}

/* ---- the whole ---- */

int webhook_new(const WebhookOptions *options, Webhook **ret, Fault *fault) {
        _cleanup_(webhook_freep) Webhook *w = calloc(1, sizeof *w);
        HttpServerOptions server = {.listen = options->listen,
                                    .name = "webhook",
                                    .max_body = BODY_MAX,
                                    .max_connections = CONNECTIONS_MAX,
                                    .max_of_address = CONNECTIONS_OF_ADDRESS,
                                    .on_limit = on_limit,
                                    .tls = true};
        int r;

        if (!w)
                return fault_set(fault, -ENOMEM, "out of memory");
        w->o = *options;
        r = http_server_new(options->event, &server, handle_request, w, &w->server, fault);
        if (r == 0)
                r = options->tls_cert ? follow_files(w, fault) : keep_secret(w);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(w);
        return 0;
}

Webhook *webhook_free(Webhook *w) {
        if (!w)
                return NULL;
        cert_rotate_free(w->rotation);
        ca_injector_free(w->injector);
        http_reload_free(w->reload);
        http_server_free(w->server);
        for (size_t i = 0; i < NAMES; i++)
                free(w->names[i]);
        buf_done(&w->out);
        free(w);
        return NULL;
}

void webhook_set_leading(Webhook *w, bool leading) {
        if (!w->rotation)
                return;
        ca_injector_set_leading(w->injector, leading);
        cert_rotate_set_leading(w->rotation, leading);
}

void webhook_drain(Webhook *w) {
        http_server_keep_alive(w->server, false);
}

const HttpServer *webhook_server(const Webhook *w) {
        return w->server;
}

const char *webhook_why_not_ready(const Webhook *w) {
        if (w->reload)
                return NULL;
        if (w->counts.certificate_end == 0)
                return "the webhook has no certificate yet\n";
        return ca_injector_lacks_bundle(w->injector) ? "the webhook's configuration has no caBundle yet\n"
                                                     : NULL;
}

const WebhookCounts *webhook_counts(const Webhook *w) {
        return &w->counts;
}
