/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"
#include "random.h"
#include "test.h"

/* The store without sockets: one request in, one answer out. */

static StoreApi api;
static StoreReply reply;

static void begin(size_t history) {
        ASSERT_OK(store_api_init(&api, history, 42));
        api.now = 1700000000;
}

static void end(void) {
        buf_done(&reply.body);
        store_api_done(&api);
}

static unsigned call(const char *method, const char *url, const char *body) {
        StoreQuery query;
        StoreCall c = store_call(&query, method, url, str_from(body));

        buf_done(&reply.body);
        reply = STORE_REPLY_NULL;
        store_answer(&api, &c, &reply);
        return reply.status;
}

static const char *body(void) {
        return reply.body.len > 0 ? reply.body.data : "";
}

static unsigned apply(const char *manifest) {
        buf_done(&reply.body);
        reply = STORE_REPLY_NULL;
        store_answer_apply(&api, str_from(manifest), &reply);
        return reply.status;
}

#define PODS "/api/v1/namespaces/default/pods"
#define POD(name)                                                                                            \
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name                             \
        "\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}"
#define LIMITS(text)                                                                                         \
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"           \
        "\"limits\":{" text "}}}]}}"

/* One member of the last answer, as text. */
static Str got(const char *path) {
        return store_path(buf_str(&reply.body), path);
}

static void creates(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS,
                        " {\"spec\" : {\"containers\":[{\"name\":\"c\"}]}, \"metadata\":{\"name\":\"a\"}}"),
                   201);
        ASSERT_TEXT(
                body(),
                "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"2\",\"name\":"
                "\"a\","
                "\"namespace\":\"default\",\"uid\":\"bdd73226-2feb-4e95-a8ef-e333b266f103\","
                "\"creationTimestamp\":\"2023-11-14T22:13:20Z\"},\"spec\":{\"containers\":[{\"name\":\"c\"}],"
                "\"schedulerName\":\"default-scheduler\"},\"status\":{\"phase\":\"Pending\"}}");
        ASSERT_INT(call("GET", PODS "/a", ""), 200);
        ASSERT_STR(got("metadata.resourceVersion"), STR("\"2\""));
        ASSERT_INT(call("POST", PODS, POD("a")), 409);
        ASSERT_TEXT(body(),
                    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
                    "\"message\":\"pods \\\"a\\\" already exists\",\"reason\":\"AlreadyExists\","
                    "\"details\":{\"name\":\"a\",\"kind\":\"pods\"},\"code\":409}");
        ASSERT_INT(call("POST", PODS,
                        "{\"metadata\":{\"generateName\":\"web-\"},\"spec\":{\"containers\":[{\"name\":\"c\"}"
                        "]}}"),
                   201);
        ASSERT_INT(got("metadata.name").len, strlen("\"web-12345\""));
        ASSERT_INT(apply("{\"apiVersion\":\"apps/"
                         "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\",\"namespace\":\"n\"}}"),
                   201);
        ASSERT_INT(call("GET", "/apis/apps/v1/namespaces/n/deployments/d", ""), 200);
        ASSERT_INT(call("GET", "/apis/apps/v1/namespaces/n/deployments/e", ""), 404);
        ASSERT_CONTAINS(body(), "deployments.apps \\\"e\\\" not found");
        end();
}

#define SPEC(container, rest)                                                                                \
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{" container "}]" rest "}}"

/* Mistakes in manifests, and the API server's messages for them. */
static void refuses(void) {
        static const struct {
                const char *url, *text;
                unsigned status;
                const char *words;
        } cases[] = {
                {PODS, "{", 400, "the body is not accepted"},
                {PODS, "[]", 400, "must be an object"},
                {PODS, "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}", 400, "twice"},
                {PODS, "{\"metadata\":{\"name\":\"a\",\"n\\u0061me\":\"b\"}}", 400, "twice"},
                {PODS, "{\"kind\":\"Node\"}", 400, "the object provided is a Node"},
                {PODS, "{\"metadata\":7}", 400, "metadata: must be an object"},
                {PODS, "{\"metadata\":{}}", 422,
                 "metadata.name: Required value: name or generateName is required"},
                {PODS, POD("A"), 422,
                 "metadata.name: Invalid value: \\\"A\\\": a lowercase RFC 1123 subdomain"},
                {PODS, POD("a..b"), 422, "RFC 1123 subdomain"},
                {PODS, POD("a."), 422, "RFC 1123 subdomain"},
                {PODS, POD("-a"), 422, "RFC 1123 subdomain"},
                {"/api/v1/namespaces/X/pods", POD("a"), 422, "metadata.namespace: Invalid value"},
                {PODS, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"other\"}}", 400,
                 "does not match the namespace"},
                {PODS, "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":1}}}", 400,
                 "metadata.labels[x]: must be a string, is a number: quote it"},
                {PODS, "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":true}}}", 400,
                 "metadata.labels[x]: must be a string, is a boolean: quote it"},
                {PODS, "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":{}}}}", 400,
                 "metadata.labels[x]: must be a string\""},
                {PODS, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":true}]}}", 400,
                 "spec.containers[0].name: must be a string, is a boolean: quote it"},
                {PODS, "{\"metadata\":{\"name\":\"a\",\"annotations\":[]}}", 400,
                 "metadata.annotations: must be an object"},
                {PODS, "{\"metadata\":{\"name\":\"a\"}}", 422,
                 "Pod \\\"a\\\" is invalid: spec.containers: Required value"},
                {PODS, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":{}}}", 400,
                 "must be an array"},
                {PODS, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{}]}}", 422,
                 "spec.containers[0].name: Required value"},
                {PODS,
                 "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"c\"},{\"name\":\"c\"}]"
                 "}}",
                 422, "spec.containers[1].name: Duplicate value: \\\"c\\\""},
                {PODS, SPEC("\"env\":[{\"name\":\"X\",\"value\":true}]", ""), 400,
                 "spec.containers[0].env[0].value: must be a string"},
                {PODS, SPEC("\"command\":\"sh\"", ""), 400, "spec.containers[0].command: must be an array"},
                {PODS, SPEC("\"args\":[\"a\",1]", ""), 400, "spec.containers[0].args[1]: must be a string"},
                {PODS, SPEC("\"env\":[7]", ""), 400, "spec.containers[0].env[0]: must be an object"},
                {PODS, SPEC("", ",\"nodeName\":5"), 400, "spec.nodeName: must be a string"},
                {PODS, SPEC("", ",\"nodeSelector\":{\"a\":5}"), 400,
                 "spec.nodeSelector[a]: must be a string"},
                {PODS, SPEC("", ",\"tolerations\":{}"), 400, "spec.tolerations: must be an array"},
                {PODS, SPEC("", ",\"priority\":1.5"), 400, "spec.priority: must be a whole number"},
                {PODS, LIMITS("\"aliyun.com/gpu-mem\":\"1500m\""), 422,
                 "spec.containers[0].resources.limits[aliyun.com/gpu-mem]: Invalid value: \\\"1500m\\\": "
                 "must be an integer"},
                {PODS, LIMITS("\"aliyun.com/gpu-mem\":\"-1\""), 422, "must be greater than or equal to 0"},
                {PODS, LIMITS("\"aliyun.com/gpu-mem\":\"much\""), 400, "quantities must match"},
                {PODS, LIMITS("\"aliyun.com/gpu-mem\":true"), 400, "must be a quantity"},
                {PODS, LIMITS("\"aliyun.com/gpu-mem\":1},\"requests\":{\"aliyun.com/gpu-mem\":2"), 422,
                 "equal to the limit"},
                {PODS, LIMITS("},\"requests\":{\"aliyun.com/gpu-mem\":2"), 422, "Limit must be set"},
                {"/api/v1/pods", POD("a"), 405, "does not allow this method"},
                {"/api/v1/namespaces/default/gadgets", POD("a"), 404,
                 "could not find the requested resource"},
                {PODS "/a/exec", POD("a"), 404, "could not find the requested resource"},
                {"/api/v1", POD("a"), 404, "could not find the requested resource"},
        };

        begin(100);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ASSERT_INT(call("POST", cases[i].url, cases[i].text), cases[i].status);
                ASSERT_CONTAINS(body(), cases[i].words);
        }
        ASSERT_INT(store_version(api.objects), 1); /* nothing has happened */
        ASSERT_INT(apply("{\"apiVersion\":\"v1\",\"kind\":\"Gadget\"}"), 404);
        ASSERT_TEXT(reply.message.text, "no matches for kind \"Gadget\" in version \"v1\"");
        end();
}

/* Readers of lists and watches have a limit on depth, which one object must not use up. */
static void bounds_depth(void) {
        char text[400] = "{\"metadata\":{\"name\":\"d\"},\"data\":";
        size_t n = strlen(text);

        begin(100);
        for (int depth = 100; depth <= 101; depth++) {
                memset(text + n, '[', (size_t) depth);
                memset(text + n + depth, ']', (size_t) depth);
                (void) snprintf(text + n + 2 * depth, sizeof text - n - 2 * (size_t) depth, "}");
                ASSERT_INT(call("POST", "/api/v1/namespaces/default/configmaps", text),
                           depth == 100 ? 201 : 400);
        }
        ASSERT_CONTAINS(body(), "nested too deeply");
        end();
}

static void accepts_quantities(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS, LIMITS("\"aliyun.com/gpu-mem\":3,\"cpu\":\"500m\",\"memory\":0.5")),
                   201);
        ASSERT_CONTAINS(body(), "{\"aliyun.com/gpu-mem\":\"3\",\"cpu\":\"500m\",\"memory\":\"0.5\"}");
        end();
}

static void merge_patches(void) {
        /* RFC 7386, appendix A, where target and patch are objects; and the resulting order of
         * members. */
        static const struct {
                const char *target, *patch, *result;
        } cases[] = {
                {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
                {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
                {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
                {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
                {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
                {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
                {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
                {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
                {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
                {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
                {"{\"a\":\"foo\"}", "{\"a\":{\"b\":{\"c\":null}}}", "{\"a\":{\"b\":{}}}"},
                {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
                {"", "{\"z\":1,\"a\":2}", "{\"z\":1,\"a\":2}"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                _cleanup_buf_ Buf out = BUF_NULL;

                ASSERT_OK(store_merge_patch(str_from(cases[i].target), str_from(cases[i].patch), false,
                                            &arena, &out));
                ASSERT_STR(buf_str(&out), str_from(cases[i].result));
        }
}

static void strategic_patches(void) {
        static const struct {
                const char *target, *patch, *result;
        } cases[] = {
                {"{\"conditions\":[{\"type\":\"A\",\"s\":1},{\"type\":\"B\"}]}",
                 "{\"conditions\":[{\"type\":\"A\",\"s\":2},{\"type\":\"C\"}]}",
                 "{\"conditions\":[{\"type\":\"A\",\"s\":2},{\"type\":\"B\"},{\"type\":\"C\"}]}"},
                {"{}", "{\"status\":{\"conditions\":[{\"type\":\"A\"}]}}",
                 "{\"status\":{\"conditions\":[{\"type\":\"A\"}]}}"},
                {"{\"other\":[1,2]}", "{\"other\":[3]}", "{\"other\":[3]}"},
                {"{\"conditions\":[1]}", "{\"conditions\":[]}", "{\"conditions\":[1]}"},
                {"{\"conditions\":{\"a\":1}}", "{\"conditions\":[1]}", "{\"conditions\":[1]}"},
                /* An element without a type equals no other; of several with one type in the patch,
                 * the first counts. */
                {"{\"conditions\":[1,{\"s\":1},{\"type\":\"\"}]}",
                 "{\"conditions\":[1,{\"s\":2},{\"type\":\"\",\"s\":3}]}",
                 "{\"conditions\":[1,{\"s\":1},{\"type\":\"\",\"s\":3},1,{\"s\":2}]}"},
                {"{\"conditions\":[{\"type\":\"B\"},{\"type\":\"A\"},{\"type\":\"B\"}]}",
                 "{\"conditions\":[{\"type\":\"C\"},{\"type\":\"B\",\"s\":1},{\"type\":\"B\",\"s\":2},{"
                 "\"type\":\"C\"}]}",
                 "{\"conditions\":[{\"type\":\"B\",\"s\":1},{\"type\":\"A\"},{\"type\":\"B\",\"s\":1},{"
                 "\"type\":\"C\"},{"
                 "\"type\":\"C\"}]}"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                _cleanup_buf_ Buf out = BUF_NULL;

                ASSERT_OK(store_merge_patch(str_from(cases[i].target), str_from(cases[i].patch), true, &arena,
                                            &out));
                ASSERT_STR(buf_str(&out), str_from(cases[i].result));
        }
}

static void patches(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_INT(call("PATCH", PODS "/a",
                        "{\"metadata\":{\"annotations\":{\"k\":\"v\"}},\"status\":{\"phase\":\"Running\"}}"),
                   200);
        ASSERT_STR(got("metadata.annotations"), STR("{\"k\":\"v\"}"));
        /* status is changed through its subresource */
        ASSERT_STR(got("status.phase"), STR("\"Pending\""));
        ASSERT_STR(got("metadata.resourceVersion"), STR("\"3\""));
        ASSERT_INT(call("PATCH", PODS "/a/status",
                        "{\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Running\"}}"),
                   200);
        ASSERT_STR(got("status.phase"), STR("\"Running\""));
        ASSERT_STR(got("spec.nodeName"), STR(""));
        ASSERT_INT(call("PATCH", PODS "/a", "{\"metadata\":{\"annotations\":{\"k\":\"v\"}}}"), 200);
        /* nothing changed: no version taken */
        ASSERT_STR(got("metadata.resourceVersion"), STR("\"4\""));
        ASSERT_INT(store_version(api.objects), 4);

        ASSERT_INT(call("PATCH", PODS "/a",
                        "{\"metadata\":{\"resourceVersion\":\"3\",\"labels\":{\"a\":\"b\"}}}"),
                   409);
        ASSERT_CONTAINS(body(), "Operation cannot be fulfilled on pods \\\"a\\\": the object has been "
                                "modified; please apply your "
                                "changes to the latest version and try again");
        ASSERT_INT(call("PATCH", PODS "/a",
                        "{\"metadata\":{\"resourceVersion\":\"4\",\"labels\":{\"a\":\"b\"}}}"),
                   200);
        ASSERT_INT(call("PATCH", PODS "/a", "{\"metadata\":{\"uid\":\"other\"}}"), 409);
        ASSERT_CONTAINS(body(), "UID in precondition: other");
        ASSERT_INT(call("PATCH", PODS "/a", "{\"metadata\":{\"name\":\"b\"}}"), 400);
        ASSERT_INT(call("PATCH", PODS "/a", "{\"metadata\":{\"labels\":{\"a\":1}}}"), 400);
        ASSERT_INT(call("PATCH", PODS "/a", "{\"spec\":{\"nodeName\":\"n\"}}"), 422);
        ASSERT_CONTAINS(body(), "pod updates may not change fields other than");
        ASSERT_INT(call("PATCH", PODS "/a", "{\"spec\":{\"containers\":[{\"image\":\"i\",\"name\":\"c\"}]}}"),
                   200);
        ASSERT_INT(call("PATCH", PODS "/a", "[]"), 400);
        ASSERT_INT(call("PATCH", PODS "/b", "{}"), 404);
        end();
}

static unsigned patch_as(const char *content_type) {
        StoreQuery query;
        StoreCall c = store_call(&query, "PATCH", PODS "/a", STR("{}"));

        c.content_type = content_type;
        buf_clear(&reply.body);
        store_answer(&api, &c, &reply);
        return reply.status;
}

static void knows_media_types(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_INT(patch_as("application/merge-patch+json"), 200);
        ASSERT_INT(patch_as("application/merge-patch+json; charset=utf-8"), 200);
        ASSERT_INT(patch_as("application/strategic-merge-patch+json"), 200);
        ASSERT_INT(patch_as("application/json-patch+json"), 415);
        ASSERT_CONTAINS(body(), "UnsupportedMediaType");
        end();
}

static void updates(void) {
        const char *lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

        begin(100);
        ASSERT_INT(call("POST", lease, "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"a\"}}"),
                   201);
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l";
        ASSERT_INT(call("PUT", lease, "{\"metadata\":{\"name\":\"l\"},\"spec\":{}}"), 422);
        ASSERT_CONTAINS(body(),
                        "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update");
        ASSERT_INT(call("PUT", lease,
                        "{\"spec\":{\"holderIdentity\":\"b\"},\"metadata\":{\"resourceVersion\":\"2\"}}"),
                   200);
        ASSERT_STR(got("spec.holderIdentity"), STR("\"b\""));
        ASSERT_INT(call("PUT", lease,
                        "{\"spec\":{\"holderIdentity\":\"c\"},\"metadata\":{\"resourceVersion\":\"2\"}}"),
                   409);
        ASSERT_CONTAINS(body(), "leases.coordination.k8s.io \\\"l\\\"");
        ASSERT_INT(call("PUT", lease, "{\"metadata\":{\"name\":\"m\"}}"), 422);

        ASSERT_INT(call("POST", "/api/v1/nodes",
                        "{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"cpu\":4}}}"),
                   201);
        /* kubelets register nodes with their status */
        ASSERT_STR(got("status.allocatable.cpu"), STR("\"4\""));
        ASSERT_INT(call("PUT", "/api/v1/nodes/n", "{\"spec\":{\"unschedulable\":true}}"), 200);
        ASSERT_STR(got("status.allocatable.cpu"), STR("\"4\""));
        ASSERT_INT(call("PUT", "/api/v1/nodes/n/status", "{\"status\":{\"capacity\":{}}}"), 200);
        ASSERT_STR(got("spec.unschedulable"), STR("true"));
        ASSERT_STR(got("status"), STR("{\"capacity\":{}}"));
        end();
}

#define BINDING(node)                                                                                        \
        "{\"metadata\":{\"annotations\":{\"k\":\"v\"}},\"target\":{\"kind\":\"Node\",\"name\":\"" node "\"}" \
        "}"

static void binds(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_INT(
                call("POST", PODS "/a/binding", "{\"metadata\":{\"uid\":\"x\"},\"target\":{\"name\":\"n\"}}"),
                409);
        ASSERT_CONTAINS(body(), "Precondition failed: UID in precondition: x, UID in object meta: ");
        ASSERT_INT(call("POST", PODS "/a/binding", "{}"), 422);
        ASSERT_CONTAINS(body(), "target.name: Required value");
        ASSERT_INT(call("POST", PODS "/a/binding", "{\"target\":{\"kind\":\"Pod\",\"name\":\"n\"}}"), 422);
        ASSERT_INT(call("POST", PODS "/a/binding",
                        "{\"metadata\":{\"annotations\":{\"k\":1}},\"target\":{\"name\":\"n\"}}"),
                   400);
        ASSERT_INT(call("POST", PODS "/b/binding", BINDING("n")), 404);
        ASSERT_INT(store_version(api.objects), 2);
        ASSERT_INT(call("POST", PODS "/a/binding", BINDING("n")), 201);
        ASSERT_TEXT(body(), "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                            "\"Success\",\"code\":201}");
        ASSERT_INT(call("GET", PODS "/a", ""), 200);
        ASSERT_STR(got("spec.nodeName"), STR("\"n\""));
        ASSERT_STR(got("metadata.annotations"), STR("{\"k\":\"v\"}"));
        ASSERT_STR(
                got("status"),
                STR("{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\","
                    "\"lastTransitionTime\":\"2023-11-14T22:13:20Z\"}]}"));
        ASSERT_INT(call("POST", PODS "/a/binding", BINDING("m")), 409);
        ASSERT_CONTAINS(body(), "Operation cannot be fulfilled on pods/binding \\\"a\\\": pod a is already "
                                "assigned to node \\\"n\\\"");
        end();
}

static void replaces_the_scheduled_condition(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_INT(call("PATCH", PODS "/a/status",
                        "{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\"},{"
                        "\"type\":\"Other\"}]}}"),
                   200);
        ASSERT_INT(call("POST", PODS "/a/binding", BINDING("n")), 201);
        ASSERT_INT(call("GET", PODS "/a", ""), 200);
        ASSERT_CONTAINS(
                body(),
                "\"conditions\":[{\"type\":\"Other\"},{\"type\":\"PodScheduled\",\"status\":\"True\"");
        end();
}

static void deletes(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_INT(call("DELETE", PODS "/a", "{\"preconditions\":{\"uid\":\"x\"}}"), 409);
        ASSERT_INT(call("DELETE", PODS "/a", ""), 200); /* on no node yet: deleted at once */
        ASSERT_STR(got("metadata.resourceVersion"), STR("\"3\""));
        ASSERT_INT(call("GET", PODS "/a", ""), 404);
        ASSERT_INT(call("DELETE", PODS "/a", ""), 404);

        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_INT(call("POST", PODS "/a/binding", BINDING("n")), 201);
        ASSERT_INT(call("DELETE", PODS "/a", "{\"gracePeriodSeconds\":\"x\"}"), 400);
        ASSERT_INT(call("DELETE", PODS "/a", ""), 200);
        ASSERT_STR(got("metadata.deletionTimestamp"), STR("\"2023-11-14T22:13:50Z\""));
        ASSERT_STR(got("metadata.deletionGracePeriodSeconds"), STR("30"));
        ASSERT_INT(call("DELETE", PODS "/a?gracePeriodSeconds=60", ""), 200); /* never lengthened */
        ASSERT_STR(got("metadata.deletionGracePeriodSeconds"), STR("30"));
        ASSERT_INT(call("PATCH", PODS "/a", "{\"metadata\":{\"deletionTimestamp\":null}}"),
                   200); /* not ours to undo */
        ASSERT_STR(got("metadata.deletionGracePeriodSeconds"), STR("30"));
        ASSERT_INT(call("DELETE", PODS "/a?gracePeriodSeconds=0", ""), 200);
        ASSERT_INT(call("GET", PODS "/a", ""), 404);

        ASSERT_INT(call("POST", "/api/v1/namespaces/default/configmaps", "{\"metadata\":{\"name\":\"c\"}}"),
                   201);
        ASSERT_INT(call("DELETE", "/api/v1/namespaces/default/configmaps/c", "{}"), 200);
        ASSERT_CONTAINS(body(), "\"status\":\"Success\"");
        end();
}

static void does_not_bind_what_is_going(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_INT(call("POST", PODS "/a/binding", BINDING("n")), 201);
        ASSERT_INT(call("DELETE", PODS "/a", ""), 200);
        ASSERT_INT(call("POST", PODS "/a/binding", BINDING("n")), 409);
        ASSERT_CONTAINS(body(), "is being deleted, cannot be assigned to a host");
        end();
}

/* ---- lists ---- */

static size_t count(const char *text, const char *what) {
        size_t n = 0;

        for (; (text = strstr(text, what)) != NULL; text++)
                n++;
        return n;
}

static void pages_show_one_moment(void) {
        char url[256];

        begin(100);
        ASSERT_INT(call("POST", PODS, POD("b")), 201);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_INT(call("POST", PODS, POD("c")), 201);
        ASSERT_INT(call("GET", PODS "?limit=2", ""), 200);
        ASSERT_TRUE(strncmp(body(),
                            "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
                            "\"4\",\"continue\":\"",
                            70) == 0);
        ASSERT_CONTAINS(body(), "\"items\":[{\"metadata\":{\"resourceVersion\":\"3\",\"name\":\"a\"");
        {
                Str token = got("metadata.continue");

                (void) snprintf(url, sizeof url, PODS "?limit=2&continue=%.*s", (int) token.len - 2,
                                token.data + 1);
        }
        ASSERT_INT(call("DELETE", PODS "/c", ""), 200);
        ASSERT_INT(call("POST", PODS, POD("d")), 201);
        ASSERT_INT(call("GET", url, ""), 200);
        ASSERT_STR(got("metadata.resourceVersion"), STR("\"4\""));
        ASSERT_STR(got("metadata.continue"), STR(""));
        /* as it was when the list began */
        ASSERT_INT(count(body(), "\"name\":\"c\",\"namespace\""), 1);
        ASSERT_INT(count(body(), "\"namespace\":"), 1);
        store_objects_forget(api.objects);
        ASSERT_INT(call("GET", url, ""), 410);
        ASSERT_CONTAINS(body(), "\"reason\":\"Expired\"");
        ASSERT_INT(call("GET", PODS "?continue=rubbish", ""), 410);
        ASSERT_INT(call("GET", PODS "?limit=x", ""), 400);
        ASSERT_INT(call("GET", PODS "?resourceVersion=x", ""), 400);
        ASSERT_INT(call("GET", PODS "?resourceVersion=99", ""), 504);
        ASSERT_INT(call("GET", PODS "?resourceVersion=2&resourceVersionMatch=Exact", ""), 410);
        ASSERT_INT(call("GET", PODS "?resourceVersion=0", ""), 200);
        ASSERT_INT(count(body(), "\"namespace\":"), 3);
        end();
}

static void selects(void) {
        static const struct {
                const char *query;
                int n; /* of 3 pods; -1: refused */
        } cases[] = {
                {"labelSelector=app=a", 1},
                {"labelSelector=app==a", 1},
                {"labelSelector=app!=a", 2},
                {"labelSelector=app", 2},
                {"labelSelector=!app", 1},
                {"labelSelector=app in (a, b)", 2},
                {"labelSelector=app notin (a)", 2},
                {"labelSelector=app in (a,b),tier=x", 1},
                {"labelSelector=", 3},
                {"labelSelector=app in (a", -1},
                {"labelSelector=app over (a)", -1},
                {"labelSelector=app=a,", 1},
                {"labelSelector=,app=a", -1},
                {"labelSelector=app>1", -1},
                {"labelSelector==a", -1},
                {"fieldSelector=metadata.name=p", 1},
                {"fieldSelector=metadata.name!=p", 2},
                {"fieldSelector=spec.nodeName=", 2},
                {"fieldSelector=spec.nodeName=n,status.phase=Pending", 1},
                {"fieldSelector=spec.color=n", -1},
                {"fieldSelector=spec.nodeName in (n)", -1},
        };
        char url[256];

        begin(100);
        ASSERT_INT(call("POST", PODS, POD("p")), 201);
        ASSERT_INT(call("PATCH", PODS "/p", "{\"metadata\":{\"labels\":{\"app\":\"a\"}}}"), 200);
        ASSERT_INT(call("POST", PODS "/p/binding", BINDING("n")), 201);
        ASSERT_INT(call("POST", PODS, POD("q")), 201);
        ASSERT_INT(call("PATCH", PODS "/q", "{\"metadata\":{\"labels\":{\"app\":\"b\",\"tier\":\"x\"}}}"),
                   200);
        ASSERT_INT(call("POST", "/api/v1/namespaces/default-2/pods", POD("r")), 201);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                (void) snprintf(url, sizeof url, "/api/v1/pods?%s", cases[i].query);
                ASSERT_INT(call("GET", url, ""), cases[i].n < 0 ? 400 : 200);
                if (cases[i].n >= 0)
                        ASSERT_INT(count(body(), "\"namespace\":"), cases[i].n);
        }
        ASSERT_INT(call("GET", PODS, ""), 200); /* default is no prefix of default-2 */
        ASSERT_INT(count(body(), "\"namespace\":"), 2);
        end();
}

/* ---- watches ---- */

static StoreWatch watch;
static Buf events;

static void watch_begin(const char *url) {
        StoreQuery query;
        StoreCall c = store_call(&query, "GET", url, STR(""));
        StoreRoute route;

        buf_done(&reply.body);
        ASSERT_TRUE(store_is_watch(&c, &route));
        ASSERT_TRUE(store_watch_init(&watch, &api, &route, &c, &reply));
}

/* "ADDED/a MODIFIED/a": types and names of the events that can be read, one line at a time. */
static const char *watch_read(void) {
        static char text[512];
        size_t n = 0, before;

        text[0] = '\0';
        do {
                Str name, type;

                buf_clear(&events);
                before = n;
                store_watch_read(&watch, &events, 1);
                if (events.len == 0)
                        break;
                ASSERT_TRUE(events.data[events.len - 1] == '\n');
                type = store_member(buf_str(&events), "type");
                name = store_path(buf_str(&events), "object.metadata.name");
                n += (size_t) snprintf(text + n, sizeof text - n, "%s%.*s/%.*s", n > 0 ? " " : "",
                                       (int) type.len - 2, type.data + 1,
                                       name.len > 2 ? (int) name.len - 2 : 0,
                                       name.len > 2 ? name.data + 1 : "");
        } while (n > before && n < sizeof text);
        return text;
}

static void watch_end(void) {
        store_watch_done(&watch);
        buf_done(&events);
}

static void watches(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS, POD("b")), 201);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        watch_begin("/api/v1/pods?watch=1");
        ASSERT_TEXT(watch_read(), "ADDED/a ADDED/b");
        ASSERT_INT(call("POST", "/api/v1/nodes", "{\"metadata\":{\"name\":\"n\"}}"), 201);
        ASSERT_INT(call("PATCH", PODS "/a", "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}"), 200);
        ASSERT_INT(call("DELETE", PODS "/b", ""), 200);
        ASSERT_TEXT(watch_read(), "MODIFIED/a DELETED/b");
        ASSERT_TEXT(watch_read(), "");
        watch_end();
        watch_begin("/api/v1/namespaces/default/pods?watch=true&resourceVersion=2");
        ASSERT_TEXT(watch_read(), "ADDED/a MODIFIED/a DELETED/b");
        watch_end();
        end();
}

static void watches_with_selectors(void) {
        begin(100);
        watch_begin("/api/v1/pods?watch=1&resourceVersion=1&labelSelector=on=1");
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_TEXT(watch_read(), "");
        ASSERT_INT(call("PATCH", PODS "/a", "{\"metadata\":{\"labels\":{\"on\":\"1\"}}}"), 200);
        ASSERT_INT(call("PATCH", PODS "/a", "{\"metadata\":{\"labels\":{\"more\":\"1\"}}}"), 200);
        ASSERT_INT(call("PATCH", PODS "/a", "{\"metadata\":{\"labels\":{\"on\":null}}}"), 200);
        ASSERT_TEXT(watch_read(), "ADDED/a MODIFIED/a DELETED/a");
        ASSERT_INT(call("PATCH", PODS "/a", "{\"metadata\":{\"labels\":{\"on\":\"1\"}}}"), 200);
        ASSERT_INT(call("DELETE", PODS "/a", ""), 200);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_TEXT(watch_read(), "ADDED/a DELETED/a");
        watch_end();
        end();
}

/* An object that leaves a selection is shown in its last matching state, under the number of the
 * change. */
static void shows_what_left(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        watch_begin("/api/v1/pods?watch=1&resourceVersion=2&fieldSelector=spec.nodeName=");
        ASSERT_INT(call("POST", PODS "/a/binding", BINDING("n")), 201);
        store_watch_read(&watch, &events, 1000);
        ASSERT_STR(store_member(buf_str(&events), "type"), STR("\"DELETED\""));
        ASSERT_STR(store_path(buf_str(&events), "object.metadata.resourceVersion"), STR("\"3\""));
        ASSERT_STR(store_path(buf_str(&events), "object.spec.nodeName"), STR(""));
        watch_end();
        end();
}

static void forgets(void) {
        char text[256];

        begin(4);
        watch_begin("/api/v1/pods?watch=1&resourceVersion=1&allowWatchBookmarks=true");
        for (int i = 0; i < 4; i++) {
                (void) snprintf(
                        text, sizeof text,
                        "{\"metadata\":{\"name\":\"p%d\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}", i);
                ASSERT_INT(call("POST", PODS, text), 201);
        }
        ASSERT_INT(store_horizon(api.objects), 1);
        ASSERT_TEXT(watch_read(), "ADDED/p0 ADDED/p1 ADDED/p2 ADDED/p3");
        for (int i = 0; i < 5; i++)
                ASSERT_INT(call("POST", PODS, POD("q")) + call("DELETE", PODS "/q", ""), 401);
        ASSERT_INT(store_horizon(api.objects), 11);
        store_watch_read(&watch, &events, 1);
        ASSERT_CONTAINS(events.data, "\"type\":\"ERROR\"");
        ASSERT_CONTAINS(events.data, "\"code\":410");
        ASSERT_TRUE(watch.ended);
        watch_end();
        watch_begin("/api/v1/pods?watch=1&resourceVersion=15&allowWatchBookmarks=true");
        ASSERT_TEXT(watch_read(), "");
        store_watch_bookmark(&watch, &events);
        ASSERT_TEXT(events.data,
                    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":"
                    "{\"resourceVersion\":\"15\",\"creationTimestamp\":null}}}\n");
        watch_end();
        end();
}

/* A reader that stops within the first list continues there, and sees the moment at which
 * it began. */
static void lists_in_a_watch_page_by_page(void) {
        begin(100);
        ASSERT_INT(call("POST", PODS, POD("a")), 201);
        ASSERT_INT(call("POST", PODS, POD("c")), 201);
        watch_begin("/api/v1/pods?watch=1");
        store_watch_read(&watch, &events, 1);
        ASSERT_INT(call("POST", PODS, POD("b")), 201);
        ASSERT_INT(call("DELETE", PODS "/c", ""), 200);
        ASSERT_TEXT(watch_read(), "ADDED/c ADDED/b DELETED/c");
        watch_end();
        end();
}

/* ---- the versions underneath ---- */

/* Random changes against a model that keeps everything: any moment that is remembered can be read
 * back. */
static void remembers_every_moment(void) {
        enum { KEYS = 7, STEPS = 3000, HISTORY = 50 };
        /* of each key at each number: 0 absent, else a letter */
        static char states[STEPS + 2][KEYS];
        StoreObjects *o;
        Random random = {1};

        ASSERT_OK(store_objects_new(HISTORY, &o));
        for (uint64_t n = 2; n < STEPS + 2; n++) {
                StoreChange change;
                char key[] = "k?", text[] = "?";
                unsigned k, back;
                uint64_t moment;

                k = random_below(&random, KEYS);
                back = random_below(&random, HISTORY);
                memcpy(states[n], states[n - 1], KEYS);
                key[1] = (char) ('0' + k);
                text[0] = (char) ('a' + random_below(&random, 26));
                change = !states[n][k]              ? STORE_CREATED
                         : random_below(&random, 2) ? STORE_DELETED
                                                    : STORE_MODIFIED;
                states[n][k] = change == STORE_DELETED ? 0 : text[0];
                ASSERT_OK(store_commit(o, &store_kinds[0], str_from(key), change, str_from(text)));
                ASSERT_INT(store_version(o), n);
                ASSERT_INT(store_event(o, n)->change, change);
                ASSERT_TRUE(!store_event(o, n + 1));
                ASSERT_TRUE(!store_event(o, store_horizon(o)));
                moment = n - back > store_horizon(o) && back < n ? n - back : store_horizon(o);
                for (unsigned i = 0; i < KEYS; i++) {
                        const StoreVersion *v;
                        StoreEntry *e;

                        key[1] = (char) ('0' + i);
                        e = store_seek(o, &store_kinds[0], str_from(key));
                        v = e && str_eq(e->key, str_from(key)) ? store_at(e, moment) : NULL;
                        ASSERT_INT(v ? v->text.data[0] : 0, states[moment][i]);
                }
        }
        store_objects_free(o);
}

static void discovers(void) {
        begin(10);
        ASSERT_INT(call("GET", "/healthz", ""), 200);
        ASSERT_TEXT(body(), "ok");
        ASSERT_INT(call("GET", "/version", ""), 200);
        ASSERT_INT(call("GET", "/api", ""), 200);
        ASSERT_CONTAINS(body(), "\"versions\":[\"v1\"]");
        ASSERT_INT(call("GET", "/apis", ""), 200);
        ASSERT_INT(count(body(), "preferredVersion"), 5);
        ASSERT_INT(call("GET", "/api/v1", ""), 200);
        ASSERT_CONTAINS(body(), "\"name\":\"pods/binding\"");
        ASSERT_INT(call("GET", "/apis/apps/v1", ""), 200);
        ASSERT_INT(call("GET", "/apis/apps/v2", ""), 404);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(creates), TEST(refuses), TEST(bounds_depth), TEST(accepts_quantities),
                         TEST(merge_patches), TEST(strategic_patches), TEST(patches), TEST(knows_media_types),
                         TEST(updates), TEST(binds), TEST(replaces_the_scheduled_condition), TEST(deletes),
                         TEST(does_not_bind_what_is_going), TEST(pages_show_one_moment), TEST(selects),
                         TEST(watches), TEST(watches_with_selectors), TEST(shows_what_left), TEST(forgets),
                         TEST(lists_in_a_watch_page_by_page), TEST(remembers_every_moment), TEST(discovers));
}
