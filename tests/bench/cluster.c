/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <systemd/sd-event.h>

#include "load.h"
#include "local/apiserver/store.h"

void bench_node_json(Buf *out, unsigned node) {
        buf_appendf(
                out,
                "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-%05u\",\"labels\":{"
                "\"ack.node.gpu.schedule\":\"cgpu\",\"kubernetes.io/hostname\":\"node-%05u\"}},"
                "\"status\":{\"allocatable\":{\"aliyun.com/gpu-mem\":\"%d\",\"aliyun.com/gpu-count\":\"%d\"},"
                "\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.%u.%u\"}]}}",
                node, node, BENCH_CARDS * BENCH_CARD_UNITS, BENCH_CARDS, node / 250, node % 250);
}

static void append_annotations(Buf *out, unsigned card) {
        buf_appendf(out,
                    ",\"annotations\":{\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"%u\\\":%"
                    "d}}\","
                    "\"scheduler.framework.gpushare.assigned\":\"true\","
                    "\"scheduler.framework.gpushare.assume-time\":\"1763700000000000000\"}",
                    card, BENCH_POD_UNITS);
}

void bench_pod_json(Buf *out, unsigned pod, int node, unsigned card, size_t bytes) {
        size_t begin = out->len;

        buf_appendf(out,
                    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"app-%06u\","
                    "\"namespace\":\"default\",\"uid\":\"00000000-0000-4000-8000-%012u\"",
                    pod, pod);
        if (node >= 0)
                append_annotations(out, card);
        buf_appendf(out,
                    "},\"spec\":{\"schedulerName\":\"ack-co-scheduler\",\"containers\":[{\"name\":\"main\","
                    "\"image\":\"app\","
                    "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"%d\"}},\"env\":[",
                    BENCH_POD_UNITS);
        for (unsigned i = 0; out->len - begin + 120 < bytes; i++)
                buf_appendf(out,
                            "%s{\"name\":\"SETTING_%u\",\"value\":\"some text that an application is told\"}",
                            i > 0 ? "," : "", i);
        buf_appendf(out, "]}]%s", "");
        if (node >= 0)
                buf_appendf(out, ",\"nodeName\":\"node-%05d\"},\"status\":{\"phase\":\"Running\"}}", node);
        else
                buf_appendf(out, "}}");
}

static int store_run(int ready, unsigned nodes, unsigned pods, size_t pod_bytes) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(store_freep) Store *store = NULL;
        _cleanup_buf_ Buf json = BUF_NULL;
        Fault fault = FAULT_NULL;

        if (sd_event_new(&event) < 0 || store_new(event, &(StoreOptions){0}, &store, &fault) < 0)
                load_fail("store: %s", fault.text);
        for (unsigned i = 0; i < nodes; i++) {
                buf_clear(&json);
                bench_node_json(&json, i);
                if (store_apply(store, buf_str(&json), &fault) != 0)
                        load_fail("store: %s", fault.text);
        }
        for (unsigned i = 0; nodes > 0 && i < pods; i++) {
                buf_clear(&json);
                bench_pod_json(&json, i, (int) (i % nodes), i / nodes % BENCH_CARDS, pod_bytes);
                if (store_apply(store, buf_str(&json), &fault) != 0)
                        load_fail("store: %s", fault.text);
        }
        if (dprintf(ready, "%s\n", store_url(store)) < 0)
                return 1;
        return sd_event_loop(event);
}

pid_t bench_store_start(unsigned nodes, unsigned pods, size_t pod_bytes, uint16_t *ret_port) {
        int pipe_fds[2];
        char url[64] = "";
        const char *colon;
        ssize_t n;
        pid_t pid;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0 || (pid = fork()) < 0)
                load_fail("cannot start the store");
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(store_run(pipe_fds[1], nodes, pods, pod_bytes) == 0 ? 0 : 1);
        }
        (void) close(pipe_fds[1]);
        n = read(pipe_fds[0], url, sizeof url - 1);
        (void) close(pipe_fds[0]);
        colon = n > 0 ? strrchr(url, ':') : NULL;
        if (!colon)
                load_fail("the store did not start");
        *ret_port = (uint16_t) strtoul(colon + 1, NULL, 10);
        return pid;
}

pid_t bench_scheduler_start(const char *aliquot, uint16_t store_port, uint16_t page_port,
                            uint16_t *ret_port) {
        char kubeconfig[] = "/tmp/aliquot-bench-XXXXXX", listen[64], page[64];
        uint16_t port = load_free_port();
        int fd = mkstemp(kubeconfig);
        pid_t pid;

        if (fd < 0 ||
            dprintf(fd,
                    "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"c\","
                    "\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"http://127.0.0.1:%u\"}}],"
                    "\"users\":[{\"name\":\"u\",\"user\":{}}],"
                    "\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}]}\n",
                    store_port) < 0)
                load_fail("cannot write a kubeconfig");
        (void) close(fd);
        (void) snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
        (void) snprintf(page, sizeof page, "127.0.0.1:%u", page_port);
        pid = load_spawn((const char *const[]){aliquot, "scheduler", "--kubeconfig", kubeconfig, "--listen",
                                               listen, "--no-leader-election",
                                               page_port != 0 ? "--page" : NULL, page, NULL});
        load_wait_ready(port, "/gpushare-scheduler/readyz");
        (void) unlink(kubeconfig);
        *ret_port = port;
        return pid;
}
