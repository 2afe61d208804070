/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page/page_use.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "wire/json_field.h"
#include "wire/list_items.h"

#define AGENT_PODS                                                                                           \
        "pods?labelSelector=app.kubernetes.io%2Fname%3Daliquot%2Capp.kubernetes.io%2Fcomponent%3Dnode"       \
        "&fieldSelector=spec.nodeName%3D"
#define UNKNOWN   "unknown: "
#define TYPE_TEXT "text/plain; charset=utf-8"

static const char *const shown[] = {
        "aliquot_node_card_memory_used_bytes{",
        "aliquot_node_card_healthy{",
        "aliquot_node_card_fence_xid{",
        "aliquot_node_container_memory_used_bytes{",
        "aliquot_node_container_compute_share_ratio{",
        "aliquot_node_container_compute_used_seconds_total{",
        "aliquot_node_container_compute_held_seconds_total{",
};

typedef struct Waiter {
        struct Waiter *next;
        struct Question *question;
        HttpExchange *exchange;
} Waiter;

/* One node: its agent is being asked, or its answer is kept until PAGE_USE_EVERY has passed. */
typedef struct Question {
        struct Question *next;
        PageUse *use;
        Waiter *waiters;
        KubeConfig *config; /* to reach the agent */
        KubeClient *agent;
        KubeCall *call; /* NULL: the answer is there */
        usec_t at;      /* when the answer came */
        Buf metrics, answer;
        size_t name_len;
        char name[];
} Question;

struct PageUse {
        KubeClient *client;
        const char *namespace_;
        Question *questions;
        size_t n;
};

static void question_free(Question *q) {
        kube_call_free(q->call);
        kube_client_free(q->agent);
        kube_config_free(q->config);
        buf_done(&q->metrics);
        buf_done(&q->answer);
        free(q);
}

/* ---- the end ---- */

/* 200 also without metrics: a browser would report each other status as an error of the page. */
static void respond_use(const Question *q, HttpExchange *x) {
        if (q->answer.broken)
                http_respond(x, 503, TYPE_TEXT, STR("out of memory\n"));
        else
                http_respond(x, 200, TYPE_TEXT, buf_str(&q->answer));
}

static void finish_question(Question *q) {
        Waiter *w = q->waiters;

        q->waiters = NULL;
        q->call = NULL;
        q->at = clock_monotonic_usec();
        buf_done(&q->metrics);
        q->agent = kube_client_free(q->agent); /* may be freed in its own callback */
        while (w) {
                Waiter *next = w->next;

                respond_use(q, w->exchange);
                free(w);
                w = next;
        }
}

static void finish_without(Question *q, const char *why) {
        buf_clear(&q->answer);
        buf_appendf(&q->answer, UNKNOWN "%s\n", why);
        finish_question(q);
}

/* ---- the agent's metrics ---- */

static int on_metrics(void *userdata, Str bytes) {
        Question *q = userdata;

        buf_append_str(&q->metrics, bytes);
        return q->metrics.len > PAGE_USE_BYTES ? -EFBIG : buf_result(&q->metrics);
}

static bool is_shown(Str line) {
        for (size_t i = 0; i < ELEMENTSOF(shown); i++)
                if (str_has_prefix(line, str_from(shown[i])))
                        return true;
        return false;
}

static void on_answer(void *userdata, const KubeReply *reply) {
        Question *q = userdata;
        Str rest = buf_str(&q->metrics);

        if (reply->outcome != KUBE_DONE || reply->status != 200) {
                finish_without(q, "the agent of the node does not answer");
                return;
        }
        buf_appendf(&q->answer, "# at %.3f\n", (double) clock_monotonic_usec() / USEC_PER_SEC);
        while (rest.len > 0) {
                Str line = str_split(&rest, '\n');

                if (!is_shown(line))
                        continue;
                buf_append_str(&q->answer, line);
                buf_append_char(&q->answer, '\n');
        }
        finish_question(q);
}

/* ---- its address ---- */

typedef struct AgentPod {
        Str ip;
} AgentPod;

static const JsonField status_fields[] = {JSON_FIELD(AgentPod, ip, "podIP", json_field_str)};
JSON_DECODER(read_status, status_fields)

static const JsonField pod_fields[] = {JSON_NESTED("status", read_status)};

enum { FOUND = LIST_ITEMS_E_MALFORMED + 1 };

/* Takes the address of the first pod that has one. While a DaemonSet is updated, one of its two
 * pods has none. */
static int take_address(void *userdata, Str item) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        char *address = userdata;
        struct in6_addr bytes;
        AgentPod pod = {0};
        int r = json_field_read(item, &arena, pod_fields, ELEMENTSOF(pod_fields), &pod, NULL);

        if (r != 0 || str_is_empty(pod.ip) || pod.ip.len >= INET6_ADDRSTRLEN)
                return r < 0 ? r : 0;
        memcpy(address, pod.ip.data, pod.ip.len);
        address[pod.ip.len] = '\0';
        return inet_pton(AF_INET, address, &bytes) == 1 || inet_pton(AF_INET6, address, &bytes) == 1 ? FOUND
                                                                                                     : 0;
}

static int ask_agent(Question *q, const char *address) {
        const KubeRequest request = {
                .method = "GET", .path = "/metrics", .timeout = PAGE_USE_TIMEOUT, .on_data = on_metrics};
        char server[INET6_ADDRSTRLEN + 32];
        int r;

        (void) snprintf(server, sizeof server, strchr(address, ':') ? "http://[%s]:%d" : "http://%s:%d",
                        address, PAGE_USE_PORT);
        r = kube_config_for_server(server, &q->config);
        if (r == 0)
                r = kube_client_new(kube_client_event(q->use->client), q->config, &q->agent);
        return r < 0 ? r : kube_call(q->agent, &request, on_answer, q, &q->call);
}

static void on_pods(void *userdata, const KubeReply *reply) {
        Question *q = userdata;
        char address[INET6_ADDRSTRLEN] = "";
        int r;

        q->call = NULL;
        if (reply->outcome != KUBE_DONE || reply->status != 200) {
                finish_without(q, "the API server does not say where the agent of the node is");
                return;
        }
        r = list_items_each(reply->body, take_address, address, NULL);
        if (r >= 0 && r != FOUND)
                finish_without(q, "the node has no agent");
        else if (r < 0 || ask_agent(q, address) < 0)
                finish_without(q, "out of memory");
}

static int look_up(Question *q) {
        const KubeRequest *request;
        char path[768];

        (void) snprintf(path, sizeof path, "/api/v1/namespaces/%s/%s%s", q->use->namespace_, AGENT_PODS,
                        q->name);
        request = &(KubeRequest){.method = "GET", .path = path, .timeout = PAGE_USE_TIMEOUT};
        return kube_call(q->use->client, request, on_pods, q, &q->call);
}

/* ---- the questions ---- */

static void drop_old(PageUse *u, usec_t now) {
        for (Question **at = &u->questions; *at;) {
                Question *q = *at;

                if (q->call || now < q->at + PAGE_USE_EVERY) {
                        at = &q->next;
                        continue;
                }
                *at = q->next;
                question_free(q);
                u->n--;
        }
}

static Question *find_question(const PageUse *u, Str node) {
        for (Question *q = u->questions; q; q = q->next)
                if (str_eq((Str){q->name, q->name_len}, node))
                        return q;
        return NULL;
}

/* Whether the name needs no escape in a URL query (RFC 1123). */
static bool is_name(Str s) {
        for (size_t i = 0; i < s.len; i++) {
                char c = s.data[i];

                if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'))
                        return false;
        }
        return s.len > 0;
}

static Question *ask_node(PageUse *u, Str node) {
        Question *q = calloc(1, sizeof *q + node.len + 1);

        if (!q)
                return NULL;
        q->use = u;
        q->name_len = node.len;
        memcpy(q->name, node.data, node.len);
        if (look_up(q) < 0) {
                question_free(q);
                return NULL;
        }
        q->next = u->questions;
        u->questions = q;
        u->n++;
        return q;
}

static void on_gone(void *userdata) {
        Waiter *gone = userdata;

        for (Waiter **at = &gone->question->waiters; *at; at = &(*at)->next)
                if (*at == gone) {
                        *at = gone->next;
                        break;
                }
        free(gone);
}

static int wait_for(Question *q, HttpExchange *x) {
        Waiter *w = calloc(1, sizeof *w);

        if (!w)
                return -ENOMEM;
        *w = (Waiter){.next = q->waiters, .question = q, .exchange = x};
        q->waiters = w;
        http_exchange_on_close(x, on_gone, w);
        return 0;
}

void page_use_answer(PageUse *u, HttpExchange *x, Str node) {
        Question *q;

        if (!is_name(node)) {
                http_respond(x, 200, TYPE_TEXT, STR(UNKNOWN "the node has no agent\n"));
                return;
        }
        drop_old(u, clock_monotonic_usec());
        q = find_question(u, node);
        if (!q && u->n >= PAGE_USE_NODES) {
                http_respond(x, 200, TYPE_TEXT, STR(UNKNOWN "16 nodes are asked already\n"));
                return;
        }
        if (!q)
                q = ask_node(u, node);
        if (q && !q->call)
                respond_use(q, x);
        else if (!q || wait_for(q, x) < 0)
                http_respond(x, 503, TYPE_TEXT, STR("out of memory\n"));
}

int page_use_new(KubeClient *client, const char *namespace_, PageUse **ret) {
        PageUse *u = calloc(1, sizeof *u);

        if (!u)
                return -ENOMEM;
        u->client = client;
        u->namespace_ = namespace_;
        *ret = u;
        return 0;
}

PageUse *page_use_free(PageUse *u) {
        if (!u)
                return NULL;
        while (u->questions) {
                Question *q = u->questions;

                u->questions = q->next;
                question_free(q);
        }
        free(u);
        return NULL;
}
