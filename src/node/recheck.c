/* SPDX-License-Identifier: Apache-2.0 */
#include "node/recheck.h"

#include <errno.h>

#include "base/clock.h"
#include "net/grpc/rpc_client.h"
#include "node/kubelet/allocatable.h"

#define SOON     (5 * USEC_PER_SEC)
#define PERIOD   (60 * USEC_PER_SEC)
#define ACCURACY USEC_PER_SEC

enum { TIMES = 2 };

struct Recheck {
        RecheckOptions o;
        RpcClient *client;
        RpcRequest *flight;
        sd_event_source *timer;
        unsigned missing[DEVICE_KINDS_]; /* in a row */
};

static void check_after(Recheck *r, usec_t delay) {
        (void) sd_event_source_set_time_relative(r->timer, delay); /* neither can fail for a live loop */
        (void) sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

/* Returns true when the next check is due soon. */
static bool judge(Recheck *r, DeviceKind kind, Str message) {
        size_t expected = r->o.expected(r->o.userdata, kind), listed = 0;
        Fault why = FAULT_NULL;

        if (expected == 0 ||
            allocatable_count(message, str_from(device_resource(kind)), &listed, NULL) != 0 || listed > 0) {
                r->missing[kind] = 0;
                return false;
        }
        if (++r->missing[kind] < TIMES)
                return true;
        r->missing[kind] = 0;
        (void) fault_set(&why, 0, "the kubelet lists none of the %zu devices of %s, and did not say why",
                         expected, device_resource(kind));
        r->o.on_missing(r->o.userdata, kind, &why);
        return false;
}

static void on_reply(void *userdata, const RpcReply *reply) {
        Recheck *r = userdata;
        bool soon = false;

        r->flight = NULL;
        if (reply->status == RPC_UNIMPLEMENTED)
                return;
        for (int kind = 0; reply->status == RPC_OK && kind < DEVICE_KINDS_; kind++)
                soon |= judge(r, (DeviceKind) kind, reply->message);
        /* This replaces the time that recheck_soon() set during on_missing. The new registration
         * calls it again. */
        check_after(r, soon ? SOON : PERIOD);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Recheck *r = userdata;
        bool wanted = false;

        for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                wanted |= r->o.expected(r->o.userdata, (DeviceKind) kind) > 0;
        if (r->flight)
                return 0; /* its reply sets the timer */
        if (!wanted || rpc_call(r->client, ALLOCATABLE_METHOD, (Str){0}, 0, on_reply, r, &r->flight) < 0)
                check_after(r, PERIOD);
        return 0;
}

void recheck_soon(Recheck *r) {
        if (!r->flight)
                check_after(r, SOON);
}

int recheck_new(const RecheckOptions *options, Recheck **ret) {
        _cleanup_(recheck_freep) Recheck *r = calloc(1, sizeof *r);
        int e;

        if (!r)
                return -ENOMEM;
        r->o = *options;
        e = rpc_client_new(options->event, &(RpcClientOptions){.path = options->socket}, &r->client);
        if (e == 0)
                e = sd_event_add_time(options->event, &r->timer, CLOCK_MONOTONIC, 0, ACCURACY, on_timer, r);
        if (e >= 0)
                e = sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
        if (e < 0)
                return e;
        *ret = TAKE_PTR(r);
        return 0;
}

Recheck *recheck_free(Recheck *r) {
        if (!r)
                return NULL;
        rpc_client_free(r->client); /* ends the call as well */
        sd_event_source_disable_unref(r->timer);
        free(r);
        return NULL;
}
