/* SPDX-License-Identifier: Apache-2.0 */

/* The Kubernetes client against a server that does nothing, in a process of its own: calls per
 * second on kept connections, and the memory of a client. The baseline, in the same run, is a
 * blocking socket that writes the same requests.
 *
 *     bench-kube [CALLS] */

#include <signal.h>
#include <sys/prctl.h>

#include "kube/api.h"
#include "load.h"
#include "net/http/http_server.h"

static const char pod_answer[] = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}";

static void handle(void *userdata, HttpExchange *x, const HttpRequest *r) {
        http_respond(x, r->body.len > 0 ? 201 : 200, "application/json", str_from(pod_answer));
}

static pid_t serve(uint16_t *ret_port) {
        HttpServerOptions options = {.listen = "127.0.0.1:0", .max_body = 65536};
        HttpServer *server;
        sd_event *event;
        int pipes[2];
        pid_t pid;

        if (pipe(pipes) < 0 || (pid = fork()) < 0)
                load_fail("cannot start a server");
        if (pid > 0) {
                if (read(pipes[0], ret_port, sizeof *ret_port) != sizeof *ret_port)
                        load_fail("the server did not start");
                return pid;
        }
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* if this fails, the server may outlive the benchmark */
        if (sd_event_new(&event) < 0 || http_server_new(event, &options, handle, NULL, &server, NULL) < 0)
                _exit(3);
        *ret_port = http_server_port(server);
        if (write(pipes[1], ret_port, sizeof *ret_port) != sizeof *ret_port)
                _exit(3);
        _exit(sd_event_loop(event) < 0);
}

typedef struct Run {
        KubeClient *client;
        bool post;
        unsigned left, flying;
} Run;

static void next(Run *run);

static void on_done(void *userdata, const KubeReply *reply) {
        Run *run = userdata;

        if (reply->outcome != KUBE_DONE || reply->status > 201)
                load_fail("%s", reply->fault.text);
        run->flying--;
        next(run);
}

static void next(Run *run) {
        KubeBinding b = {
                .namespace_ = STR("default"),
                .name = STR("a"),
                .uid = STR("00000000-0000-4000-8000-000000000000"),
                .node = STR("n1"),
                .annotations =
                        STR("{\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"1\\\":1}}\"}")};
        int r;

        if (run->left == 0)
                return;
        run->left--;
        run->flying++;
        r = run->post ? kube_bind(run->client, &b, on_done, run, NULL)
                      : kube_get_pod(run->client, b.namespace_, b.name, on_done, run, NULL);
        if (r < 0)
                load_fail("out of memory");
}

static double rate(KubeClient *client, bool post, unsigned at_once, unsigned calls) {
        Run run = {.client = client, .post = post, .left = calls};
        uint64_t t0 = clock_nsec(CLOCK_MONOTONIC);

        for (unsigned i = 0; i < at_once; i++)
                next(&run);
        while (run.flying > 0)
                if (sd_event_run(kube_client_event(client), UINT64_MAX) < 0)
                        load_fail("the loop broke");
        return calls * 1e9 / (double) (clock_nsec(CLOCK_MONOTONIC) - t0);
}

static double rate_bare(uint16_t port, unsigned calls) {
        LoadConn c = load_dial(port);
        _cleanup_buf_ Buf answer = BUF_NULL;
        uint64_t t0 = clock_nsec(CLOCK_MONOTONIC);

        for (unsigned i = 0; i < calls; i++)
                if (load_call(&c, "GET", "/api/v1/namespaces/default/pods/a", "application/json", STR(""),
                              &answer) != 200)
                        load_fail("%s", answer.data);
        load_hang_up(&c);
        return calls * 1e9 / (double) (clock_nsec(CLOCK_MONOTONIC) - t0);
}

int main(int argc, char **argv) {
        enum { CLIENTS = 20 };
        unsigned calls = argc > 1 ? (unsigned) strtoul(argv[1], NULL, 10) : 20000;
        KubeClient *clients[CLIENTS];
        KubeConfig *config;
        sd_event *event;
        uint16_t port;
        pid_t server = serve(&port);
        uint64_t before, one, many;
        char url[64];

        (void) snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
        before = load_resident_kib(getpid());
        if (sd_event_new(&event) < 0 || kube_config_for_server(url, &config) < 0)
                load_fail("out of memory");
        for (int i = 0; i < CLIENTS; i++) {
                if (kube_client_new(event, config, &clients[i]) < 0)
                        load_fail("out of memory");
                (void) rate(clients[i], false, 1, 10);
                if (i == 0)
                        one = load_resident_kib(getpid());
        }
        many = load_resident_kib(getpid());
        printf("GET, one at a time      %8.0f /s\n", rate(clients[0], false, 1, calls));
        printf("GET, 16 at once         %8.0f /s\n", rate(clients[0], false, 16, calls));
        printf("Binding, one at a time  %8.0f /s\n", rate(clients[0], true, 1, calls));
        printf("Binding, 16 at once     %8.0f /s\n", rate(clients[0], true, 16, calls));
        printf("a blocking socket       %8.0f /s (GET, one at a time)\n", rate_bare(port, calls));
        printf("memory                  %8llu KiB the first client with curl and its libraries, %llu KiB "
               "each further one\n",
               (unsigned long long) (one - before), (unsigned long long) (many - one) / (CLIENTS - 1));
        for (int i = 0; i < CLIENTS; i++)
                clients[i] = kube_client_free(clients[i]);
        config = kube_config_free(config);
        sd_event_unref(event);
        load_end(server);
        return 0;
}
