/* SPDX-License-Identifier: Apache-2.0 */

/* Against a lister in the same loop, which answers as the test sets it. */

#include "base/buf.h"
#include "net/grpc/rpc_server.h"
#include "node/kubelet/pod_resources.h"
#include "test.h"

#define PREFIX STR("aliyun.com/")

typedef struct Fixture {
        char dir[40], path[64];
        sd_event *event;
        RpcServer *server;
        PodResources *list;
        unsigned begun;   /* received Lists */
        unsigned limited; /* Lists that are still to be refused */
        RpcStatus status; /* if not OK: the answer to the other Lists */
        bool hold;
        RpcCall *held;
        Str message;
} Fixture;

typedef struct Asker {
        Fixture *fixture;
        PodResourcesCall *call;
        unsigned told, pods;
        unsigned begun; /* received Lists at the time of the callback */
        bool ask_again, free_all;
        Fault fault;
} Asker;

static void on_held_closed(void *userdata) {
        ((Fixture *) userdata)->held = NULL;
}

static void handle_list(void *userdata, RpcCall *call, Str message) {
        Fixture *f = userdata;

        f->begun++;
        if (f->limited > 0) {
                f->limited--;
                rpc_fail(call, RPC_RESOURCE_EXHAUSTED, "rejected by rate limit");
        } else if (f->status != RPC_OK) {
                rpc_fail(call, f->status, "as told");
        } else if (f->hold) {
                f->held = call;
                rpc_call_on_close(call, on_held_closed, f);
        } else {
                rpc_reply(call, f->message);
        }
}

static void serve(Fixture *f) {
        static const RpcMethod methods[] = {{"/v1.PodResourcesLister/List", handle_list}};
        RpcServerOptions options = {.path = f->path, .methods = methods, .n_methods = 1};
        Fault fault = FAULT_NULL;

        ASSERT_OK(rpc_server_new(f->event, &options, f, &f->server, &fault));
}

static void begin(Fixture *f) {
        *f = (Fixture){.dir = "/tmp/aliquot-podres-XXXXXX", .message = STR("\x0a\x06\x0a\x01p\x12\x01n")};
        ASSERT_TRUE(mkdtemp(f->dir) != NULL);
        (void) snprintf(f->path, sizeof f->path, "%s/kubelet.sock", f->dir);
        ASSERT_TRUE(sd_event_new(&f->event) >= 0);
        serve(f);
        ASSERT_OK(pod_resources_new(f->event, f->path, PREFIX, &f->list));
}

static void end(Fixture *f) {
        f->list = pod_resources_free(f->list);
        f->server = rpc_server_free(f->server);
        f->event = sd_event_unref(f->event);
        ASSERT_OK(rmdir(f->dir));
}

#define turn_until(f, condition)                                                                             \
        do {                                                                                                 \
                usec_t end_ = clock_monotonic_usec() + 100 * USEC_PER_SEC;                                   \
                while (!(condition)) {                                                                       \
                        if (clock_monotonic_usec() > end_)                                                   \
                                TEST_FAIL_("100 s have passed without: %s", #condition);                     \
                        ASSERT_TRUE(sd_event_run((f)->event, 10000) >= 0);                                   \
                }                                                                                            \
        } while (0)

static void ask(Asker *a, usec_t timeout);

static void on_told(void *userdata, const PodList *list, const Fault *fault) {
        Asker *a = userdata;

        a->told++;
        a->call = NULL;
        a->begun = a->fixture->begun;
        if (list)
                a->pods = (unsigned) list->n;
        else
                a->fault = *fault;
        if (a->ask_again) {
                a->ask_again = false;
                ask(a, 0);
        }
        if (a->free_all)
                a->fixture->list = pod_resources_free(a->fixture->list);
}

static void ask(Asker *a, usec_t timeout) {
        unsigned told = a->told;

        ASSERT_OK(pod_resources_list(a->fixture->list, timeout, on_told, a, &a->call));
        ASSERT_INT(a->told, told);
}

static void lists(void) {
        Fixture f;
        Asker a = {.fixture = &f};

        begin(&f);
        ask(&a, 0);
        turn_until(&f, a.told);
        ASSERT_INT(a.pods, 1);
        ASSERT_INT(pod_resources_counters(f.list).lists, 1);
        ASSERT_INT(pod_resources_counters(f.list).failed, 0);
        end(&f);
}

/* Callers that ask while a List is under way share the next one. */
static void shares_only_later_lists(void) {
        Fixture f;
        Asker first = {.fixture = &f}, later[3] = {{.fixture = &f}, {.fixture = &f}, {.fixture = &f}};

        begin(&f);
        f.hold = true;
        ask(&first, 0);
        turn_until(&f, f.held);
        for (size_t i = 0; i < ELEMENTSOF(later); i++)
                ask(&later[i], 0);
        f.hold = false;
        rpc_reply(f.held, f.message);
        turn_until(&f, later[0].told && later[1].told && later[2].told);
        ASSERT_INT(first.begun, 1);
        for (size_t i = 0; i < ELEMENTSOF(later); i++)
                ASSERT_INT(later[i].begun, 2);
        ASSERT_INT(f.begun, 2);
        end(&f);
}

static void repeats_when_rate_limited(void) {
        Fixture f;
        Asker first = {.fixture = &f}, second = {.fixture = &f};

        begin(&f);
        f.limited = 5;
        ask(&first, 0);
        turn_until(&f, f.limited < 3);
        ask(&second, 0); /* before the List that succeeds: it answers both */
        turn_until(&f, first.told && second.told);
        ASSERT_INT(first.pods, 1);
        ASSERT_INT(second.pods, 1);
        ASSERT_INT(f.begun, 6);
        ASSERT_INT(pod_resources_counters(f.list).limited, 5);
        ASSERT_INT(pod_resources_counters(f.list).lists, 6);
        end(&f);
}

static void waits_for_a_kubelet(void) {
        Fixture f;
        Asker a = {.fixture = &f};

        begin(&f);
        f.server = rpc_server_free(f.server);
        ask(&a, 0);
        turn_until(&f, pod_resources_counters(f.list).lists >= 3);
        ASSERT_INT(a.told, 0);
        serve(&f);
        turn_until(&f, a.told);
        ASSERT_INT(a.pods, 1);
        end(&f);
}

/* The connection to a kubelet that has ended is not used again. */
static void finds_the_next_kubelet(void) {
        Fixture f;
        Asker a = {.fixture = &f};

        begin(&f);
        f.hold = true;
        ask(&a, 0);
        turn_until(&f, f.held);
        f.server = rpc_server_free(f.server);
        f.hold = false;
        serve(&f);
        turn_until(&f, a.told);
        ASSERT_INT(a.pods, 1);
        end(&f);
}

static void reports_the_fault_at_the_deadline(void) {
        Fixture f;
        Asker limited = {.fixture = &f}, held = {.fixture = &f};

        begin(&f);
        f.limited = 1000000;
        /* a loaded machine may not have answered once when the deadline comes */
        for (usec_t wait = 50 * USEC_PER_MSEC;
             wait < 10 * USEC_PER_SEC && !strstr(limited.fault.text, "rejected by rate limit"); wait *= 2) {
                limited.told = 0;
                ask(&limited, wait);
                turn_until(&f, limited.told);
        }
        ASSERT_CONTAINS(limited.fault.text, "no answer in time");
        ASSERT_CONTAINS(limited.fault.text, "rejected by rate limit");
        f.limited = 0;
        f.hold = true;
        ask(&held, 50 * USEC_PER_MSEC);
        turn_until(&f, held.told);
        ASSERT_TRUE(held.fault.text[0]);
        f.hold = false;
        held.told = 0;
        ask(&held, 0); /* the next call is served */
        turn_until(&f, held.told);
        ASSERT_INT(held.pods, 1);
        end(&f);
}

/* As a process that was stopped beyond its deadlines: the answer has arrived by then. Reading it
 * takes several turns of the loop. False: on a loaded machine the deadline passed before the List
 * had come. */
static bool uses_an_answer_that_came_within(usec_t wait) {
        _cleanup_buf_ Buf list = BUF_NULL;
        Fixture f;
        Asker a = {.fixture = &f};
        unsigned n = 0;
        usec_t since;
        bool came;

        begin(&f);
        for (; list.len < 128 * 1024; n++)
                buf_append_str(&list, f.message);
        ASSERT_OK(buf_result(&list));
        f.message = buf_str(&list);
        since = clock_monotonic_usec();
        ask(&a, wait);
        turn_until(&f, f.begun || a.told);
        came = !a.told;
        while (clock_monotonic_usec() < since + 2 * wait)
                (void) usleep(1000);
        turn_until(&f, a.told);
        if (came) {
                ASSERT_TEXT(a.fault.text, "");
                ASSERT_INT(a.pods, n);
        }
        end(&f);
        return came;
}

static void uses_an_answer_that_came_in_time(void) {
        usec_t wait = 100 * USEC_PER_MSEC;

        while (!uses_an_answer_that_came_within(wait) && wait < 10 * USEC_PER_SEC)
                wait *= 2;
}

static void other_errors_are_final(void) {
        Fixture f;
        Asker a = {.fixture = &f};

        begin(&f);
        f.status = RPC_UNIMPLEMENTED;
        ask(&a, 0);
        turn_until(&f, a.told);
        ASSERT_CONTAINS(a.fault.text, "UNIMPLEMENTED");
        f.status = RPC_OK;
        f.message = STR("\x0a\x7f");
        ask(&a, 0);
        turn_until(&f, a.told == 2);
        ASSERT_CONTAINS(a.fault.text, "malformed");
        ASSERT_INT(f.begun, 2);
        ASSERT_INT(pod_resources_counters(f.list).failed, 2);
        end(&f);
}

static void the_callback_may_ask_again(void) {
        Fixture f;
        Asker a = {.fixture = &f, .ask_again = true}, b = {.fixture = &f};

        begin(&f);
        ask(&a, 0);
        ask(&b, 0);
        turn_until(&f, a.told == 2 && b.told == 1);
        end(&f);
}

static void freed_calls_get_no_callback(void) {
        Fixture f;
        Asker a = {.fixture = &f}, b = {.fixture = &f}, c = {.fixture = &f};

        begin(&f);
        f.hold = true;
        ask(&a, 0);
        turn_until(&f, f.held);
        ask(&b, 0);
        ask(&c, 0);
        pod_resources_call_free(a.call);
        pod_resources_call_free(b.call);
        f.hold = false;
        rpc_reply(f.held, f.message);
        turn_until(&f, c.told);
        ASSERT_INT(a.told + b.told, 0);
        end(&f);
}

static void the_callback_may_free_the_object(void) {
        Fixture f;
        Asker a = {.fixture = &f, .free_all = true}, b = {.fixture = &f},
              late = {.fixture = &f, .free_all = true};

        begin(&f);
        f.hold = true;
        ask(&a, 0);
        turn_until(&f, f.held);
        ask(&b, 0);
        rpc_reply(f.held, f.message);
        turn_until(&f, a.told);
        ASSERT_TRUE(!f.list);
        ASSERT_INT(b.told, 0);
        ASSERT_OK(pod_resources_new(f.event, f.path, PREFIX, &f.list));
        ask(&late, 20 * USEC_PER_MSEC);
        turn_until(&f, late.told); /* at its deadline */
        ASSERT_TRUE(!f.list);
        end(&f);
}

static void refuses_long_paths(void) {
        char path[200];
        PodResources *p;
        sd_event *event = NULL;

        memset(path, 'x', sizeof path);
        path[sizeof path - 1] = '\0';
        ASSERT_TRUE(sd_event_new(&event) >= 0);
        ASSERT_TRUE(pod_resources_new(event, path, PREFIX, &p) < 0);
        sd_event_unref(event);
}

int main(void) {
        return TEST_MAIN(TEST(lists), TEST(shares_only_later_lists), TEST(repeats_when_rate_limited),
                         TEST(waits_for_a_kubelet), TEST(finds_the_next_kubelet),
                         TEST(reports_the_fault_at_the_deadline), TEST(uses_an_answer_that_came_in_time),
                         TEST(other_errors_are_final), TEST(the_callback_may_ask_again),
                         TEST(freed_calls_get_no_callback), TEST(the_callback_may_free_the_object),
                         TEST(refuses_long_paths));
}
