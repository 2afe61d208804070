/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/why.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/inspect/complain.h"
#include "cli/inspect/holding.h"
#include "share/refusal_format.h"
#include "share/request.h"
#include "share/resize_status.h"
#include "wire/list_items.h"

#define LOWER_NAME        "abcdefghijklmnopqrstuvwxyz0123456789.-"
#define SCHEDULER_SERVICE "aliquot-scheduler:12347"
/* Labels of the scheduler's pods (deploy/helm/aliquot/templates/scheduler.yaml). */
#define SCHEDULER_PODS                                                                                       \
        "/api/v1/pods?labelSelector=app.kubernetes.io%2Fname%3Daliquot,app.kubernetes.io%2Fcomponent%3D"     \
        "scheduler"
#define UID_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZ_" LOWER_NAME

enum { NAME_LONGEST = 253 }; /* longest name of a Kubernetes object (DNS1123SubdomainMaxLength) */

typedef struct Why {
        const Cluster *cluster;
        const char *scheduler;
        bool is_default; /* the user named no scheduler */
        char found[128]; /* a scheduler that was found in another namespace */
        Str namespace_, name;
        Arena arena;
        Buf text; /* JSON of the pod */
        Pod pod;
} Why;

/* Whether all characters are allowed. Names become parts of a path that is requested. */
static bool is_of(Str s, const char *allowed) {
        for (size_t i = 0; i < s.len; i++)
                if (!strchr(allowed, s.data[i]) || s.data[i] == '\0')
                        return false;
        return s.len > 0 && s.len <= NAME_LONGEST;
}

static int read_all(int fd, Buf *out) {
        char piece[16384];
        ssize_t n;

        while ((n = read(fd, piece, sizeof piece)) != 0) {
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n > 0)
                        buf_append(out, piece, (size_t) n);
        }
        return buf_result(out);
}

/* Gets the answer for one path. Unless quiet, kubectl reports on standard error what went wrong.
 * Returns 0, KUBECTL_E_FAILED or negative errno, each error with a fault. */
static int get_path(const char *const *flags, size_t n_flags, const char *path, bool quiet, Buf *out,
                    Fault *fault) {
        Kubectl kubectl;
        int r, read;

        r = quiet ? kubectl_try_raw(flags, n_flags, path, &kubectl, fault)
                  : kubectl_get_raw(flags, n_flags, path, &kubectl, fault);
        if (r < 0)
                return r;
        read = read_all(kubectl.out, out);
        r = kubectl_finish(&kubectl, read < 0, fault);
        if (read < 0)
                return fault_set(fault, read, "%s: %s", kubectl.command, strerror(-read));
        return r;
}

/* ---- the pod ---- */

static int parse_name(Why *w, Str pod) {
        Str rest = pod, first = str_split(&rest, '/');
        bool both = first.len < pod.len;

        w->namespace_ = both                             ? first
                        : w->cluster->namespace_.len > 0 ? w->cluster->namespace_
                                                         : STR("default");
        w->name = both ? rest : first;
        if (is_of(w->namespace_, LOWER_NAME) && is_of(w->name, LOWER_NAME))
                return -1;
        return complain_usage("--why takes NAMESPACE/POD, not ", pod.data);
}

/* Returns -1 to go on, otherwise the exit status. */
static int fetch_pod(Why *w) {
        _cleanup_buf_ Buf path = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r;

        buf_appendf(&path, "/api/v1/namespaces/" STR_FMT "/pods/" STR_FMT, STR_ARG(w->namespace_),
                    STR_ARG(w->name));
        if (buf_result(&path) < 0)
                return complain_no_memory();
        r = get_path(w->cluster->kubectl_flags, w->cluster->n_kubectl_flags, path.data, false, &w->text,
                     &fault);
        if (r > 0)
                (void) fault_set(&fault, r,
                                 "pod " STR_FMT "/" STR_FMT " is not known, or kubectl cannot read it",
                                 STR_ARG(w->namespace_), STR_ARG(w->name));
        if (r == 0)
                r = pod_decode(buf_str(&w->text), &w->arena, &w->pod, &fault);
        return r == 0 ? -1 : complain(r < 0 ? EXIT_BROKEN : EXIT_NO, &fault, r);
}

/* ---- what the pod itself shows ---- */

static void print_place(Why *w) {
        InspectPod held = {0};
        Fault fault = FAULT_NULL;
        Arena scratch = ARENA_NULL;

        printf(STR_FMT "/" STR_FMT " has its cards: node " STR_FMT, STR_ARG(w->namespace_), STR_ARG(w->name),
               STR_ARG(w->pod.node_name));
        if (holding_from_pod(&w->pod, &scratch, &w->arena, &held, &fault) == 0)
                for (size_t i = 0; i < held.n_uses; i++) {
                        printf(", gpu%u with %llu of gpu-mem", held.uses[i].card,
                               (unsigned long long) held.uses[i].mem);
                        if (held.uses[i].core > 0)
                                printf(" and %llu percent", (unsigned long long) held.uses[i].core);
                }
        putchar('\n');
        arena_done(&scratch);
}

static bool asks_resize(const Pod *pod) {
        return !str_is_empty(str_trim(pod->annotations.resize_mem)) ||
               !str_is_empty(str_trim(pod->annotations.resize_core));
}

/* Prints the second line: what the agent says of a resize, or that it has not answered. */
static void print_resize(const Why *w) {
        Str text = w->pod.annotations.resize_status;
        ResizeStatus status;

        if (!asks_resize(&w->pod) && str_is_empty(text))
                return;
        if (resize_status_read(text, &status) == 0 && !str_is_empty(text) &&
            (!str_is_empty(status.refused) || !str_is_empty(status.waits) ||
             resize_status_fulfils(&status, w->pod.annotations.resize_mem, w->pod.annotations.resize_core))) {
                printf("resize: " STR_FMT "\n", STR_ARG(text));
                return;
        }
        printf("resize: waits for the agent of node " STR_FMT
               ", which decides as soon as the containers run; resize-status: " STR_FMT "\n",
               STR_ARG(w->pod.node_name), STR_ARG(str_is_empty(text) ? STR("none yet") : text));
}

static int say_no(const Why *w, const char *text) {
        (void) fprintf(stderr, STR_FMT "/" STR_FMT " %s\n", STR_ARG(w->namespace_), STR_ARG(w->name), text);
        return EXIT_NO;
}

static int say_never(const Why *w, const Refusal *refusal) {
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_append_str(&text, STR("fits no node, now or later: "));
        refusal_format(refusal, &text);
        return buf_result(&text) < 0 ? complain_no_memory() : say_no(w, text.data);
}

/* Returns -1 when the scheduler must be asked, otherwise the exit status. */
static int judge_pod(Why *w) {
        Refusal refusal = {0};
        Request request;
        int r = request_from_pod(&w->pod, &w->arena, &request, &refusal);

        if (r < 0)
                return complain_no_memory();
        if (r == REQUEST_E_NONE)
                return say_no(w,
                              "asks for no aliyun.com/gpu-mem, so that no rule of ours keeps it from a node");
        if (pod_is_terminal(&w->pod))
                return say_no(w, "has ended, and holds no card");
        if (!str_is_empty(w->pod.node_name)) {
                print_place(w);
                print_resize(w);
                return 0;
        }
        return r == REQUEST_E_REFUSED ? say_never(w, &refusal) : -1;
}

/* ---- the scheduler ---- */

static bool is_url(const char *where) {
        return strncmp(where, "http://", 7) == 0 || strncmp(where, "https://", 8) == 0;
}

/* Asks the server of a URL, with kubectl as client. kubectl gets no kubeconfig then, so that the
 * user's credentials go to no other server than the user's own. */
static int ask_url(const Why *w, Buf *out, Fault *fault) {
        _cleanup_buf_ Buf server = BUF_NULL, path = BUF_NULL;
        const char *flags[2] = {NULL, "--kubeconfig=/dev/null"};

        buf_appendf(&server, "--server=%s", w->scheduler);
        buf_appendf(&path, "/gpushare-scheduler/why/" STR_FMT, STR_ARG(w->pod.meta.uid));
        if (buf_result(&server) < 0 || buf_result(&path) < 0)
                return -ENOMEM;
        flags[0] = server.data;
        return get_path(flags, ELEMENTSOF(flags), path.data, false, out, fault);
}

static int ask_service(const Why *w, bool quiet, Buf *out, Fault *fault) {
        Str service = str_from(w->scheduler), namespace_ = str_split(&service, '/');
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_appendf(&path,
                    "/api/v1/namespaces/" STR_FMT "/services/" STR_FMT
                    "/proxy/gpushare-scheduler/why/" STR_FMT,
                    STR_ARG(namespace_), STR_ARG(service), STR_ARG(w->pod.meta.uid));
        if (buf_result(&path) < 0)
                return -ENOMEM;
        return get_path(w->cluster->kubectl_flags, w->cluster->n_kubectl_flags, path.data, quiet, out, fault);
}

/* ---- a scheduler in a namespace of its own ---- */

typedef struct Found {
        Arena arena;
        /* namespace of the first pod; a DNS label has 63 characters (RFC 1123) */
        char namespace_[64];
        bool several;
} Found;

static int take_scheduler_pod(void *userdata, Str item) {
        Found *f = userdata;
        Pod pod;
        int r = pod_decode(item, &f->arena, &pod, NULL);

        if (r != 0)
                return r < 0 ? r : 0;
        if (!is_of(pod.meta.namespace_, LOWER_NAME) || pod.meta.namespace_.len >= sizeof f->namespace_)
                return 0;
        f->several |= f->namespace_[0] != '\0' && !str_eq(pod.meta.namespace_, str_from(f->namespace_));
        if (f->namespace_[0] == '\0')
                (void) snprintf(f->namespace_, sizeof f->namespace_, STR_FMT, STR_ARG(pod.meta.namespace_));
        return 0;
}

/* Finds the namespace of the installation by the scheduler's pods. Any user may give a pod these
 * labels, so none is chosen when there are several. */
static bool find_scheduler(Why *w) {
        _cleanup_buf_ Buf pods = BUF_NULL;
        Found found = {.arena = ARENA_NULL};
        int r = get_path(w->cluster->kubectl_flags, w->cluster->n_kubectl_flags, SCHEDULER_PODS, true, &pods,
                         NULL);

        if (r == 0)
                r = list_items_each(buf_str(&pods), take_scheduler_pod, &found, NULL);
        arena_done(&found.arena);
        if (r != 0 || found.several || found.namespace_[0] == '\0')
                return false;
        (void) snprintf(w->found, sizeof w->found, "%s/" SCHEDULER_SERVICE, found.namespace_);
        w->scheduler = w->found;
        return true;
}

/* Asks the default scheduler, at first without messages: the scheduler may be in another
 * namespace. */
static int ask_default(Why *w, Buf *out, Fault *fault) {
        int r = ask_service(w, true, out, fault);

        if (r <= 0)
                return r;
        (void) find_scheduler(w);
        buf_clear(out);
        return ask_service(w, false, out, fault);
}

static int ask_scheduler(Why *w) {
        _cleanup_buf_ Buf answer = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r;

        if (!is_of(w->pod.meta.uid, UID_CHARS))
                return say_no(w, "has a UID that cannot be asked about");
        if (w->is_default)
                r = ask_default(w, &answer, &fault);
        else
                r = is_url(w->scheduler) ? ask_url(w, &answer, &fault)
                                         : ask_service(w, false, &answer, &fault);
        if (r > 0)
                (void) fault_set(&fault, r,
                                 "the scheduler at %s does not answer; where it is in another namespace: "
                                 "--scheduler NAMESPACE/" SCHEDULER_SERVICE
                                 "; where a NetworkPolicy is in the way: kubectl -n NAMESPACE port-forward "
                                 "svc/aliquot-scheduler 12347, and --scheduler http://127.0.0.1:12347",
                                 w->scheduler);
        if (r != 0)
                return complain(r < 0 ? EXIT_BROKEN : EXIT_NO, &fault, r);
        printf(STR_FMT "/" STR_FMT " (scheduler: " STR_FMT ") ", STR_ARG(w->namespace_), STR_ARG(w->name),
               STR_ARG(w->pod.scheduler_name));
        (void) fwrite(answer.data, 1, answer.len, stdout);
        return 0;
}

int why_run(const Cluster *c, Str pod, const char *scheduler) {
        Why w = {.cluster = c,
                 .scheduler = scheduler ? scheduler : WHY_SCHEDULER,
                 .is_default = scheduler == NULL};
        int status = parse_name(&w, pod);

        if (status < 0 && !is_url(w.scheduler) && !strchr(w.scheduler, '/'))
                status = complain_usage("--scheduler takes NAMESPACE/SERVICE:PORT or a URL, not ",
                                        w.scheduler);
        if (status < 0)
                status = fetch_pod(&w);
        if (status < 0)
                status = judge_pod(&w);
        if (status < 0)
                status = ask_scheduler(&w);
        if (fflush(stdout) != 0 && status == 0)
                status = EXIT_BROKEN;
        buf_done(&w.text);
        arena_done(&w.arena);
        return status;
}
