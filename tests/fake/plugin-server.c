/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "base/buf.h"
#include "node/kubelet/plugin.h"

/* Device plugins with answers that show the requests, for black-box tests: plugin-server
 * KUBELET_DIR RESOURCE ENDPOINT...
 *
 * It prints "registered RESOURCE" and "lost RESOURCE: WHY", and ends with its standard input. A
 * line "devices RESOURCE COUNT DIGITS HEALTHY" sets the list, and is answered "ok" or "error
 * NUMBER". PreStartContainer for the ID "wait" is never answered; "cancelled" is printed when its
 * caller disconnects. */

enum { PLUGINS_MAX = 2 };

typedef struct Server {
        Plugin *plugins[PLUGINS_MAX];
        size_t n;
} Server;

static void say(const char *what, const Plugin *p, const char *more) {
        (void) printf("%s %s%s\n", what, plugin_resource(p), more);
        (void) fflush(stdout); /* a failure means that the reader has ended */
}

static void on_registered(void *userdata, Plugin *p) {
        say("registered", p, "");
}

static void on_lost(void *userdata, Plugin *p, const Fault *why) {
        char more[sizeof why->text + 8];

        (void) snprintf(more, sizeof more, ": %s", why->text);
        say("lost", p, more);
}

/* The IDs that must be included, then the first ones. */
static void preferred(void *userdata, Plugin *p, RpcCall *call, const PreferredRequest *request) {
        _cleanup_free_ Str *ids = calloc(request->size + 1, sizeof *ids);
        size_t n = 0;

        if (!ids) {
                rpc_fail(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
                return;
        }
        for (size_t i = 0; i < request->must_include.n && n < request->size; i++)
                ids[n++] = request->must_include.ids[i];
        for (size_t i = 0; i < request->available.n && n < request->size; i++)
                ids[n++] = request->available.ids[i];
        plugin_answer_preferred(call, ids, n);
}

static void allocate(void *userdata, Plugin *p, RpcCall *call, PluginIds ids) {
        static const PluginMount mounts[] = {{"/in/container", "/on/host", true},
                                             {"/rw", "/on/host/rw", false}};
        static const char *const cdi[] = {"aliquot.dev/gpu=GPU-1", "aliquot.dev/gpu=GPU-2"};
        _cleanup_buf_ Buf list = BUF_NULL;
        PluginVariable environment[] = {{"IDS", {0}}, {"EMPTY", {0}}};
        PluginAllocation a = {.environment = environment,
                              .n_environment = ELEMENTSOF(environment),
                              .mounts = mounts,
                              .n_mounts = ELEMENTSOF(mounts),
                              .cdi_devices = cdi,
                              .n_cdi_devices = ELEMENTSOF(cdi)};

        for (size_t i = 0; i < ids.n; i++) {
                buf_append_str(&list, i > 0 ? STR(",") : STR(""));
                buf_append_str(&list, ids.ids[i]);
        }
        environment[0].value = buf_str(&list);
        plugin_answer_allocate(call, &a);
}

static void on_prestart_closed(void *userdata) {
        say("cancelled", userdata, "");
}

static void prestart(void *userdata, Plugin *p, RpcCall *call, PluginIds ids) {
        if (str_eq(ids.ids[0], STR("wait"))) {
                say("waiting", p, "");
                rpc_call_on_close(call, on_prestart_closed, p);
        } else if (str_eq(ids.ids[0], STR("fail"))) {
                rpc_fail(call, RPC_FAILED_PRECONDITION, "the card is taken: 100 %");
        } else {
                plugin_answer_prestart(call);
        }
}

static int set_devices(Plugin *p, size_t count, int digits, bool healthy) {
        _cleanup_free_ PluginDevice *devices = calloc(count + 1, sizeof *devices);

        if (!devices)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                devices[i] = (PluginDevice){.healthy = healthy};
                (void) snprintf(devices[i].id, sizeof devices[i].id, "%0*zu", digits, i);
        }
        return plugin_set_devices(p, devices, count);
}

static int obey(Server *s, const char *line) {
        char resource[64];
        size_t count;
        int digits, healthy;

        if (sscanf(line, "devices %63s %zu %d %d", resource, &count, &digits, &healthy) != 4)
                return -EINVAL;
        for (size_t i = 0; i < s->n; i++)
                if (strcmp(plugin_resource(s->plugins[i]), resource) == 0)
                        return set_devices(s->plugins[i], count, digits, healthy);
        return -ENOENT;
}

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        char line[512];
        ssize_t n = read(fd, line, sizeof line - 1);
        int r;

        if (n <= 0)
                return sd_event_exit(sd_event_source_get_event(source), 0);
        line[n] = '\0';
        r = obey(userdata, line);
        if (r == 0)
                (void) printf("ok\n");
        else
                (void) printf("error %d\n", r);
        (void) fflush(stdout); /* a failure means that the reader has ended */
        return 0;
}

static void server_done(Server *s) {
        for (size_t i = 0; i < s->n; i++)
                plugin_free(s->plugins[i]);
}

int main(int argc, char **argv) {
        static const PluginHandler handler = {preferred, allocate, prestart, on_registered, on_lost};
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(server_done) Server s = {0};
        Fault fault = FAULT_NULL;

        (void) signal(SIGPIPE, SIG_IGN);
        if (sd_event_new(&event) < 0 || sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_input, &s) < 0)
                return 3;
        for (int i = 2; i + 1 < argc && s.n < PLUGINS_MAX; i += 2) {
                PluginOptions options = {
                        .kubelet_dir = argv[1], .resource = argv[i], .endpoint = argv[i + 1]};

                if (plugin_new(event, &options, &handler, NULL, &s.plugins[s.n], &fault) < 0) {
                        (void) fprintf(stderr, "plugin-server: %s\n", fault.text);
                        return 3;
                }
                s.n++;
        }
        return sd_event_loop(event) < 0 ? 3 : 0;
}
