/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/reflector.h"
#include "store_fixture.h"
#include "wire/pod.h"

/* A view as an owner keeps it: names, with a mark for the comparison. */
typedef struct View {
        struct {
                char name[32];
                char label[32];
                bool seen;
        } pods[512];
        size_t n;
        unsigned lists, troubles, events;
        Fault last;
} View;

static void on_begin(void *userdata) {
        View *v = userdata;

        for (size_t i = 0; i < v->n; i++)
                v->pods[i].seen = false;
}

static void remove_pod(View *v, size_t i) {
        v->pods[i] = v->pods[--v->n];
}

static void on_object(void *userdata, ReflectorEvent event, Str object) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        View *v = userdata;
        Fault fault = FAULT_NULL;
        Pod pod;
        size_t i = 0;

        v->events++;
        if (pod_decode(object, &arena, &pod, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
        while (i < v->n && !str_eq(str_from(v->pods[i].name), pod.meta.name))
                i++;
        if (event == REFLECTOR_DELETED) {
                if (i < v->n)
                        remove_pod(v, i);
                return;
        }
        if (i == v->n)
                v->n++;
        ASSERT_TRUE(v->n < ELEMENTSOF(v->pods));
        (void) snprintf(v->pods[i].name, sizeof v->pods[i].name, STR_FMT, STR_ARG(pod.meta.name));
        (void) snprintf(v->pods[i].label, sizeof v->pods[i].label, STR_FMT, STR_ARG(pod.gpu_count_label));
        v->pods[i].seen = true;
}

static void on_end(void *userdata) {
        View *v = userdata;

        for (size_t i = 0; i < v->n;)
                if (v->pods[i].seen)
                        i++;
                else
                        remove_pod(v, i);
        v->lists++;
}

static void on_trouble(void *userdata, const Fault *fault) {
        View *v = userdata;

        v->troubles++;
        v->last = *fault;
}

static const ReflectorHandler handler = {on_begin, on_object, on_end, on_trouble};

static void begin(Fixture *f, View *v, Reflector **ret, unsigned page, size_t history) {
        *v = (View){0};
        fixture_begin(f, history);

        for (int i = 0; i < 7; i++) {
                char name[16];
                (void) snprintf(name, sizeof name, "p%d", i);
                apply_pod(f, name);
        }
        ASSERT_OK(reflector_new(
                f->client,
                &(ReflectorOptions){
                        .path = "/api/v1/pods", .page = page, .backoff = 1000, .backoff_cap = 2000},
                &handler, v, ret));
}

static bool has(const View *v, const char *name) {
        for (size_t i = 0; i < v->n; i++)
                if (strcmp(v->pods[i].name, name) == 0)
                        return true;
        return false;
}

static void delete_pod(Fixture *f, const char *name) {
        char path[64];
        Answer a = {0};

        (void) snprintf(path, sizeof path, "/api/v1/namespaces/default/pods/%s?gracePeriodSeconds=0", name);
        ASSERT_OK(
                kube_call(f->client, &(KubeRequest){.method = "DELETE", .path = path}, on_answer, &a, NULL));
        TURN_UNTIL(f, a.n == 1);
        ASSERT_INT(a.status, 200);
}

static void lists_in_pages_and_follows(void) {
        Reflector *r;
        Fixture f;
        View v;

        begin(&f, &v, &r, 3, 0);
        ASSERT_FALSE(reflector_in_sync(r));
        TURN_UNTIL(&f, reflector_in_sync(r));
        ASSERT_INT(v.n, 7);
        apply_pod(&f, "new");
        TURN_UNTIL(&f, has(&v, "new"));
        delete_pod(&f, "p3");
        TURN_UNTIL(&f, !has(&v, "p3"));
        ASSERT_INT(v.n, 7);
        ASSERT_INT(v.lists, 1);
        ASSERT_INT(v.troubles, 0);
        (void) reflector_free(r);
        fixture_end(&f);
}

static void resumes_after_a_cut_in_the_middle_of_a_line(void) {
        Reflector *r;
        Fixture f;
        View v;

        begin(&f, &v, &r, 0, 0);
        TURN_UNTIL(&f, reflector_in_sync(r));
        ASSERT_OK(store_inject(f.store, &(StoreFault){.kind = STORE_FAULT_CUT_WATCH, .count = 1}));
        apply_pod(&f, "half"); /* its line is cut */
        apply_pod(&f, "next");
        TURN_UNTIL(&f, has(&v, "half") && has(&v, "next"));
        ASSERT_INT(v.lists, 1); /* resumed, not listed again */
        ASSERT_INT(v.n, 9);
        (void) reflector_free(r);
        fixture_end(&f);
}

static void lists_again_when_its_version_is_forgotten(void) {
        Reflector *r;
        Fixture f;
        View v;

        begin(&f, &v, &r, 0, 0);
        TURN_UNTIL(&f, reflector_in_sync(r));
        ASSERT_OK(store_vanish(f.store, true));
        TURN_UNTIL(&f, v.troubles > 2);
        apply_pod(&f, "meanwhile");
        store_forget_history(f.store);
        ASSERT_OK(store_vanish(f.store, false));
        TURN_UNTIL(&f, v.lists == 2);
        ASSERT_TRUE(has(&v, "meanwhile"));
        ASSERT_INT(v.n, 8);
        delete_pod(&f, "p0");
        TURN_UNTIL(&f, !has(&v, "p0"));
        (void) reflector_free(r);
        fixture_end(&f);
}

static void what_was_deleted_meanwhile_is_dropped_by_the_compare(void) {
        Reflector *r;
        Fixture f;
        View v;

        begin(&f, &v, &r, 2, 0);
        TURN_UNTIL(&f, reflector_in_sync(r));
        /* The next watch is refused as expired, and the pod is deleted before the list. */
        ASSERT_OK(store_inject(f.store, &(StoreFault){.kind = STORE_FAULT_CUT_WATCH, .count = 1}));
        ASSERT_OK(store_inject(f.store, &(StoreFault){.kind = STORE_FAULT_STATUS,
                                                      .method = "GET",
                                                      .path_prefix = "/api/v1/pods",
                                                      .count = 1,
                                                      .status = 410}));
        delete_pod(&f, "p5");
        TURN_UNTIL(&f, v.lists == 2);
        ASSERT_FALSE(has(&v, "p5"));
        ASSERT_INT(v.n, 6);
        (void) reflector_free(r);
        fixture_end(&f);
}

static void bears_a_list_that_breaks_off(void) {
        Reflector *r;
        Fixture f;
        View v;

        begin(&f, &v, &r, 2, 0);
        ASSERT_OK(store_inject(f.store, &(StoreFault){.kind = STORE_FAULT_STATUS,
                                                      .method = "GET",
                                                      .count = 2,
                                                      .status = 429,
                                                      .retry_after = 0}));
        ASSERT_OK(store_inject(f.store, &(StoreFault){.kind = STORE_FAULT_CUT, .method = "GET", .count = 2}));
        ASSERT_OK(store_inject(
                f.store,
                &(StoreFault){.kind = STORE_FAULT_STATUS, .method = "GET", .count = 1, .status = 500}));
        TURN_UNTIL(&f, reflector_in_sync(r));
        ASSERT_INT(v.n, 7);
        ASSERT_TRUE(v.troubles >= 4);
        (void) reflector_free(r);
        fixture_end(&f);
}

static void a_continue_token_that_expires_begins_the_list_anew(void) {
        Reflector *r;
        Fixture f;
        View v;

        begin(&f, &v, &r, 3, 0);
        TURN_UNTIL(&f, v.events >= 3); /* the first page is here */
        ASSERT_OK(store_inject(
                f.store,
                &(StoreFault){.kind = STORE_FAULT_STATUS, .method = "GET", .count = 1, .status = 410}));
        TURN_UNTIL(&f, reflector_in_sync(r));
        ASSERT_INT(v.n, 7);
        ASSERT_INT(v.lists, 1);
        (void) reflector_free(r);
        fixture_end(&f);
}

static void dies_in_the_middle_of_anything(void) {
        for (unsigned turns = 0; turns < 25; turns++) {
                Reflector *r;
                Fixture f;
                View v;

                begin(&f, &v, &r, 2, 0);
                for (unsigned i = 0; i < turns; i++)
                        ASSERT_TRUE(sd_event_run(f.event, 1000) >= 0);
                (void) reflector_free(r);
                fixture_end(&f);
        }
}

int main(void) {
        return TEST_MAIN(TEST(lists_in_pages_and_follows), TEST(resumes_after_a_cut_in_the_middle_of_a_line),
                         TEST(lists_again_when_its_version_is_forgotten),
                         TEST(what_was_deleted_meanwhile_is_dropped_by_the_compare),
                         TEST(bears_a_list_that_breaks_off),
                         TEST(a_continue_token_that_expires_begins_the_list_anew),
                         TEST(dies_in_the_middle_of_anything));
}
