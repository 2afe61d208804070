/* SPDX-License-Identifier: Apache-2.0 */

/* Admission reviews over HTTPS and kept connections, as the API server sends them: a pod of 4 KiB,
 * mutated and validated by turns. The baseline takes turns with it in the same run: a server that
 * ignores the request and sends a body of the size of the answer. It is the cost of HTTP and TLS.
 *
 * bench-webhook [ROUNDS] */

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "load.h"
#include "net/http/http_server.h"
#include "scheduler/webhook/certificate.h"
#include "scheduler/webhook/webhook.h"

enum { CONNECTIONS = 8, POD_BYTES = 4096 };

static const char *const names[] = {"localhost", NULL};

typedef struct Files {
        char folder[64], cert[96], key[96];
        CertificatePair ca, pair;
} Files;

static void write_file(const char *path, const char *text) {
        FILE *f = fopen(path, "we");

        if (!f || fputs(text, f) < 0 || fclose(f) != 0)
                load_fail("cannot write %s", path);
}

static void files_begin(Files *f) {
        int64_t now = (int64_t) (clock_realtime_nsec() / UINT64_C(1000000000));
        Fault fault = FAULT_NULL;

        *f = (Files){.folder = "/tmp/aliquot-bench-XXXXXX"};
        if (!mkdtemp(f->folder))
                load_fail("no folder in /tmp");
        (void) snprintf(f->cert, sizeof f->cert, "%s/crt", f->folder);
        (void) snprintf(f->key, sizeof f->key, "%s/key", f->folder);
        if (certificate_make(&(CertificateRequest){.name = "bench", .now = now, .life = 86400}, NULL, &f->ca,
                             &fault) != 0 ||
            certificate_make(
                    &(CertificateRequest){.name = "bench", .names = names, .now = now, .life = 86400}, &f->ca,
                    &f->pair, &fault) != 0)
                load_fail("%s", fault.text);
        write_file(f->cert, f->pair.cert);
        write_file(f->key, f->pair.key);
}

static void files_end(Files *f) {
        (void) unlink(f->cert); /* in /tmp: files that stay are no harm */
        (void) unlink(f->key);
        (void) rmdir(f->folder);
        certificate_pair_done(&f->ca);
        certificate_pair_done(&f->pair);
}

/* ---- servers, each a process of its own ---- */

/* An answer with a patch. */
static const char same_size[] =
        "{\"apiVersion\":\"admission.k8s.io/"
        "v1\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":\"705ab4f5-6393-"
        "11e8-b7cc-42010a800002\",\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":"
        "\"W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvc2NoZWR1bGVyTmFtZSIsInZhbHVlIjoiYWNrLWNvLXNjaGVkdWxlciJ9XQ=="
        "\"}}";

static void echo(void *userdata, HttpExchange *x, const HttpRequest *request) {
        http_respond(x, 200, "application/json", str_from(same_size));
}

static int serve(const Files *f, bool ours, const char *listen) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        WebhookOptions webhook = {.listen = listen,
                                  .service_namespace = "kube-system",
                                  .service_name = "x",
                                  .tls_cert = f->cert,
                                  .tls_key = f->key};
        HttpServerOptions plain = {
                .listen = listen, .max_body = 7 << 20, .tls_cert = f->pair.cert, .tls_key = f->pair.key};
        HttpServer *server;
        Webhook *w;
        int r;

        if (sd_event_new(&event) < 0)
                return 1;
        webhook.event = event;
        r = ours ? webhook_new(&webhook, &w, NULL)
                 : http_server_new(event, &plain, echo, NULL, &server, NULL);
        return r < 0 ? 1 : sd_event_loop(event);
}

static pid_t start(const Files *f, bool ours, uint16_t port) {
        pid_t pid = fork();

        if (pid == 0) {
                char listen[32];

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
                _exit(serve(f, ours, listen));
        }
        return pid;
}

/* ---- the API server's side ---- */

typedef struct Peer {
        int fd;
        gnutls_session_t session;
        gnutls_certificate_credentials_t credentials;
} Peer;

static void peer_dial(Peer *p, const Files *f, uint16_t port) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
        gnutls_datum_t ca = {(unsigned char *) f->ca.cert, (unsigned) strlen(f->ca.cert)};
        usec_t end = clock_monotonic_usec() + 20 * USEC_PER_SEC;
        int one = 1;

        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        for (;;) {
                p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (connect(p->fd, (struct sockaddr *) &to, sizeof to) == 0)
                        break;
                (void) close(p->fd);
                if (clock_monotonic_usec() > end)
                        load_fail("the webhook does not listen on port %u", port);
                (void) usleep(10000);
        }
        /* As Go does; slower without. */
        (void) setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (gnutls_init(&p->session, GNUTLS_CLIENT) < 0 ||
            gnutls_certificate_allocate_credentials(&p->credentials) < 0 ||
            gnutls_certificate_set_x509_trust_mem(p->credentials, &ca, GNUTLS_X509_FMT_PEM) < 1 ||
            gnutls_set_default_priority(p->session) < 0 ||
            gnutls_credentials_set(p->session, GNUTLS_CRD_CERTIFICATE, p->credentials) < 0)
                load_fail("no TLS");
        gnutls_session_set_verify_cert(p->session, names[0], 0);
        gnutls_transport_set_int(p->session, p->fd);
        if (gnutls_handshake(p->session) < 0)
                load_fail("no handshake");
}

static void peer_hang_up(Peer *p) {
        gnutls_deinit(p->session);
        gnutls_certificate_free_credentials(p->credentials);
        (void) close(p->fd);
}

static void peer_send(Peer *p, const Buf *request) {
        for (size_t at = 0; at < request->len;) {
                ssize_t n = gnutls_record_send(p->session, request->data + at, request->len - at);

                if (n < 0)
                        load_fail("cannot send: %s", gnutls_strerror((int) n));
                at += (size_t) n;
        }
}

/* Whether head and body of one answer are there. */
static bool is_whole(const char *got, size_t n) {
        const char *length = strstr(got, "Content-Length: "), *body = strstr(got, "\r\n\r\n");

        return length && body && n >= (size_t) (body + 4 - got) + strtoul(length + 16, NULL, 10);
}

static void peer_receive(Peer *p) {
        char got[4096] = "";
        size_t n = 0;

        while (!is_whole(got, n)) {
                ssize_t r = gnutls_record_recv(p->session, got + n, sizeof got - 1 - n);

                if (r <= 0)
                        load_fail("no answer");
                n += (size_t) r;
                got[n] = '\0';
        }
        if (!strstr(got, "200 OK") || !strstr(got, "\"allowed\":true"))
                load_fail("not the answer that was expected: %s", got);
}

/* ---- the measurement ---- */

static void pod_json(Buf *out) {
        size_t begin = out->len;

        buf_append_str(out,
                       STR("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a-5c8f-x7k2p\","
                           "\"namespace\":\"default\",\"annotations\":{\"notes\":\""));
        while (out->len - begin < POD_BYTES - 512)
                buf_append_str(out, STR("a text as annotations have them, "));
        buf_append_str(out,
                       STR("\"}},\"spec\":{\"schedulerName\":\"default-scheduler\",\"containers\":[{\"name\":"
                           "\"main\",\"image\":\"registry.example.com/train:1\",\"resources\":{\"limits\":{"
                           "\"aliyun.com/gpu-mem\":\"8\",\"cpu\":\"4\"},\"requests\":{\"aliyun.com/gpu-mem\":"
                           "\"8\",\"cpu\":\"4\"}},\"terminationMessagePath\":\"/dev/termination-log\"}],"
                           "\"restartPolicy\":\"Always\"}}"));
}

static void request_text(const char *task, Buf *out) {
        _cleanup_buf_ Buf body = BUF_NULL;

        buf_append_str(
                &body,
                STR("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
                    "\"uid\":\"705ab4f5-6393-11e8-b7cc-42010a800002\",\"kind\":{\"group\":\"\",\"version\":"
                    "\"v1\",\"kind\":\"Pod\"},\"operation\":\"CREATE\",\"userInfo\":{\"username\":\"a\"},"
                    "\"object\":"));
        pod_json(&body);
        buf_append_str(&body, STR(",\"oldObject\":null,\"dryRun\":false}}"));
        buf_appendf(out,
                    "POST /gpushare-scheduler/webhook/%s?timeout=10s HTTP/1.1\r\nHost: "
                    "localhost\r\nContent-Type: "
                    "application/json\r\nContent-Length: %zu\r\n\r\n" STR_FMT,
                    task, body.len, STR_ARG(buf_str(&body)));
}

typedef struct Side {
        const char *name;
        uint16_t port;
        pid_t pid;
        Peer peers[CONNECTIONS];
        LoadSamples latency;
        uint64_t busy_nsec, cpu_usec;
} Side;

/* User and system time of a process, from /proc/PID/stat, in ticks of a hundredth of a second. */
static uint64_t cpu_usec(pid_t pid) {
        char path[64], text[1024] = "", *at;
        unsigned long long user = 0, system_ = 0;
        FILE *f;

        (void) snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
        f = fopen(path, "re");
        if (!f || !fgets(text, sizeof text, f) || !(at = strrchr(text, ')')) ||
            sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system_) != 2)
                load_fail("cannot read %s", path);
        (void) fclose(f);
        return (user + system_) * (1000000 / (uint64_t) sysconf(_SC_CLK_TCK));
}

static void one_at_a_time(Side *s, const Buf *requests, unsigned rounds) {
        for (unsigned i = 0; i < rounds; i++) {
                uint64_t since = clock_nsec(CLOCK_MONOTONIC);

                peer_send(&s->peers[0], &requests[i % 2]);
                peer_receive(&s->peers[0]);
                load_sample(&s->latency, clock_nsec(CLOCK_MONOTONIC) - since);
        }
}

static void all_at_once(Side *s, const Buf *requests, unsigned rounds) {
        uint64_t cpu = cpu_usec(s->pid), since = clock_nsec(CLOCK_MONOTONIC);

        for (unsigned i = 0; i < rounds; i += CONNECTIONS) {
                for (unsigned k = 0; k < CONNECTIONS; k++)
                        peer_send(&s->peers[k], &requests[k % 2]);
                for (unsigned k = 0; k < CONNECTIONS; k++)
                        peer_receive(&s->peers[k]);
        }
        s->busy_nsec += clock_nsec(CLOCK_MONOTONIC) - since;
        s->cpu_usec += cpu_usec(s->pid) - cpu;
}

int main(int argc, char **argv) {
        Side sides[] = {{.name = "webhook"}, {.name = "echo"}};
        _cleanup_buf_ Buf mutate = BUF_NULL, validate = BUF_NULL;
        uint64_t rounds = 20000;
        Buf requests[2];
        Files files;

        if (argc > 1)
                (void) str_to_u64(str_from(argv[1]), &rounds);
        (void) signal(SIGPIPE, SIG_IGN);
        files_begin(&files);
        request_text("mutate", &mutate);
        request_text("validate", &validate);
        requests[0] = mutate;
        requests[1] = validate;
        for (size_t i = 0; i < ELEMENTSOF(sides); i++) {
                sides[i].port = load_free_port();
                sides[i].pid = start(&files, i == 0, sides[i].port);
                for (size_t k = 0; k < CONNECTIONS; k++)
                        peer_dial(&sides[i].peers[k], &files, sides[i].port);
        }
        for (unsigned turn = 0; turn < 10; turn++)
                for (size_t i = 0; i < ELEMENTSOF(sides); i++) {
                        one_at_a_time(&sides[i], requests, (unsigned) rounds / 10);
                        all_at_once(&sides[i], requests, (unsigned) rounds / 10);
                }
        for (size_t i = 0; i < ELEMENTSOF(sides); i++) {
                Side *s = &sides[i];

                printf("%-8s one at a time: p50 %.0f us, p99 %.0f us; %d at once: %.0f /s, %.0f /s of the "
                       "server's "
                       "own processor time\n",
                       s->name, load_quantile_usec(&s->latency, 0.5), load_quantile_usec(&s->latency, 0.99),
                       CONNECTIONS, (double) rounds * 1e9 / (double) s->busy_nsec,
                       (double) rounds * 1e6 / (double) (s->cpu_usec > 0 ? s->cpu_usec : 1));
                for (size_t k = 0; k < CONNECTIONS; k++)
                        peer_hang_up(&s->peers[k]);
                load_samples_done(&s->latency);
                load_end(s->pid);
        }
        files_end(&files);
        return 0;
}
