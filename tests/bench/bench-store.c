/* SPDX-License-Identifier: Apache-2.0 */

/* What the store itself costs, to interpret figures that are measured through it. Each verb is
 * measured on pods of 4 KiB, with one caller on keep-alive and a watcher that reads every event.
 * Beside it stand the bare HTTP round trip, and the same verbs without sockets. */

#include <inttypes.h>
#include <pthread.h>

#include "cluster.h"
#include "load.h"
#include "local/apiserver/rest.h"

enum { POD_BYTES = 4096 };

#define PODS "/api/v1/namespaces/default/pods"

typedef struct Watcher {
        LoadConn conn;
        pthread_t thread;
        size_t wanted;
} Watcher;

/* Counts lines until all events have come. */
static void *read_events(void *argument) {
        Watcher *w = argument;
        char bytes[65536];
        ssize_t n;

        while (w->wanted > 0 && (n = read(w->conn.fd, bytes, sizeof bytes)) > 0)
                for (const char *at = bytes; (at = memmem(at, (size_t) (bytes + n - at), "}\n", 2)); at++)
                        w->wanted -= w->wanted > 0;
        return NULL;
}

static void watch(Watcher *w, uint16_t port, size_t wanted) {
        static const char request[] =
                "GET /api/v1/pods?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: bench\r\n\r\n";

        *w = (Watcher){.conn = load_dial(port), .wanted = wanted};
        if (write(w->conn.fd, request, sizeof request - 1) < 0 ||
            pthread_create(&w->thread, NULL, read_events, w) != 0)
                load_fail("cannot watch");
}

/* One request of each verb, by number. */
static const struct {
        const char *name, *method, *path;
        const char *behind; /* what follows the pod's name; NULL: the path names no pod */
        const char *type, *body;
        unsigned status;
} verbs[] = {
        {"healthz", "GET", "/healthz", NULL, "text/plain", "", 200},
        {"create", "POST", PODS, NULL, "application/json", NULL, 201},
        {"bind", "POST", PODS, "/binding", "application/json",
         "{\"metadata\":{\"annotations\":{\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{"
         "\\\"1\\\":4}}\"}},"
         "\"target\":{\"kind\":\"Node\",\"name\":\"node-00001\"}}",
         201},
        {"patch", "PATCH", PODS, "", "application/merge-patch+json",
         "{\"metadata\":{\"annotations\":{\"scheduler.framework.gpushare.assigned\":\"true\"}}}", 200},
        {"status", "PATCH", PODS, "/status", "application/merge-patch+json",
         "{\"status\":{\"phase\":\"Running\"}}", 200},
        {"get", "GET", PODS, "", "text/plain", "", 200},
        {"list, 500 a page", "GET", "/api/v1/pods?limit=500", NULL, "text/plain", "", 200},
};

typedef unsigned (*Carry)(void *userdata, const char *method, const char *path, const char *type, Str body);

static unsigned over_http(void *userdata, const char *method, const char *path, const char *type, Str body) {
        return load_call(userdata, method, path, type, body, NULL);
}

static const char *one_query(void *userdata, const char *name) {
        return strcmp(name, "limit") == 0 ? userdata : NULL;
}

static unsigned without_sockets(void *userdata, const char *method, const char *path, const char *type,
                                Str body) {
        char only[256];
        StoreCall call = {
                .method = method, .path = only, .content_type = type, .body = body, .query = one_query};
        StoreReply reply = STORE_REPLY_NULL;

        (void) snprintf(only, sizeof only, "%s", path);
        only[strcspn(only, "?")] = '\0';
        call.userdata = strstr(path, "limit=") ? (void *) (uintptr_t) "500" : NULL;
        store_answer(userdata, &call, &reply);
        buf_done(&reply.body);
        return reply.status;
}

static void measure(unsigned n, Carry carry, void *userdata) {
        _cleanup_buf_ Buf pod = BUF_NULL;
        char path[128];

        for (size_t v = 0; v < ELEMENTSOF(verbs); v++) {
                unsigned times = strstr(verbs[v].path, "limit") ? n / 500 : n;
                LoadSamples samples = {0};
                uint64_t begin = clock_nsec(CLOCK_MONOTONIC), end;

                for (unsigned i = 0; i < times; i++) {
                        uint64_t t0;
                        unsigned status;

                        buf_clear(&pod);
                        if (!verbs[v].body)
                                bench_pod_json(&pod, i, -1, 0, POD_BYTES);
                        if (verbs[v].behind)
                                (void) snprintf(path, sizeof path, "%s/app-%06u%s", verbs[v].path, i,
                                                verbs[v].behind);
                        else
                                (void) snprintf(path, sizeof path, "%s", verbs[v].path);
                        t0 = clock_nsec(CLOCK_MONOTONIC);
                        status = carry(userdata, verbs[v].method, path, verbs[v].type,
                                       verbs[v].body ? str_from(verbs[v].body) : buf_str(&pod));
                        load_sample(&samples, clock_nsec(CLOCK_MONOTONIC) - t0);
                        if (status != verbs[v].status)
                                load_fail("%s: status %u", verbs[v].name, status);
                }
                end = clock_nsec(CLOCK_MONOTONIC);
                printf("  %-18s %9.0f /s   %7.0f us p50 %7.0f us p99\n", verbs[v].name,
                       times * 1e9 / (double) (end - begin), load_quantile_usec(&samples, 0.5),
                       load_quantile_usec(&samples, 0.99));
                load_samples_done(&samples);
        }
}

int main(int argc, char **argv) {
        unsigned pods = argc > 1 ? (unsigned) strtoul(argv[1], NULL, 10) : 10000;
        uint16_t port;
        pid_t store = bench_store_start(0, 0, POD_BYTES, &port);
        LoadConn conn = load_dial(port);
        uint64_t begin = clock_nsec(CLOCK_MONOTONIC);
        Watcher watcher;
        StoreApi api;

        watch(&watcher, port, (size_t) pods * 4);
        printf("store over HTTP, %u pods of 4 KiB, one caller, one watcher\n", pods);
        measure(pods, over_http, &conn);
        (void) pthread_join(watcher.thread, NULL);
        printf("  %-18s %9.0f /s over all of it\n", "watch events",
               pods * 4 * 1e9 / (double) (clock_nsec(CLOCK_MONOTONIC) - begin));
        printf("  %-18s %9" PRIu64 " MiB with 65536 changes remembered\n", "resident",
               load_resident_kib(store) / 1024);
        load_hang_up(&watcher.conn);
        load_hang_up(&conn);
        load_end(store);

        if (store_api_init(&api, 65536, 1) < 0)
                load_fail("out of memory");
        api.now = 1700000000;
        printf("the same without sockets\n");
        measure(pods, without_sockets, &api);
        store_api_done(&api);
        return 0;
}
