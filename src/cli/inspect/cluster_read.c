/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/cluster_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cli/inspect/complain.h"
#include "cli/inspect/feed.h"

enum { WARNINGS_MAX = 20 };

/* ConfigMaps that fence cards; the scheduler follows the same (scheduler/view/follower.c). */
#define FENCES "/api/v1/namespaces/kube-system/configmaps"

typedef struct Warnings {
        bool quiet;
        size_t n;
} Warnings;

static void print_warning(void *userdata, const char *text) {
        Warnings *w = userdata;

        if (w->n++ < WARNINGS_MAX && !w->quiet)
                complain_line("", text);
}

static int read_file(Feed *f, const char *path) {
        bool is_stdin = strcmp(path, "-") == 0;
        _cleanup_close_ int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        Fault fault = FAULT_NULL;
        int r;

        f->source = is_stdin ? "standard input" : path;
        if (fd < 0)
                return complain(EXIT_USAGE, &fault,
                                fault_set(&fault, 0, "%s: %s", f->source, strerror(errno)));
        r = feed_fd(f, fd, &fault);
        if (r == 0)
                return 0;
        return complain(r == -ENOMEM ? EXIT_BROKEN : EXIT_USAGE, &fault, r);
}

static int read_kubectl(Feed *f, const Cluster *c, const char *path) {
        Fault why = FAULT_NULL, fault = FAULT_NULL;
        Kubectl kubectl;
        int fed, r;

        r = kubectl_get_raw(c->kubectl_flags, c->n_kubectl_flags, path, &kubectl, &fault);
        if (r < 0)
                return complain(EXIT_BROKEN, &fault, r);
        f->source = kubectl.command;
        fed = feed_fd(f, kubectl.out, &why);
        r = kubectl_finish(&kubectl, fed != 0 && !f->at_end, &fault);
        /* A failure of kubectl explains a list that breaks off, unless we stopped kubectl
         * ourselves. */
        if (r != 0 && (fed == 0 || f->at_end))
                return complain(r < 0 ? EXIT_BROKEN : EXIT_NO, &fault, r);
        /* Without a login kubectl asks for a user name, on its standard output. */
        if (fed > 0 && !f->begun)
                (void) fault_set(&why, fed,
                                 "%s: answers with no list; try kubectl get nodes: where it asks for a user "
                                 "name, the kubeconfig has no login for this cluster",
                                 kubectl.command);
        if (fed != 0)
                return complain(fed < 0 ? EXIT_BROKEN : EXIT_NO, &why, fed);
        return 0;
}

/* Escapes everything that is not safe in a field selector within a URL. */
static void append_escaped(Buf *url, Str s) {
        static const char hex[] = "0123456789ABCDEF";

        for (size_t i = 0; i < s.len; i++) {
                unsigned char c = (unsigned char) s.data[i];
                bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             c == '-' || c == '.';

                if (plain) {
                        buf_append_char(url, (char) c);
                        continue;
                }
                buf_append_char(url, '%');
                buf_append_char(url, hex[c >> 4]);
                buf_append_char(url, hex[c & 15]);
        }
}

/* Appends "name=value" to the query. */
static void append_query(Buf *url, const char *name, Str value) {
        buf_append_char(url, memchr(url->data, '?', url->len) ? '&' : '?');
        buf_append_str(url, str_from(name));
        buf_append_char(url, '=');
        append_escaped(url, value);
}

/* Returns the path of a list that the server selects: objects that the report needs, and only those
 * of the requested node and namespace. On a large cluster that saves most of the bytes. */
static char *path_of(const Cluster *c, bool pods) {
        _cleanup_buf_ Buf selector = BUF_NULL;
        Buf url = BUF_NULL;

        buf_append_str(&url, STR("/api/v1/"));
        if (pods && c->namespace_.len > 0)
                buf_appendf(&url, "namespaces/" STR_FMT "/", STR_ARG(c->namespace_));
        buf_append_str(&url, pods ? STR("pods") : STR("nodes"));
        if (pods)
                buf_append_str(&selector, STR("status.phase!=Succeeded,status.phase!=Failed"));
        if (c->node.len > 0) {
                buf_append_str(&selector, pods ? STR(",spec.nodeName=") : STR("metadata.name="));
                buf_append_str(&selector, c->node);
        }
        if (selector.len > 0)
                append_query(&url, "fieldSelector", buf_str(&selector));
        if (c->cached)
                append_query(&url, "resourceVersion", STR("0"));
        url.broken |= selector.broken;
        return buf_take(&url);
}

static int read_objects(Inspect *inspect, const Cluster *c, Str only, const char *path, Warnings *warnings) {
        _cleanup_(feed_done)
                Feed feed = {.inspect = inspect, .only = only, .warn = print_warning, .userdata = warnings};
        int status;

        if (feed_init(&feed) < 0)
                return complain_no_memory();
        status = path ? read_kubectl(&feed, c, path) : read_file(&feed, c->from);
        return status == 0 && feed.n_left_out > 0 ? -EXIT_NO : status;
}

/* Reads the ConfigMaps that fence cards. Where this fails, the report is complete but for fences:
 * not every user has the right to read them. */
static int read_fences(Inspect *inspect, const Cluster *c, Warnings *warnings) {
        _cleanup_(feed_done) Feed feed = {
                .inspect = inspect, .only = STR("ConfigMap"), .warn = print_warning, .userdata = warnings};
        Kubectl kubectl;
        int r, fed;

        if (feed_init(&feed) < 0)
                return complain_no_memory();
        r = kubectl_try_raw(c->kubectl_flags, c->n_kubectl_flags,
                            c->cached ? FENCES "?resourceVersion=0" : FENCES, &kubectl, NULL);
        if (r == 0) {
                feed.source = kubectl.command;
                fed = feed_fd(&feed, kubectl.out, NULL);
                r = kubectl_finish(&kubectl, fed != 0 && !feed.at_end, NULL);
                if (fed == -ENOMEM)
                        return complain_no_memory();
                r = r != 0 ? r : fed;
        }
        if (r != 0 && !c->quiet)
                complain_line("", "cards that a ConfigMap fences may not be shown: the configmaps of "
                                  "kube-system could not be listed");
        return 0;
}

static int read_lists(Inspect *inspect, const Cluster *c, Warnings *warnings) {
        _cleanup_free_ char *nodes = path_of(c, false), *pods = path_of(c, true);
        int first, second, third;

        if (!nodes || !pods)
                return complain_no_memory();
        first = read_objects(inspect, c, STR("Node"), nodes, warnings);
        if (first > 0)
                return first;
        second = read_objects(inspect, c, STR("Pod"), pods, warnings);
        if (second > 0)
                return second;
        third = read_fences(inspect, c, warnings);
        return third != 0 ? third : second != 0 ? second : first;
}

/* Without its nodes, or without its pods, a cluster looks empty. */
static void warn_of_half(const Inspect *inspect, const char *from, Warnings *warnings) {
        const char *lacks = inspect_lacks(inspect);
        Fault text = FAULT_NULL;

        if (!lacks)
                return;
        (void) fault_set(
                &text, 0,
                "%s: has no %s, so the report shows %s; kubectl get nodes,pods -A -o json prints both",
                strcmp(from, "-") == 0 ? "standard input" : from, lacks,
                strcmp(lacks, "nodes") == 0 ? "nothing" : "no pod's share");
        print_warning(warnings, text.text);
}

int cluster_read(const Cluster *c, Inspect *inspect) {
        Warnings warnings = {.quiet = c->quiet};
        int status = c->from ? read_objects(inspect, c, STR(""), NULL, &warnings)
                             : read_lists(inspect, c, &warnings);

        if (c->from && status <= 0)
                warn_of_half(inspect, c->from, &warnings);
        if (warnings.n > WARNINGS_MAX && !c->quiet)
                (void) fprintf(stderr, "and %zu more such lines\n", warnings.n - WARNINGS_MAX);
        return status;
}
