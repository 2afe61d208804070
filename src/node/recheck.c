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
        unsigned missing[OFFERED_RESOURCES_]; /* checks in a row that found the resource missing */
};

static void check_after(Recheck *r, usec_t delay) {
        (void) sd_event_source_set_time_relative(r->timer, delay); /* neither can fail for a live loop */
        (void) sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

/* Returns true when the next check is due soon. */
static bool judge(Recheck *r, OfferedResource resource, Str message) {
        size_t expected = r->o.expected(r->o.userdata, resource), listed = 0;
        Fault why = FAULT_NULL;

        if (expected == 0 ||
            allocatable_count(message, str_from(device_offered_name(resource)), &listed, NULL) != 0 ||
            listed > 0) {
                r->missing[resource] = 0;
                return false;
        }
        if (++r->missing[resource] < TIMES)
                return true;
        r->missing[resource] = 0;
        (void) fault_set(&why, 0, "the kubelet lists none of the %zu devices of %s, and did not say why",
                         expected, device_offered_name(resource));
        r->o.on_missing(r->o.userdata, resource, &why);
        return false;
}

static void on_reply(void *userdata, const RpcReply *reply) {
        Recheck *r = userdata;
        bool soon = false;

        r->flight = NULL;
        if (reply->status == RPC_UNIMPLEMENTED)
                return;
        for (int i = 0; reply->status == RPC_OK && i < OFFERED_RESOURCES_; i++)
                soon |= judge(r, (OfferedResource) i, reply->message);
        /* This replaces the time that recheck_soon() set during on_missing. The new registration
         * calls it again. */
        check_after(r, soon ? SOON : PERIOD);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Recheck *r = userdata;
        bool wanted = false;

        for (int i = 0; i < OFFERED_RESOURCES_; i++)
                wanted |= r->o.expected(r->o.userdata, (OfferedResource) i) > 0;
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
