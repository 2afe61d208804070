/* SPDX-License-Identifier: Apache-2.0 */

/* filter + prioritize as kube-scheduler calls them, over one keep-alive connection: every node by
 * name, one pod, 100,000 pods known. Prioritize gets the nodes that filter answered. The baseline
 * takes turns with it in the same run: the same two requests against a server that echoes the names
 * without looking at them. It is the cost of the protocol itself. Then the same with viewers of the
 * page, by turns with none.
 *
 * bench-extender ALIQUOT [NODES PODS ROUNDS] */

#include <signal.h>
#include <sys/prctl.h>
#include <systemd/sd-event.h>

#include "cluster.h"
#include "load.h"
#include "net/http/http_server.h"

/* ---- the baseline ---- */

static void echo(void *userdata, HttpExchange *x, const HttpRequest *request) {
        const char *names = request->body.len > 0 ? strstr(request->body.data, "\"NodeNames\":[") : NULL;
        _cleanup_buf_ Buf out = BUF_NULL;

        if (!names) {
                http_respond(x, 200, "text/plain", STR("ok"));
                return;
        }
        if (strstr(request->path, "filter")) {
                buf_append_char(&out, '{');
                buf_append_str(&out, str_from(names));
        } else {
                buf_append_char(&out, '[');
                for (const char *p = strchr(names, '[') + 1; *p == '"'; p += *p == ',') {
                        const char *end = strchr(p + 1, '"') + 1;
                        buf_append_str(&out, out.len > 1 ? STR(",{\"Host\":") : STR("{\"Host\":"));
                        buf_append(&out, p, (size_t) (end - p));
                        buf_append_str(&out, STR(",\"Score\":0}"));
                        p = end;
                }
                buf_append_char(&out, ']');
        }
        http_respond(x, 200, "application/json", buf_str(&out));
}

static pid_t echo_start(uint16_t port) {
        pid_t pid = fork();

        if (pid == 0) {
                _cleanup_(sd_event_unrefp) sd_event *event = NULL;
                HttpServer *server;
                char listen[32];

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
                if (sd_event_new(&event) < 0 ||
                    http_server_new(event, &(HttpServerOptions){.listen = listen, .max_body = 64 << 20}, echo,
                                    NULL, &server, NULL) < 0)
                        _exit(1);
                _exit(sd_event_loop(event));
        }
        return pid;
}

/* ---- the measurement ---- */

static unsigned common_factor(unsigned a, unsigned b) {
        while (b != 0) {
                unsigned rest = a % b;
                a = b;
                b = rest;
        }
        return a;
}

/* kube-scheduler sends candidates in no order, and another one each time: a stride that shares no
 * factor with their number. */
static void args_json(Buf *out, unsigned nodes, size_t pod_bytes, unsigned turn) {
        unsigned at = turn % nodes, stride = 1 + turn * 7919 % nodes;

        while (common_factor(stride, nodes) != 1)
                stride++;
        buf_clear(out);
        buf_append_str(out, STR("{\"Pod\":"));
        bench_pod_json(out, 999999, -1, 0, pod_bytes);
        buf_append_str(out, STR(",\"Nodes\":null,\"NodeNames\":["));
        for (unsigned i = 0; i < nodes; i++, at = (at + stride) % nodes)
                buf_appendf(out, "%s\"node-%05u\"", i > 0 ? "," : "", at);
        buf_append_str(out, STR("]}"));
}

/* The same arguments with the nodes that filter answered. */
static void narrow(Buf *out, Str args, const Buf *answer) {
        const char *pod_end = strstr(args.data, ",\"Nodes\":null"),
                   *names = strstr(answer->data, "\"NodeNames\":["), *end = names ? strchr(names, ']') : NULL;

        if (!pod_end || !end)
                load_fail("filter answers no names: %.200s", answer->data);
        buf_append(out, args.data, (size_t) (pod_end - args.data));
        buf_append_str(out, STR(",\"Nodes\":null,"));
        buf_append(out, names, (size_t) (end + 1 - names));
        buf_append_char(out, '}');
}

typedef struct Figures {
        LoadSamples filter, prioritize, both;
        LoadSamples filter_cpu, prioritize_cpu; /* processor time of the server */
} Figures;

static void figures_done(Figures *f) {
        load_samples_done(&f->filter);
        load_samples_done(&f->prioritize);
        load_samples_done(&f->both);
        load_samples_done(&f->filter_cpu);
        load_samples_done(&f->prioritize_cpu);
}

/* Nanoseconds that the main thread of the process has run; other programs do not count in it. */
static uint64_t cpu_of(pid_t pid) {
        char path[64];
        unsigned long long ran = 0;
        FILE *file;

        (void) snprintf(path, sizeof path, "/proc/%d/schedstat", (int) pid);
        file = fopen(path, "re");
        if (!file || fscanf(file, "%llu", &ran) != 1)
                load_fail("%s cannot be read", path);
        (void) fclose(file);
        return ran;
}

static void one_round(LoadConn *c, pid_t server, Str args, Figures *f, const char *expect) {
        _cleanup_buf_ Buf answer = BUF_NULL, rest = BUF_NULL;
        uint64_t c0 = cpu_of(server), t0 = clock_nsec(CLOCK_MONOTONIC), t1, t2, c1;

        if (load_call(c, "POST", "/gpushare-scheduler/filter", "application/json", args, &answer) != 200)
                load_fail("filter: %s", answer.data);
        t1 = clock_nsec(CLOCK_MONOTONIC);
        if (!strstr(answer.data, expect))
                load_fail("filter does not offer %s: %.200s", expect, answer.data);
        narrow(&rest, args, &answer);
        c1 = cpu_of(server);
        t2 = clock_nsec(CLOCK_MONOTONIC);
        if (load_call(c, "POST", "/gpushare-scheduler/prioritize", "application/json", buf_str(&rest),
                      &answer) != 200)
                load_fail("prioritize: %s", answer.data);
        t2 = clock_nsec(CLOCK_MONOTONIC) - t2;
        load_sample(&f->filter, t1 - t0);
        load_sample(&f->prioritize, t2);
        load_sample(&f->both, t1 - t0 + t2);
        load_sample(&f->filter_cpu, c1 - c0);
        load_sample(&f->prioritize_cpu, cpu_of(server) - c1);
}

static void print_row(const char *what, LoadSamples *ours, LoadSamples *base, const char *of_base) {
        double p50 = load_quantile_usec(ours, 0.5), p99 = load_quantile_usec(ours, 0.99);
        double b50 = load_quantile_usec(base, 0.5), b99 = load_quantile_usec(base, 0.99);

        printf("%-22s %9.0f us %9.0f us   %s %7.0f us %7.0f us   ratio %5.2f %5.2f\n", what, p50, p99,
               of_base, b50, b99, p50 / b50, p99 / b99);
}

/* ---- beside the page ---- */

enum {
        VIEWERS = 16, /* the most that are served */
        TURNS = 6,    /* with viewers and without, by turns */
};

/* A viewer that reads nothing is dropped after 15 seconds. */
#define TURN_NSEC   UINT64_C(5000000000)
#define CHANGE_NSEC UINT64_C(100000000)

typedef struct Cluster {
        uint16_t port, page, store; /* of the scheduler, its page, and the API server */
        pid_t scheduler;
        unsigned nodes;
} Cluster;

/* Viewers that read nothing. */
static void viewers_come(LoadConn viewers[VIEWERS], uint16_t page) {
        for (unsigned i = 0; i < VIEWERS; i++) {
                viewers[i] = load_dial(page);
                if (dprintf(viewers[i].fd, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n") < 0)
                        load_fail("the page does not take a request");
        }
}

/* A pod comes to the first node, or the one that came before goes: the page shows it. */
static void change(LoadConn *store, unsigned turn) {
        _cleanup_buf_ Buf pod = BUF_NULL, answer = BUF_NULL;
        unsigned status;

        if (turn % 2 == 0) {
                bench_pod_json(&pod, 900000, 0, BENCH_CARDS - 1, 4096);
                status = load_call(store, "POST", "/api/v1/namespaces/default/pods", "application/json",
                                   buf_str(&pod), &answer);
        } else {
                status = load_call(store, "DELETE",
                                   "/api/v1/namespaces/default/pods/app-900000?gracePeriodSeconds=0",
                                   "application/json", STR("{}"), &answer);
        }
        if (status / 100 != 2)
                load_fail("a change is answered by %u: %s", status, answer.data);
}

static unsigned rounds_for(uint64_t nsec, const Cluster *cluster, LoadConn *c, Figures *f) {
        uint64_t end = clock_nsec(CLOCK_MONOTONIC) + nsec, next = 0, now;
        LoadConn store = load_dial(cluster->store);
        _cleanup_buf_ Buf args = BUF_NULL;
        unsigned n = 0, changes = 0;

        while ((now = clock_nsec(CLOCK_MONOTONIC)) < end) {
                if (now >= next) {
                        change(&store, changes++);
                        next = now + CHANGE_NSEC;
                }
                args_json(&args, cluster->nodes, 4096, n++);
                one_round(c, cluster->scheduler, buf_str(&args), f, "\"node-00001\"");
        }
        if (changes % 2 == 1)
                change(&store, changes);
        load_hang_up(&store);
        return n;
}

static void beside_the_page(const Cluster *cluster, LoadConn *c) {
        Figures with = {0}, without = {0};
        LoadConn viewers[VIEWERS];
        unsigned n = 0;

        for (unsigned turn = 0; turn < TURNS; turn++) {
                if (turn % 2 == 1)
                        viewers_come(viewers, cluster->page);
                n += rounds_for(TURN_NSEC, cluster, c, turn % 2 == 1 ? &with : &without);
                for (unsigned i = 0; turn % 2 == 1 && i < VIEWERS; i++)
                        load_hang_up(&viewers[i]);
        }
        printf("with %d viewers that read nothing, %u rounds (p50, p99)\n", VIEWERS, n);
        print_row("filter", &with.filter, &without.filter, "no viewer");
        figures_done(&with);
        figures_done(&without);
}

int main(int argc, char **argv) {
        unsigned nodes = argc > 2 ? (unsigned) strtoul(argv[2], NULL, 10) : 5000;
        unsigned pods = argc > 3 ? (unsigned) strtoul(argv[3], NULL, 10) : 100000;
        unsigned rounds = argc > 4 ? (unsigned) strtoul(argv[4], NULL, 10) : 2000;
        _cleanup_buf_ Buf args = BUF_NULL;
        Figures ours = {0}, base = {0};
        uint16_t store_port, port, echo_port = load_free_port(), page = load_free_port();
        pid_t store, scheduler, echoer;
        LoadConn a, b;

        if (argc < 2)
                load_fail("usage: bench-extender ALIQUOT [NODES PODS ROUNDS]");
        store = bench_store_start(nodes, pods, 4096, &store_port);
        scheduler = bench_scheduler_start(argv[1], store_port, page, &port);
        echoer = echo_start(echo_port);
        load_wait_ready(echo_port, "/");

        a = load_dial(port);
        b = load_dial(echo_port);
        for (unsigned i = 0; i < rounds + 50; i++) {
                if (i == 50) { /* warm up */
                        figures_done(&ours);
                        figures_done(&base);
                }
                args_json(&args, nodes, 4096, i);
                one_round(&a, scheduler, buf_str(&args), &ours, "\"node-00000\"");
                one_round(&b, echoer, buf_str(&args), &base, "\"node-00000\"");
        }
        printf("extender, %u nodes x %d cards, %u pods known, %u rounds (p50, p99)\n", nodes, BENCH_CARDS,
               pods, rounds);
        print_row("filter", &ours.filter, &base.filter, "echo");
        print_row("prioritize", &ours.prioritize, &base.prioritize, "echo");
        print_row("filter + prioritize", &ours.both, &base.both, "echo");
        print_row("filter, processor", &ours.filter_cpu, &base.filter_cpu, "echo");
        print_row("prioritize, processor", &ours.prioritize_cpu, &base.prioritize_cpu, "echo");
        printf("resident               %9.1f MiB              echo %7.1f MiB\n",
               (double) load_resident_kib(scheduler) / 1024, (double) load_resident_kib(echoer) / 1024);
        beside_the_page(&(Cluster){port, page, store_port, scheduler, nodes}, &a);
        load_hang_up(&a);
        load_hang_up(&b);
        load_end(scheduler);
        load_end(echoer);
        load_end(store);
        return 0;
}
