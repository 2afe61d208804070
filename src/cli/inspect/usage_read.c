/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/usage_read.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "cli/inspect/complain.h"
#include "wire/list_items.h"
#include "wire/pod.h"

/* The labels and the port of the node agents' DaemonSet
 * (deploy/helm/aliquot/templates/node.yaml). */
#define AGENT_PODS                                                                                           \
        "/api/v1/"                                                                                           \
        "pods?labelSelector=app.kubernetes.io%2Fname%3Daliquot%2Capp.kubernetes.io%2Fcomponent%3Dnode"
#define AGENT_PORT "9445"
#define METRIC     "DCGM_CUSTOM_PROCESS_MEM_USED{"

enum { LIST_MAX = 256 << 20, METRICS_MAX = 8 << 20, AT_ONCE = 8 };

typedef struct AgentPod {
        Str namespace_, name, node;
} AgentPod;

typedef struct Usage {
        const Cluster *cluster;
        Inspect *inspect;
        Arena arena;
        Buf list;
        AgentPod *pods;
        size_t n, capacity, n_silent;
} Usage;

static void usage_done(Usage *u) {
        arena_done(&u->arena);
        buf_done(&u->list);
        free(u->pods);
}

/* ---- the agents' pods ---- */

/* Whether the name can be in a path without escapes (RFC 1123). */
static bool is_name(Str s) {
        for (size_t i = 0; i < s.len; i++) {
                char c = s.data[i];

                if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || (c == '.' && i > 0)))
                        return false;
        }
        return s.len > 0;
}

static int add_pod(void *userdata, Str text) {
        Usage *u = userdata;
        AgentPod *moved;
        Pod pod;
        int r = pod_decode(text, &u->arena, &pod, NULL);

        if (r != 0)
                return r < 0 ? r : 0;
        if (!is_name(pod.meta.namespace_) || !is_name(pod.meta.name) || str_is_empty(pod.node_name) ||
            (u->cluster->node.len > 0 && !str_eq(u->cluster->node, pod.node_name)))
                return 0;
        if (u->n == u->capacity) {
                size_t capacity = u->capacity > 0 ? 2 * u->capacity : 64;

                moved = reallocarray(u->pods, capacity, sizeof *moved);
                if (!moved)
                        return -ENOMEM;
                u->pods = moved;
                u->capacity = capacity;
        }
        u->pods[u->n++] = (AgentPod){pod.meta.namespace_, pod.meta.name, pod.node_name};
        return 0;
}

static int find_agents(Usage *u) {
        Fault fault = FAULT_NULL;
        Kubectl k;
        int r, end;

        r = kubectl_get_raw(u->cluster->kubectl_flags, u->cluster->n_kubectl_flags, AGENT_PODS, &k, &fault);
        if (r < 0)
                return complain(EXIT_BROKEN, &fault, r);
        r = file_read_open(k.out, LIST_MAX, &u->list);
        end = kubectl_finish(&k, r < 0, &fault);
        if (r == 0 && end != 0)
                return complain(end < 0 ? EXIT_BROKEN : EXIT_NO, &fault, end);
        if (r == 0)
                r = list_items_each(buf_str(&u->list), add_pod, u, &fault);
        return r == 0 ? 0 : complain(r < 0 ? EXIT_BROKEN : EXIT_NO, &fault, r);
}

/* ---- the agents' answers ---- */

/* Finds the value of a label in `{a="x",b="y"} 7`. label: as `,b="`. Only values of
 * other labels have escapes. */
static bool find_label(Str line, Str label, Str *ret) {
        const char *at = memmem(line.data, line.len, label.data, label.len), *end;

        if (!at)
                return false;
        at += label.len;
        end = memchr(at, '"', (size_t) (line.data + line.len - at));
        if (!end)
                return false;
        *ret = (Str){at, (size_t) (end - at)};
        return true;
}

static void take_line(Usage *u, const AgentPod *pod, Str line) {
        size_t brace = line.len;
        uint64_t mib = 0;
        uint32_t card = 0;
        Str text = {0};

        if (!str_has_prefix(line, STR(METRIC)) || !find_label(line, STR(",gpu=\""), &text) ||
            !str_to_u32(text, &card))
                return;
        while (brace > 0 && line.data[brace - 1] != '}') /* the last one: values may have others */
                brace--;
        text = str_trim((Str){line.data + brace, line.len - brace});
        if (str_to_u64(text, &mib))
                inspect_add_used(u->inspect, pod->node, card, mib);
}

static int start_kubectl(const Usage *u, const AgentPod *pod, Kubectl *ret) {
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_appendf(&path, "/api/v1/namespaces/" STR_FMT "/pods/" STR_FMT ":" AGENT_PORT "/proxy/metrics",
                    STR_ARG(pod->namespace_), STR_ARG(pod->name));
        return path.broken ? -ENOMEM
                           : kubectl_try_raw(u->cluster->kubectl_flags, u->cluster->n_kubectl_flags,
                                             path.data, ret, NULL);
}

static void finish_kubectl(Usage *u, const AgentPod *pod, Kubectl *k) {
        _cleanup_buf_ Buf text = BUF_NULL;
        int r = file_read_open(k->out, METRICS_MAX, &text);
        Str rest;

        if (kubectl_finish(k, r < 0, NULL) != 0 || r < 0) {
                u->n_silent++;
                return;
        }
        for (rest = buf_str(&text); rest.len > 0;)
                take_line(u, pod, str_split(&rest, '\n'));
}

static int ask_agents(Usage *u) {
        for (size_t first = 0; first < u->n; first += AT_ONCE) {
                Kubectl running[AT_ONCE];
                size_t n = 0;
                int r = 0;

                while (r == 0 && n < AT_ONCE && first + n < u->n) {
                        r = start_kubectl(u, &u->pods[first + n], &running[n]);
                        n += r == 0;
                }
                for (size_t k = 0; k < n; k++)
                        finish_kubectl(u, &u->pods[first + k], &running[k]);
                if (r < 0)
                        return r;
        }
        return 0;
}

int usage_read(const Cluster *c, Inspect *inspect) {
        _cleanup_(usage_done) Usage u = {.cluster = c, .inspect = inspect};
        int r = find_agents(&u);

        if (r != 0)
                return r;
        r = ask_agents(&u);
        if (r < 0)
                return complain(EXIT_BROKEN, &(Fault){.text = ""}, r);
        if (u.n == 0 && !c->quiet)
                complain_line("used memory: ", "no node agent of Aliquot was found");
        if (u.n_silent > 0 && !c->quiet)
                (void) fprintf(stderr,
                               "used memory: %zu of %zu node agents did not answer (the right to get "
                               "pods/proxy is needed)\n",
                               u.n_silent, u.n);
        return 0;
}
