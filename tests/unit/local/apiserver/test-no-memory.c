/* SPDX-License-Identifier: Apache-2.0 */

/* Every allocation fails once, one at a time, through the life of a pod. The request that meets it
 * is answered by 500 and has changed nothing. The same request succeeds when it is repeated. */

#include "call.h"
#include "failing.h"

#define PODS "/api/v1/namespaces/default/pods"

static const struct {
        const char *method, *url, *body;
        unsigned status;
} life[] = {
        {"POST", PODS,
         "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
         "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":3},\"requests\":{\"aliyun.com/gpu-mem\":3}}}]}}",
         201},
        {"POST", PODS,
         "{\"metadata\":{\"generateName\":\"b-\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}", 201},
        {"GET", "/api/v1/pods?labelSelector=x in (y,z)&fieldSelector=spec.nodeName=", "", 200},
        {"POST", PODS "/a/binding",
         "{\"metadata\":{\"annotations\":{\"k\":\"v\"}},\"target\":{\"kind\":\"Node\",\"name\":\"n\"}}", 201},
        {"PATCH", PODS "/a", "{\"metadata\":{\"annotations\":{\"k\":\"w\",\"l\":null}}}", 200},
        {"PATCH", PODS "/a/status", "{\"status\":{\"phase\":\"Running\"}}", 200},
        {"PUT", PODS "/a",
         "{\"spec\":{\"schedulerName\":\"default-scheduler\",\"nodeName\":\"n\",\"containers\":[{\"name\":"
         "\"c\","
         "\"image\":\"i\",\"resources\":{\"requests\":{\"aliyun.com/gpu-mem\":3},\"limits\":{\"aliyun.com/"
         "gpu-mem\":3}}}]}}",
         200},
        {"GET", PODS "/a", "", 200},
        {"DELETE", PODS "/a", "", 200},
        {"DELETE", PODS "/a", "{\"gracePeriodSeconds\":0}", 200},
        {"GET", PODS "/a", "", 404},
        {"GET", "/apis", "", 200},
};

static unsigned answer(StoreApi *api, size_t step) {
        StoreReply reply = STORE_REPLY_NULL;
        StoreQuery query;
        StoreCall call = store_call(&query, life[step].method, life[step].url, str_from(life[step].body));

        store_answer(api, &call, &reply);
        buf_done(&reply.body);
        return reply.status;
}

/* Returns false when the pod's life ended before the countdown. */
static bool live(unsigned failing) {
        StoreApi api;
        int r;

        countdown = failing;
        while ((r = store_api_init(&api, 4, 1)) < 0)
                store_api_done(&api);
        api.now = 1700000000;
        for (size_t i = 0; i < ELEMENTSOF(life); i++) {
                uint64_t before = store_version(api.objects);
                bool met = countdown > 0;
                unsigned status = answer(&api, i);

                met = met && countdown == 0;
                if (met && status == 500) {
                        ASSERT_INT(store_version(api.objects), before);
                        status = answer(&api, i);
                }
                ASSERT_INT(status, life[i].status);
        }
        store_api_done(&api);
        return countdown == 0;
}

static void survives_each_failure(void) {
        unsigned n = 1;

        while (live(n))
                n++;
        countdown = 0;
        ASSERT_TRUE(n > 50); /* many allocations did happen */
}

int main(void) {
        return TEST_MAIN(TEST(survives_each_failure));
}
