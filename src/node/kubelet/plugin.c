/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/plugin.h"

#include <errno.h>

#include "net/grpc/rpc_client.h"
#include "net/grpc/rpc_socket.h"
#include "node/kubelet/plugin_dir.h"

/* Every event only schedules on_work(), which looks at the current state: the directory, our socket
 * in it, the kubelet's socket, and the open streams. It then takes the next missing step. So
 * nothing depends on the order in which a restart of the kubelet and its effects are noticed.
 *
 * What the kubelet does (pkg/kubelet/cm/devicemanager/plugin/v1beta1): at its start it removes
 * every socket from the directory and makes kubelet.sock. Register connects to our socket and asks
 * for the options before it answers; ListAndWatch follows. The end of ListAndWatch unregisters the
 * plugin.
 *
 * A second registration while an older stream is open is harmful, because the end of that stream
 * disconnects the later one (kubernetes#135437). So the plugin registers only when there is a
 * reason, and ends a stream itself only when the kubelet has dropped the plugin. */

#define METHOD(name) "/v1beta1.DevicePlugin/" name

#define REGISTER_TIMEOUT (15 * USEC_PER_SEC) /* the kubelet connects to our socket for up to 10 s */
#define LISTEN_TIMEOUT   (2 * USEC_PER_SEC)  /* from the reply of Register to ListAndWatch */
#define DELAY_MIN        (5 * USEC_PER_MSEC) /* kubelet.sock exists before the kubelet listens on it */
#define DELAY_MAX        USEC_PER_SEC
/* a registration that lasted that long is renewed without delay */
#define STEADY         (5 * USEC_PER_SEC)
#define TIMER_ACCURACY USEC_PER_MSEC

enum { STREAMS_MAX = 8 }; /* a kubelet opens one; each may queue an unread list of up to 16 MiB */

typedef enum PluginState {
        PLUGIN_UNREGISTERED,   /* a precondition is missing, or the next attempt is not due */
        PLUGIN_REGISTERING,    /* Register is under way */
        PLUGIN_EXPECTING_LIST, /* Register succeeded; ListAndWatch must follow */
        PLUGIN_REGISTERED,
} PluginState;

/* One open ListAndWatch. */
typedef struct Stream {
        Plugin *plugin;
        RpcCall *call;
        struct Stream *next, **link;
        uint64_t attempt;
} Stream;

struct Plugin {
        sd_event *event;
        PluginHandler handler;
        void *userdata;
        PluginDir directory;
        char *kubelet_path, *path, *endpoint, *resource;

        RpcServer *server;
        PluginFileId socket; /* ours */
        sd_event_source *work, *timer;

        PluginState state;
        RpcClient *client;    /* of the Register under way; its connection outlives the kubelet's socket */
        PluginFileId kubelet; /* kubelet.sock of the latest attempt; inode 0: none */
        uint64_t attempt;
        usec_t due;   /* when the next attempt, or ListAndWatch, is due */
        usec_t delay; /* the delay before the latest attempt */
        usec_t since; /* when it was registered */
        Stream *streams;
        unsigned n_streams;

        bool listed; /* the list is set */
        Buf list;    /* the list as a message */

        bool notified_registered;
        Fault why, told; /* why it is unregistered; as last notified */
};

static void wake_work(void *userdata) {
        const Plugin *p = userdata;

        (void) sd_event_source_set_enabled(p->work, SD_EVENT_ONESHOT); /* cannot fail for a live loop */
}

static usec_t now_of(const Plugin *p) {
        usec_t now;

        (void) sd_event_now(p->event, CLOCK_MONOTONIC, &now); /* that clock is known */
        return now;
}

/* ---- the state ---- */

/* Doubles, with jitter, so that the plugins of two resources do not keep retrying at the same
 * time. */
static usec_t next_delay(Plugin *p) {
        p->delay = p->delay == 0 ? DELAY_MIN : 2 * p->delay;
        if (p->delay > DELAY_MAX)
                p->delay = DELAY_MAX;
        return p->delay - (usec_t) random() % (p->delay / 4);
}

static void set_unregistered(Plugin *p, usec_t delay, const Fault *why) {
        p->client = rpc_client_free(p->client);
        p->state = PLUGIN_UNREGISTERED;
        p->due = now_of(p) + delay;
        p->why = *why;
}

/* Registration ended or failed, and may be tried again. */
static void set_failed(Plugin *p, const Fault *why) {
        bool steady = p->state == PLUGIN_REGISTERED && now_of(p) - p->since >= STEADY;

        if (steady)
                p->delay = 0;
        set_unregistered(p, steady ? 0 : next_delay(p), why);
        wake_work(p);
}

/* Called last in on_work(), because the handler may free the plugin. */
static void notify_owner(Plugin *p) {
        bool notified_registered = p->notified_registered;

        p->notified_registered = p->state == PLUGIN_REGISTERED;
        if (p->notified_registered) {
                p->told = FAULT_NULL;
                if (!notified_registered && p->handler.on_registered)
                        p->handler.on_registered(p->userdata, p);
                return;
        }
        if (p->why.text[0] == '\0' || (!notified_registered && strcmp(p->why.text, p->told.text) == 0))
                return; /* the same fault is reported once */
        p->told = p->why;
        if (p->handler.on_lost)
                p->handler.on_lost(p->userdata, p, &p->told);
}

/* ---- ListAndWatch ---- */

static void stream_free(Stream *s) {
        *s->link = s->next;
        if (s->next)
                s->next->link = s->link;
        s->plugin->n_streams--;
        free(s);
}

static void stream_ended(Stream *s, const char *why) {
        Plugin *p = s->plugin;
        bool ours = s->attempt == p->attempt && p->state == PLUGIN_REGISTERED;
        Fault fault = FAULT_NULL;

        stream_free(s);
        if (!ours)
                return;
        (void) fault_set(&fault, 0, "%s: %s", p->resource, why);
        set_failed(p, &fault);
}

static void on_stream_closed(void *userdata) {
        stream_ended(userdata, "the kubelet ended ListAndWatch");
}

static void stream_send(Stream *s) {
        RpcCall *call = s->call;
        int r = rpc_send(call, buf_str(&s->plugin->list));

        if (r == 0)
                return;
        stream_ended(s, r == -ENOBUFS ? "the kubelet does not read what ListAndWatch says"
                                      : "out of memory for ListAndWatch");
        rpc_fail(call, RPC_RESOURCE_EXHAUSTED,
                 r == -ENOBUFS ? "too much is waiting to be read" : "out of memory");
}

static void handle_list(void *userdata, RpcCall *call, Str message) {
        Plugin *p = userdata;
        Stream *s = p->n_streams < STREAMS_MAX ? calloc(1, sizeof *s) : NULL;

        if (!s) {
                rpc_fail(call, RPC_RESOURCE_EXHAUSTED,
                         p->n_streams < STREAMS_MAX ? "out of memory" : "too many listen already");
                return;
        }
        *s = (Stream){
                .plugin = p, .call = call, .next = p->streams, .link = &p->streams, .attempt = p->attempt};
        if (s->next)
                s->next->link = &s->next;
        p->streams = s;
        p->n_streams++;
        rpc_call_on_close(call, on_stream_closed, s);
        if (p->state == PLUGIN_REGISTERING || p->state == PLUGIN_EXPECTING_LIST) {
                p->state =
                        /* ListAndWatch may come before the reply of Register, on another
                         * connection */
                        PLUGIN_REGISTERED;
                p->since = now_of(p);
                wake_work(p);
        }
        if (p->listed)
                stream_send(s);
}

int plugin_set_devices(Plugin *p, const PluginDevice *devices, size_t n) {
        _cleanup_buf_ Buf list = BUF_NULL;
        Stream *s, *next;

        if (plugin_message_size(devices, n) > PLUGIN_MESSAGE_MAX)
                return PLUGIN_E_TOO_LONG;
        plugin_message_put_devices(&list, devices, n);
        if (buf_result(&list) < 0)
                return -ENOMEM;
        if (p->listed && str_eq(buf_str(&list), buf_str(&p->list)))
                return 0; /* the kubelet processes each list completely, even an unchanged one */
        buf_done(&p->list);
        p->list = list;
        list = BUF_NULL;
        if (!p->listed)
                wake_work(p);
        p->listed = true;
        for (s = p->streams; s; s = next) {
                next = s->next;
                stream_send(s);
        }
        return 0;
}

void plugin_register_again(Plugin *p, const Fault *why) {
        Stream *s, *next;

        if (p->state != PLUGIN_REGISTERED)
                return;
        set_unregistered(p, DELAY_MAX, why); /* so that the streams end first */
        for (s = p->streams; s; s = next) {
                RpcCall *call = s->call;

                next = s->next;
                stream_free(s);
                rpc_fail(call, RPC_UNAVAILABLE, "the kubelet does not list these devices");
        }
        wake_work(p);
}

/* ---- the other calls ---- */

static void handle_options(void *userdata, RpcCall *call, Str message) {
        _cleanup_buf_ Buf reply = BUF_NULL;

        plugin_message_put_options(&reply);
        if (buf_result(&reply) < 0)
                rpc_fail(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
        else
                rpc_reply(call, buf_str(&reply));
}

/* Returns false when the request was refused and the call answered. */
static bool take_request(Plugin *p, RpcCall *call, PluginRequestKind kind, Str message, PluginRequest *ret) {
        Fault fault = FAULT_NULL;
        int r = plugin_message_decode_request(kind, message, ret, &fault);

        if (r == 0)
                return true;
        (void) fault_wrap(&fault, r, "%s", p->resource);
        rpc_fail(call, r < 0 ? RPC_RESOURCE_EXHAUSTED : RPC_INVALID_ARGUMENT, fault.text);
        return false;
}

static void handle_preferred(void *userdata, RpcCall *call, Str message) {
        _cleanup_(plugin_message_request_done) PluginRequest request = PLUGIN_REQUEST_NULL;
        Plugin *p = userdata;
        PreferredRequest preferred;

        if (!take_request(p, call, PLUGIN_REQUEST_PREFERRED, message, &request))
                return;
        preferred = (PreferredRequest){.available = {request.ids, request.n_ids},
                                       .must_include = {request.must_include, request.n_must_include},
                                       .size = (uint32_t) request.size};
        p->handler.preferred(p->userdata, p, call, &preferred);
}

static void handle_allocate(void *userdata, RpcCall *call, Str message) {
        _cleanup_(plugin_message_request_done) PluginRequest request = PLUGIN_REQUEST_NULL;
        Plugin *p = userdata;

        if (take_request(p, call, PLUGIN_REQUEST_ALLOCATE, message, &request))
                p->handler.allocate(p->userdata, p, call, (PluginIds){request.ids, request.n_ids});
}

static void handle_prestart(void *userdata, RpcCall *call, Str message) {
        _cleanup_(plugin_message_request_done) PluginRequest request = PLUGIN_REQUEST_NULL;
        Plugin *p = userdata;

        if (take_request(p, call, PLUGIN_REQUEST_PRESTART, message, &request))
                p->handler.prestart(p->userdata, p, call, (PluginIds){request.ids, request.n_ids});
}

static const RpcMethod methods[] = {
        {METHOD("GetDevicePluginOptions"), handle_options},   {METHOD("ListAndWatch"), handle_list},
        {METHOD("GetPreferredAllocation"), handle_preferred}, {METHOD("Allocate"), handle_allocate},
        {METHOD("PreStartContainer"), handle_prestart},
};

/* ---- Register ---- */

static void on_register_done(void *userdata, const RpcReply *reply) {
        Plugin *p = userdata;
        Fault fault = reply->fault;

        if (reply->status != RPC_OK) {
                (void) fault_wrap(&fault, 0, "%s", p->resource);
                set_failed(p, &fault);
                return;
        }
        p->client = rpc_client_free(p->client);
        if (p->state != PLUGIN_REGISTERING)
                return; /* ListAndWatch came first */
        p->state = PLUGIN_EXPECTING_LIST;
        p->due = now_of(p) + LISTEN_TIMEOUT;
        wake_work(p);
}

static int register_send(Plugin *p) {
        RpcClientOptions options = {.path = p->kubelet_path, .max_message = 64 * 1024};
        _cleanup_buf_ Buf request = BUF_NULL;
        int r;

        plugin_message_put_register(&request, str_from(p->endpoint), str_from(p->resource));
        r = buf_result(&request);
        if (r == 0)
                r = rpc_client_new(p->event, &options, &p->client);
        if (r == 0)
                r = rpc_call(p->client, "/v1beta1.Registration/Register", buf_str(&request), REGISTER_TIMEOUT,
                             on_register_done, p, NULL);
        return r;
}

static void register_begin(Plugin *p) {
        Fault fault = FAULT_NULL;
        int r;

        p->attempt++;
        p->state = PLUGIN_REGISTERING;
        r = register_send(p);
        if (r == 0)
                return;
        (void) fault_set(&fault, r, "%s: cannot register: %s", p->resource, strerror(-r));
        set_failed(p, &fault);
}

/* ---- the steps of on_work() ---- */

static void on_answered(void *userdata, const RpcMethod *method, usec_t elapsed) {
        const Plugin *p = userdata;

        if (p->handler.on_answered)
                p->handler.on_answered(p->userdata, strrchr(method->path, '/') + 1, elapsed);
}

static int serve_socket(Plugin *p, Fault *fault) {
        const RpcServerOptions options = {.path = p->path,
                                          .methods = methods,
                                          .n_methods = ELEMENTSOF(methods),
                                          .on_answered = on_answered};
        int r;

        p->server = rpc_server_free(p->server);
        r = rpc_server_new(p->event, &options, p, &p->server, fault);
        if (r < 0)
                return r;
        r = plugin_dir_file_id(p->path, &p->socket);
        if (r >= 0)
                return 0;
        p->server = rpc_server_free(p->server);
        return fault_set(fault, r, "%s: %s: %s", p->resource, p->path, strerror(-r));
}

/* Whether another instance lives that took our socket. It keeps the socket: a registration under
 * this name would only disconnect it from the kubelet. */
static bool is_alive(const char *path) {
        _cleanup_close_ int fd = rpc_socket_connect(path);

        return fd >= 0 || fd == -EAGAIN;
}

static int check_socket(Plugin *p, Fault *fault) {
        PluginFileId id = {0};
        int r = plugin_dir_file_id(p->path, &id);

        if (p->server && r >= 0 && plugin_dir_file_id_eq(&id, &p->socket))
                return 0;
        if (p->server && r >= 0 && is_alive(p->path))
                return fault_set(fault, -EADDRINUSE, "%s: another instance has taken %s", p->resource,
                                 p->path);
        r = serve_socket(p, fault);
        if (r < 0)
                return r;
        p->kubelet = (PluginFileId){0}; /* the kubelet knows only the old socket */
        return 0;
}

/* Looks at kubelet.sock. A new one means a new kubelet, which has no registrations. */
static int check_kubelet(Plugin *p, Fault *fault) {
        PluginFileId id = {0};
        int r = plugin_dir_file_id(p->kubelet_path, &id);

        if (r < 0)
                return fault_set(fault, r, "%s: %s: %s", p->resource, p->kubelet_path, strerror(-r));
        if (plugin_dir_file_id_eq(&id, &p->kubelet))
                return 0;
        p->kubelet = id;
        p->delay = 0;
        if (p->attempt > 0)
                (void) fault_set(fault, 0, "%s: the kubelet, or our socket, is there anew", p->resource);
        set_unregistered(p, 0, fault);
        return 0;
}

/* Checks all that registration needs. Returns true when it is there, or while registered. */
static bool check_all(Plugin *p) {
        Fault fault = FAULT_NULL;
        int r = plugin_dir_check(&p->directory);

        if (r < 0)
                (void) fault_set(&fault, r, "%s: %s: %s", p->resource, p->directory.path, strerror(-r));
        if (r >= 0)
                r = check_socket(p, &fault);
        if (r >= 0)
                r = check_kubelet(p, &fault);
        if (r >= 0)
                return true;
        p->kubelet = (PluginFileId){0};
        if (p->state == PLUGIN_REGISTERED)
                return true; /* the kubelet that holds the stream goes on calling us */
        set_unregistered(p, DELAY_MAX, &fault);
        return false;
}

static void proceed_registration(Plugin *p) {
        Fault fault = FAULT_NULL;

        if (!p->listed || now_of(p) < p->due)
                return;
        if (p->state == PLUGIN_UNREGISTERED) {
                register_begin(p);
                return;
        }
        if (p->state != PLUGIN_EXPECTING_LIST)
                return;
        (void) fault_set(&fault, 0, "%s: the kubelet took the registration, but did not call ListAndWatch",
                         p->resource);
        set_failed(p, &fault);
}

static int on_timer(sd_event_source *source, uint64_t now, void *userdata) {
        wake_work(userdata);
        return 0;
}

static void arm_timer(Plugin *p, bool wanted) {
        if (wanted)
                (void) sd_event_source_set_time(p->timer, p->due); /* neither can fail for a live loop */
        (void) sd_event_source_set_enabled(p->timer, wanted ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_work(sd_event_source *source, void *userdata) {
        Plugin *p = userdata;
        bool ready = check_all(p);

        if (ready)
                proceed_registration(p);
        arm_timer(p, p->state == PLUGIN_EXPECTING_LIST ||
                             (p->state == PLUGIN_UNREGISTERED && (p->listed || !ready)));
        notify_owner(p);
        return 0;
}

/* ---- the plugin ---- */

static int make_paths(Plugin *p, const PluginOptions *options) {
        int r = plugin_dir_init(&p->directory, p->event, options->kubelet_dir, "device-plugins", wake_work,
                                p);

        if (r < 0)
                return r;
        if (asprintf(&p->kubelet_path, "%s/kubelet.sock", p->directory.path) < 0)
                p->kubelet_path = NULL; /* undefined otherwise */
        if (asprintf(&p->path, "%s/%s", p->directory.path, options->endpoint) < 0)
                p->path = NULL;
        p->endpoint = str_dup(str_from(options->endpoint));
        p->resource = str_dup(str_from(options->resource));
        return p->kubelet_path && p->path && p->endpoint && p->resource ? 0 : -ENOMEM;
}

static int join_loop(Plugin *p) {
        int r = sd_event_add_defer(p->event, &p->work, on_work, p);

        if (r >= 0)
                r = sd_event_add_time(p->event, &p->timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY, on_timer, p);
        if (r >= 0)
                r = sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
        return r;
}

int plugin_new(sd_event *event, const PluginOptions *options, const PluginHandler *handler, void *userdata,
               Plugin **ret, Fault *fault) {
        _cleanup_(plugin_freep) Plugin *p = calloc(1, sizeof *p);
        int r;

        if (!p)
                return fault_set(fault, -ENOMEM, "out of memory");
        p->event = sd_event_ref(event);
        p->handler = *handler;
        p->userdata = userdata;
        r = make_paths(p, options);
        if (r >= 0)
                r = join_loop(p);
        if (r < 0)
                return fault_set(fault, r, "%s: %s", options->resource, strerror(-r));
        r = serve_socket(p, fault);
        if (r < 0 && r != -ENOENT) /* the directory may come later */
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

Plugin *plugin_free(Plugin *p) {
        if (!p)
                return NULL;
        p->server = rpc_server_free(p->server); /* first, because it ends the streams, which use the rest */
        p->client = rpc_client_free(p->client);
        plugin_dir_done(&p->directory);
        sd_event_source_disable_unref(p->work);
        sd_event_source_disable_unref(p->timer);
        sd_event_unref(p->event);
        buf_done(&p->list);
        free(p->kubelet_path);
        free(p->path);
        free(p->endpoint);
        free(p->resource);
        free(p);
        return NULL;
}

const char *plugin_resource(const Plugin *p) {
        return p->resource;
}
