/* SPDX-License-Identifier: Apache-2.0 */

/* Pods from creation to "assigned", through `aliquot scheduler` and the local API server: create (4
 * KiB), filter, prioritize, bind, and the node's patch. These are three watch events for each pod.
 * The baseline, in the same run on an API server of its own, does the same without the scheduler:
 * create, POST the Binding directly, patch. The time of one bind is measured apart, with one pod at
 * a time: with the scheduler against the bare Binding.
 *
 * bench-bind ALIQUOT [PODS NODES WORKERS] */

#include <pthread.h>
#include <stdatomic.h>

#include "cluster.h"
#include "load.h"

typedef struct Run {
        uint16_t store, scheduler; /* scheduler 0: the baseline */
        unsigned pods, nodes;
        atomic_uint next, retries;
        Buf names; /* "node-00000",... */
} Run;

typedef struct Worker {
        Run *run;
        pthread_t thread;
        LoadSamples bind;
} Worker;

static void expect(unsigned status, unsigned wanted, const char *what, const Buf *answer) {
        if (status != wanted)
                load_fail("%s: HTTP %u %.300s", what, status, answer->len > 0 ? answer->data : "");
}

/* The node that kube-scheduler would take: the one with the highest score. */
static void best_host(const Buf *answer, char host[static 64]) {
        long best = -1;

        for (const char *p = answer->data; (p = strstr(p, "\"Host\":\"")); p++) {
                const char *score = strstr(p, "\"Score\":");
                long value = score ? strtol(score + 8, NULL, 10) : -1;
                if (value > best) {
                        best = value;
                        (void) snprintf(host, 64, "%.*s", (int) strcspn(p + 8, "\""), p + 8);
                }
        }
        if (best < 0)
                load_fail("prioritize: %.300s", answer->data);
}

/* The server gave the pod its UID. */
static void uid_of(Str pod, char uid[static 64]) {
        const char *at = strstr(pod.data, "\"uid\":\"");

        if (!at)
                load_fail("a pod without uid: %.300s", pod.data);
        (void) snprintf(uid, 64, "%.*s", (int) strcspn(at + 7, "\""), at + 7);
}

/* One scheduling cycle. False when the room was taken between filter and bind. kube-scheduler has
 * the same case, because it binds one pod while it filters for the next. */
static bool bind_by_us(Run *run, LoadConn *c, unsigned i, Str pod, LoadSamples *samples) {
        _cleanup_buf_ Buf args = BUF_NULL, answer = BUF_NULL;
        char host[64], uid[64], body[256];
        uint64_t t0;

        buf_appendf(&args, "{\"Pod\":" STR_FMT ",\"Nodes\":null,\"NodeNames\":[" STR_FMT "]}", STR_ARG(pod),
                    STR_ARG(buf_str(&run->names)));
        expect(load_call(c, "POST", "/gpushare-scheduler/filter", "application/json", buf_str(&args),
                         &answer),
               200, "filter", &answer);
        expect(load_call(c, "POST", "/gpushare-scheduler/prioritize", "application/json", buf_str(&args),
                         &answer),
               200, "prioritize", &answer);
        best_host(&answer, host);
        uid_of(pod, uid);
        (void) snprintf(
                body, sizeof body,
                "{\"PodName\":\"app-%06u\",\"PodNamespace\":\"default\",\"PodUID\":\"%s\",\"Node\":\"%s\"}",
                i, uid, host);
        t0 = clock_nsec(CLOCK_MONOTONIC);
        expect(load_call(c, "POST", "/gpushare-scheduler/bind", "application/json", str_from(body), &answer),
               200, "bind", &answer);
        if (strstr(answer.data, "no card has"))
                return false;
        if (strstr(answer.data, "\"Error\":\"") && !strstr(answer.data, "\"Error\":\"\""))
                load_fail("bind: %s", answer.data);
        load_sample(samples, clock_nsec(CLOCK_MONOTONIC) - t0);
        return true;
}

static void bind_bare(Run *run, LoadConn *c, unsigned i, Str pod, LoadSamples *samples) {
        _cleanup_buf_ Buf answer = BUF_NULL;
        char path[128], uid[64], body[1024];
        uint64_t t0;

        uid_of(pod, uid);
        (void) snprintf(path, sizeof path, "/api/v1/namespaces/default/pods/app-%06u/binding", i);
        (void) snprintf(
                body, sizeof body,
                "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"app-%06u\",\"uid\":"
                "\"%s\",\"annotations\":{\"scheduler.framework.gpushare."
                "allocation\":"
                "\"{\\\"0\\\":{\\\"%u\\\":%d}}\",\"scheduler.framework.gpushare.assigned\":\"false\"}},"
                "\"target\":{\"kind\":\"Node\",\"name\":\"node-%05u\"}}",
                i, uid, i % BENCH_CARDS, BENCH_POD_UNITS, i % run->nodes);
        t0 = clock_nsec(CLOCK_MONOTONIC);
        expect(load_call(c, "POST", path, "application/json", str_from(body), &answer), 201, "binding",
               &answer);
        load_sample(samples, clock_nsec(CLOCK_MONOTONIC) - t0);
}

static void *work(void *argument) {
        static const Str assigned =
                STR("{\"metadata\":{\"annotations\":{\"scheduler.framework.gpushare.assigned\":\"true\"}}}");
        Worker *w = argument;
        Run *run = w->run;
        LoadConn store = load_dial(run->store), scheduler = {.fd = -1};
        _cleanup_buf_ Buf pod = BUF_NULL, answer = BUF_NULL;
        unsigned i;

        if (run->scheduler)
                scheduler = load_dial(run->scheduler);
        while ((i = atomic_fetch_add(&run->next, 1)) < run->pods) {
                char path[128];

                buf_clear(&pod);
                bench_pod_json(&pod, i, -1, 0, 4096);
                expect(load_call(&store, "POST", "/api/v1/namespaces/default/pods", "application/json",
                                 buf_str(&pod), &answer),
                       201, "create", &answer);
                if (run->scheduler)
                        while (!bind_by_us(run, &scheduler, i, buf_str(&answer), &w->bind))
                                atomic_fetch_add(&run->retries, 1);
                else
                        bind_bare(run, &store, i, buf_str(&answer), &w->bind);
                (void) snprintf(path, sizeof path, "/api/v1/namespaces/default/pods/app-%06u", i);
                expect(load_call(&store, "PATCH", path, "application/merge-patch+json", assigned, &answer),
                       200, "patch", &answer);
        }
        load_hang_up(&store);
        if (run->scheduler)
                load_hang_up(&scheduler);
        return NULL;
}

/* pods/s, and the bind times into *bind. */
static double run_workers(Run *run, unsigned workers, LoadSamples *bind) {
        Worker w[64] = {0};
        uint64_t t0 = clock_nsec(CLOCK_MONOTONIC), elapsed;

        for (unsigned i = 0; i < workers; i++) {
                w[i].run = run;
                if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
                        load_fail("cannot start a thread");
        }
        for (unsigned i = 0; i < workers; i++) {
                (void) pthread_join(w[i].thread, NULL);
                for (size_t k = 0; k < w[i].bind.n; k++)
                        load_sample(bind, (uint64_t) w[i].bind.nsec_64[k] * 64);
                load_samples_done(&w[i].bind);
        }
        elapsed = clock_nsec(CLOCK_MONOTONIC) - t0;
        return run->pods * 1e9 / (double) elapsed;
}

static double measure(const char *aliquot, unsigned pods, unsigned nodes, unsigned workers, LoadSamples *bind,
                      unsigned *ret_retries) {
        Run run = {.pods = pods, .nodes = nodes};
        pid_t store = bench_store_start(nodes, 0, 4096, &run.store), scheduler = -1;
        double rate;

        if (aliquot)
                scheduler = bench_scheduler_start(aliquot, run.store, 0, &run.scheduler);
        for (unsigned i = 0; i < nodes; i++)
                buf_appendf(&run.names, "%s\"node-%05u\"", i > 0 ? "," : "", i);
        rate = run_workers(&run, workers, bind);
        *ret_retries = run.retries;
        if (scheduler > 0)
                load_end(scheduler);
        load_end(store);
        buf_done(&run.names);
        return rate;
}

int main(int argc, char **argv) {
        unsigned pods = argc > 2 ? (unsigned) strtoul(argv[2], NULL, 10) : 10000;
        unsigned nodes = argc > 3 ? (unsigned) strtoul(argv[3], NULL, 10) : 1000;
        unsigned workers = argc > 4 ? (unsigned) strtoul(argv[4], NULL, 10) : 16;
        LoadSamples many = {0}, many_bare = {0}, single = {0}, single_bare = {0};
        unsigned retries, ignored;
        double rate, bare;

        if (argc < 2 || workers < 1 || workers > 64)
                load_fail("usage: bench-bind ALIQUOT [PODS NODES WORKERS<=64]");
        bare = measure(NULL, pods, nodes, workers, &many_bare, &ignored);
        rate = measure(argv[1], pods, nodes, workers, &many, &retries);
        (void) measure(NULL, pods / 5, nodes, 1, &single_bare, &ignored);
        (void) measure(argv[1], pods / 5, nodes, 1, &single, &ignored);

        printf("bind, %u pods of 4 KiB on %u nodes, three watch events each\n", pods, nodes);
        printf("end to end, %2u at once  %8.0f pods/s         without us %8.0f pods/s    ratio %.2f   (%u "
               "cycles over again)\n",
               workers, rate, bare, rate / bare, retries);
        printf("one bind, one at a time %8.0f us p50 %8.0f us p99    bare %6.0f us %6.0f us    more by %.0f "
               "us p50, %.0f us p99\n",
               load_quantile_usec(&single, 0.5), load_quantile_usec(&single, 0.99),
               load_quantile_usec(&single_bare, 0.5), load_quantile_usec(&single_bare, 0.99),
               load_quantile_usec(&single, 0.5) - load_quantile_usec(&single_bare, 0.5),
               load_quantile_usec(&single, 0.99) - load_quantile_usec(&single_bare, 0.99));
        load_samples_done(&many), load_samples_done(&many_bare), load_samples_done(&single),
                load_samples_done(&single_bare);
        return 0;
}
