/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/policy_probe.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "wire/json_field.h"

#define LOOK_AGAIN  (60 * USEC_PER_SEC)
#define RETRY_FIRST (200 * USEC_PER_MSEC)

/* Answers with an error after which the API group counts as failing, some 10 s later. */
enum { TRIES = 7 };

struct PolicyProbe {
        KubeClient *client;
        void (*on_known)(void *userdata, bool served);
        void *userdata;
        sd_event_source *timer;
        KubeCall *call;
        unsigned attempt;   /* requests in a row without a usable answer */
        bool known, served; /* known: there was an answer; served: what it said */
};

static int ask(PolicyProbe *p);

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PolicyProbe *p = userdata;

        p->timer = sd_event_source_disable_unref(p->timer);
        if (ask(p) < 0)
                log_error("out of memory: " POLICY_RESOURCE " are not looked for any more");
        return 0;
}

static void ask_later(PolicyProbe *p, usec_t delay) {
        if (sd_event_add_time_relative(kube_client_event(p->client), &p->timer, CLOCK_MONOTONIC, delay, 0,
                                       on_timer, p) < 0)
                log_error("out of memory: " POLICY_RESOURCE " are not looked for any more");
}

/* ---- the answer, an APIResourceList ---- */

typedef struct Resources {
        bool found;
} Resources;

static const JsonField name_fields[] = {{STR("name"), json_field_str, 0}};

static void read_resources(JsonReader *r, Arena *arena, void *ret) {
        JSON_EACH_ELEMENT(r) {
                Str name = {NULL, 0};

                json_field_decode(r, arena, name_fields, ELEMENTSOF(name_fields), &name);
                ((Resources *) ret)->found |= str_eq(name, STR(POLICY_RESOURCE));
        }
}

static const JsonField list_fields[] = {JSON_NESTED("resources", read_resources)};

static bool has_policies(Str body) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Resources list = {0};

        return json_field_read(body, &arena, list_fields, ELEMENTSOF(list_fields), &list, NULL) == 0 &&
               list.found;
}

static void learn(PolicyProbe *p, bool served) {
        bool news = !p->known || p->served != served;

        if (p->known && news)
                log_info(POLICY_RESOURCE " %s", served ? "are served now" : "are not served any more");
        p->known = true;
        p->served = served;
        p->attempt = 0;
        ask_later(p, LOOK_AGAIN);
        if (news)
                p->on_known(p->userdata, served); /* may free the probe */
}

/* Without the right to ask, or with an API group that fails, policies count as not served. */
static void on_answer(void *userdata, const KubeReply *reply) {
        PolicyProbe *p = userdata;
        bool fails = reply->outcome == KUBE_DONE && reply->status >= 500 && !p->known && p->attempt >= TRIES;

        p->call = NULL;
        if (kube_reply_is_transient(reply) && !fails) {
                ask_later(p, p->known ? LOOK_AGAIN
                                      : RETRY_FIRST + kube_backoff(p->attempt++, RETRY_FIRST,
                                                                   10 * USEC_PER_SEC, reply->retry_after));
                return;
        }
        if (reply->status != 200 && reply->status != 404 && !p->known)
                log_warning("it cannot be told whether " POLICY_RESOURCE " are served: %s",
                            reply->fault.text);
        learn(p, reply->status == 200 && has_policies(reply->body));
}

static int ask(PolicyProbe *p) {
        return kube_call(p->client, &(KubeRequest){.method = "GET", .path = POLICY_GROUP_PATH}, on_answer, p,
                         &p->call);
}

int policy_probe_new(KubeClient *client, void (*on_known)(void *userdata, bool served), void *userdata,
                     PolicyProbe **ret) {
        _cleanup_(policy_probe_freep) PolicyProbe *p = calloc(1, sizeof *p);

        if (!p)
                return -ENOMEM;
        p->client = client;
        p->on_known = on_known;
        p->userdata = userdata;
        if (ask(p) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(p);
        return 0;
}

PolicyProbe *policy_probe_free(PolicyProbe *p) {
        if (!p)
                return NULL;
        kube_call_free(p->call);
        sd_event_source_disable_unref(p->timer);
        free(p);
        return NULL;
}
