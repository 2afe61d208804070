/* SPDX-License-Identifier: Apache-2.0 */
#include "local/sync_call.h"

#include <errno.h>

/* Covers errors that last up to about six seconds. */
enum { ATTEMPTS = 8 };
static const usec_t backoff_base = 50 * USEC_PER_MSEC, backoff_cap = 2 * USEC_PER_SEC;

void sync_call_clear(SyncCall *a) {
        buf_done(&a->body);
        *a = SYNC_CALL_NULL;
}

void sync_call_done(void *userdata, const KubeReply *reply) {
        SyncCall *a = userdata;

        a->done = true;
        a->transient = kube_reply_is_transient(reply);
        a->outcome = reply->outcome;
        a->status = reply->status;
        a->retry_after = reply->retry_after;
        a->fault = reply->fault;
        buf_append_str(&a->body, reply->body);
}

int sync_call_wait(SyncCall *a, sd_event *event) {
        while (!a->done) {
                int r = sd_event_run(event, UINT64_MAX); /* the call's own timeout ends the wait */

                if (r < 0)
                        return r;
        }
        return buf_result(&a->body);
}

int sync_call_run(SyncCall *a, KubeClient *client, const KubeRequest *request) {
        int r;

        r = kube_call(client, request, sync_call_done, a, NULL);
        return r < 0 ? r : sync_call_wait(a, kube_client_event(client));
}

int sync_call_pause(sd_event *event, usec_t duration) {
        usec_t until = clock_monotonic_usec() + duration, now;

        while ((now = clock_monotonic_usec()) < until) {
                int r = sd_event_run(event, until - now);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Calls until the answer is final. *a keeps the last answer. */
static int call_again(SyncCall *a, KubeClient *client, const KubeRequest *request, Fault *fault) {
        for (unsigned attempt = 0;; attempt++) {
                int r;

                r = sync_call_run(a, client, request);
                if (r < 0)
                        return r;
                if (sync_call_is_ok(a))
                        return 0;
                if (!a->transient)
                        return fault_set(fault, SYNC_CALL_E_REFUSED, "%s", a->fault.text);
                if (attempt + 1 == ATTEMPTS)
                        return fault_set(fault, -EIO, "%s", a->fault.text);
                r = sync_call_pause(kube_client_event(client),
                                    kube_backoff(attempt, backoff_base, backoff_cap, a->retry_after));
                if (r < 0)
                        return r;
                sync_call_clear(a);
        }
}

int sync_call_get(KubeClient *client, const char *path, json_t **ret, Fault *fault) {
        _cleanup_sync_call_ SyncCall ask = SYNC_CALL_NULL;
        json_t *tree;
        int r;

        r = call_again(&ask, client, &(KubeRequest){.method = "GET", .path = path}, fault);
        if (r != 0)
                return r;
        tree = json_loadb(ask.body.data, ask.body.len, 0, NULL);
        if (!tree)
                return fault_set(fault, -EBADMSG, "GET %s: the answer is not JSON", path);
        *ret = tree;
        return 0;
}

int sync_call_patch(KubeClient *client, const char *path, const json_t *merge_patch, Fault *fault) {
        _cleanup_free_ char *text = json_dumps(merge_patch, JSON_COMPACT);
        _cleanup_sync_call_ SyncCall ask = SYNC_CALL_NULL;

        if (!text)
                return -ENOMEM;
        return call_again(&ask, client,
                          &(KubeRequest){.method = "PATCH",
                                         .path = path,
                                         .content_type = "application/merge-patch+json",
                                         .body = str_from(text)},
                          fault);
}
