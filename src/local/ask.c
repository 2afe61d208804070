/* SPDX-License-Identifier: Apache-2.0 */
#include "local/ask.h"

#include <errno.h>

void ask_done(void *userdata, const KubeReply *reply) {
        Ask *a = userdata;

        a->done = true;
        a->outcome = reply->outcome;
        a->status = reply->status;
        a->fault = reply->fault;
        buf_append_str(&a->body, reply->body);
}

int ask_wait(Ask *a, sd_event *event) {
        while (!a->done) {
                int r = sd_event_run(event, UINT64_MAX); /* the call's own timeout ends it */

                if (r < 0)
                        return r;
        }
        return buf_result(&a->body);
}

int ask_call(Ask *a, KubeClient *client, const KubeRequest *request) {
        int r;

        r = kube_call(client, request, ask_done, a, NULL);
        return r < 0 ? r : ask_wait(a, kube_client_event(client));
}
