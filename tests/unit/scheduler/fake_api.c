/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_api.h"

#include "kube/status.h"

struct KubeClient {
        sd_event *event;
};

struct KubeCall {
        KubeCall *next;
        FakeKind kind;
        char *name, *uid, *node, *annotations, *labels;
        KubeDone done;
        void *userdata;
};

static struct {
        KubeClient client;
        KubeCall *calls; /* oldest first */
        unsigned n_events;
        bool backs_off;
        char note[1024];
} fake;

KubeClient *fake_client(sd_event *event) {
        fake.client.event = event;
        return &fake.client;
}

sd_event *kube_client_event(const KubeClient *c) {
        return c->event;
}

static int add(FakeKind kind, const KubeBinding *b, KubeDone done, void *userdata, KubeCall **ret) {
        KubeCall *call = calloc(1, sizeof *call), **end = &fake.calls;

        *call = (KubeCall){
                .kind = kind,
                .name = str_dup(b->name),
                .uid = str_dup(b->uid),
                .node = str_dup(b->node),
                .annotations = str_dup(b->annotations),
                .labels = str_dup(b->labels),
                .done = done,
                .userdata = userdata,
        };
        while (*end)
                end = &(*end)->next;
        *end = call;
        if (ret)
                *ret = call;
        return 0;
}

int kube_get_pod(KubeClient *c, Str namespace_, Str name, KubeDone done, void *userdata, KubeCall **ret) {
        return add(FAKE_GET, &(KubeBinding){.name = name}, done, userdata, ret);
}

int kube_bind(KubeClient *c, const KubeBinding *b, KubeDone done, void *userdata, KubeCall **ret) {
        return add(FAKE_BIND, b, done, userdata, ret);
}

int kube_evict(KubeClient *c, Str namespace_, Str name, Str uid, KubeDone done, void *userdata,
               KubeCall **ret) {
        return add(FAKE_EVICT, &(KubeBinding){.name = name, .uid = uid}, done, userdata, ret);
}

int kube_merge_patch(KubeClient *c, const char *path, const char *subresource, Str patch,
                     Str resource_version, KubeDone done, void *userdata, KubeCall **ret) {
        return add(FAKE_PATCH, &(KubeBinding){.name = str_from(path), .annotations = patch}, done, userdata,
                   ret);
}

int kube_call(KubeClient *c, const KubeRequest *request, KubeDone done, void *userdata, KubeCall **ret) {
        FakeKind kind = strcmp(request->method, "GET") == 0 ? FAKE_GET : FAKE_PATCH;

        return add(kind, &(KubeBinding){.name = str_from(request->path), .annotations = request->body}, done,
                   userdata, ret);
}

/* Status objects are decoded by src/kube, which is not linked here. The evictor reads only
 * `code`. */
bool kube_status_decode(Str json, Arena *arena, KubeStatus *ret) {
        ret->code = memmem(json.data, json.len, "\"code\":500", 10) ? 500 : 201;
        return json.len > 0;
}

KubeCall *kube_call_free(KubeCall *call) {
        KubeCall **at = &fake.calls;

        if (!call)
                return NULL;
        while (*at && *at != call)
                at = &(*at)->next;
        if (*at)
                *at = call->next;
        free(call->name);
        free(call->uid);
        free(call->node);
        free(call->annotations);
        free(call->labels);
        free(call);
        return NULL;
}

bool kube_reply_is_transient(const KubeReply *reply) {
        return reply->outcome != KUBE_DONE || reply->status == 429 || reply->status >= 500;
}

usec_t kube_backoff(unsigned attempt, usec_t base, usec_t cap, usec_t retry_after) {
        usec_t ceiling = base;

        if (!fake.backs_off)
                return 1;
        if (retry_after > 0)
                return retry_after < cap ? retry_after : cap;
        while (attempt-- > 0 && ceiling < cap)
                ceiling *= 2;
        return (ceiling < cap ? ceiling : cap) / 2; /* the mean of the real delay */
}

void kube_event(KubeEventRecorder *r, const KubeEvent *event) {
        fake.n_events++;
        (void) snprintf(fake.note, sizeof fake.note, "%s", event->note);
}

void fake_back_off(void) {
        fake.backs_off = true;
}

unsigned fake_n_events(void) {
        return fake.n_events;
}

const char *fake_last_note(void) {
        return fake.note;
}

KubeCall *fake_call(FakeKind kind) {
        for (KubeCall *call = fake.calls; call; call = call->next)
                if (call->kind == kind)
                        return call;
        return NULL;
}

size_t fake_n_calls(void) {
        size_t n = 0;

        for (KubeCall *call = fake.calls; call; call = call->next)
                n++;
        return n;
}

const char *fake_name(const KubeCall *call) {
        return call->name;
}

const char *fake_uid(const KubeCall *call) {
        return call->uid;
}

const char *fake_node(const KubeCall *call) {
        return call->node;
}

const char *fake_annotations(const KubeCall *call) {
        return call->annotations;
}

const char *fake_labels(const KubeCall *call) {
        return call->labels;
}

void fake_reply(KubeCall *call, KubeOutcome outcome, unsigned status, const char *body) {
        KubeReply reply = {.outcome = outcome, .status = status, .body = str_from(body), .reason = ""};

        (void) snprintf(reply.fault.text, sizeof reply.fault.text, "the API server said %u", status);
        call->done(call->userdata, &reply);
        (void) kube_call_free(call);
}
