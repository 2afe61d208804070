/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/check_control.h"

#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/timestamp.h"
#include "cli/doctor/check_cluster.h"
#include "scheduler/webhook/certificate.h"

#define NS_OPTION   "kubectl -n " QUESTIONS_NAMESPACE " "
#define COMPONENT   "app.kubernetes.io/component"
#define APPLICATION "app.kubernetes.io/name"
#define DEPLOYMENT  "aliquot-scheduler"
#define END_METRIC  "aliquot_scheduler_webhook_certificate_end_seconds"

enum {
        DAY = 24 * 3600,
        SOON = 3 * DAY,    /* warns this long before a certificate ends */
        SKEW_SEC = 5,      /* a question and its answer take a part of it */
        SKEW_BAD_SEC = 60, /* leases and tokens are judged wrongly */
        LEASE_OLD = 120,   /* a kubelet renews its Lease every 10 s */
        HOST_NAME_LONGEST = 63,
};

/* ---- the extender ---- */

static size_t count_endpoints(const Facts *f, const char *service) {
        const json_t *slices = fact_at(f->cluster.api[API_ENDPOINTS].json, "items", NULL);
        size_t n = 0;

        for (size_t i = 0; i < json_array_size(slices); i++) {
                const json_t *slice = json_array_get(slices, i),
                             *endpoints = fact_at(slice, "endpoints", NULL);

                if (strcmp(fact_text(slice, "metadata", "labels", "kubernetes.io/service-name", NULL),
                           service) != 0)
                        continue;
                for (size_t k = 0; k < json_array_size(endpoints); k++)
                        n += !json_is_false(
                                fact_at(json_array_get(endpoints, k), "conditions", "ready", NULL));
        }
        return n;
}

static bool is_of(const json_t *pod, const char *component) {
        return strcmp(fact_text(pod, "metadata", "labels", COMPONENT, NULL), component) == 0;
}

/* Whether a ReplicaSet of the Deployment has made the pod. */
static bool is_of_deployment(const json_t *pod) {
        const json_t *owners = fact_at(pod, "metadata", "ownerReferences", NULL);

        for (size_t i = 0; i < json_array_size(owners); i++) {
                const json_t *owner = json_array_get(owners, i);

                if (strcmp(fact_text(owner, "kind", NULL), "ReplicaSet") == 0 &&
                    strncmp(fact_text(owner, "name", NULL), DEPLOYMENT "-", strlen(DEPLOYMENT "-")) == 0)
                        return true;
        }
        return false;
}

/* The Services select pods by labels alone, also those of another origin. */
static void check_strangers(const Facts *f, Finding *ret) {
        const json_t *pods = fact_at(f->cluster.api[API_PODS].json, "items", NULL);

        for (size_t i = 0; i < json_array_size(pods); i++) {
                const json_t *pod = json_array_get(pods, i);
                const char *name = fact_text(pod, "metadata", "name", NULL);

                if (is_of(pod, "scheduler") && !is_of_deployment(pod) &&
                    finding_add(ret, GRADE_WARN,
                                "pod %s has the labels of the Services " DEPLOYMENT
                                " and aliquot-webhook, and is not of the Deployment: what they answer may be "
                                "wrong, here and in kubectl inspect cgpu --why",
                                name))
                        finding_mend(ret, NS_OPTION "label pod %s " COMPONENT "-", name);
        }
}

/* Silence is no failure: a NetworkPolicy may keep the API server from the port. */
static void check_answer(const Facts *f, Finding *ret) {
        const Fact *ready = &f->cluster.api[API_READY];
        size_t n = count_endpoints(f, "aliquot-scheduler");

        if (ready->state == FACT_KNOWN)
                finding_set(ret, GRADE_OK, "the extender answers, and knows nodes and pods");
        else if (!check_cluster_knows(f, API_ENDPOINTS, ret))
                return;
        else if (n == 0) {
                finding_set(ret, GRADE_FAIL,
                            "the Service aliquot-scheduler has no endpoint: no GPU pod is placed");
                finding_mend(ret, NS_OPTION "get pods -l " APPLICATION "=aliquot; " NS_OPTION
                                            "logs deploy/aliquot-scheduler -c aliquot-scheduler");
        } else if (ready->state == FACT_SILENT && strstr(ready->why.text, "HTTP 503")) {
                finding_set(ret, GRADE_WARN,
                            "the extender is not ready, or the API server does not reach it: %s",
                            ready->why.text);
                finding_mend(ret, NS_OPTION
                             "logs deploy/aliquot-scheduler -c aliquot-scheduler; " NS_OPTION
                             "port-forward svc/aliquot-scheduler 12347, curl localhost:12347/readyz");
        } else
                finding_set(ret, GRADE_OK, "%zu ready endpoint%s; the extender was not asked itself", n,
                            n == 1 ? "" : "s");
}

void check_control_extender(const Facts *f, Finding *ret) {
        check_answer(f, ret);
        check_strangers(f, ret);
}

/* Whether the holder of the Lease is a ready pod of ours. It is the host name of its pod, "_", and
 * a unique suffix. A pod's host name is its name, cut to 63 characters. */
static bool is_ready_pod(const Facts *f, const char *holder) {
        const json_t *pods = fact_at(f->cluster.api[API_PODS].json, "items", NULL);
        const char *end = strrchr(holder, '_');
        size_t length = end ? (size_t) (end - holder) : strlen(holder);

        for (size_t i = 0; i < json_array_size(pods); i++) {
                const json_t *pod = json_array_get(pods, i);
                const char *name = fact_text(pod, "metadata", "name", NULL);

                if (is_of(pod, "scheduler") && strncmp(name, holder, length) == 0 &&
                    (name[length] == '\0' || length == HOST_NAME_LONGEST) &&
                    strcmp(check_cluster_condition(pod, "Ready"), "True") == 0)
                        return true;
        }
        return false;
}

void check_control_leader(const Facts *f, Finding *ret) {
        const Fact *lease = &f->cluster.api[API_LEASE];
        const char *holder = fact_text(lease->json, "spec", "holderIdentity", NULL);
        int64_t age = lease->date -
                      (int64_t) timestamp_read(str_from(fact_text(lease->json, "spec", "renewTime", NULL))),
                duration = json_integer_value(fact_at(lease->json, "spec", "leaseDurationSeconds", NULL));

        if (lease->state != FACT_ABSENT && !check_cluster_knows(f, API_LEASE, ret))
                return;
        if (lease->state == FACT_ABSENT)
                finding_set(ret, GRADE_FAIL, "no scheduler of aliquot was ever elected: %s", lease->why.text);
        else if (!holder[0] || (lease->date > 0 && age > duration + SKEW_SEC))
                finding_set(ret, GRADE_FAIL, "no scheduler leads: the Lease aliquot-scheduler %s",
                            holder[0] ? "was not renewed in time" : "has no holder");
        else if (f->cluster.api[API_PODS].state == FACT_KNOWN && !is_ready_pod(f, holder))
                finding_set(ret, GRADE_WARN,
                            "%s holds the Lease aliquot-scheduler, and is in no pod of aliquot that is ready",
                            holder);
        else
                finding_set(ret, GRADE_OK, "%s leads", holder);
        if (ret->grade > GRADE_OK)
                finding_mend(ret, NS_OPTION "logs deploy/aliquot-scheduler --all-containers");
}

static bool has_kube_scheduler(const json_t *pod) {
        const json_t *states = fact_at(pod, "status", "containerStatuses", NULL);

        for (size_t i = 0; i < json_array_size(states); i++) {
                const json_t *state = json_array_get(states, i);

                if (strcmp(fact_text(state, "name", NULL), "kube-scheduler") == 0)
                        return json_is_true(fact_at(state, "ready", NULL));
        }
        return false;
}

void check_control_kube_scheduler(const Facts *f, Finding *ret) {
        const json_t *pods = fact_at(f->cluster.api[API_PODS].json, "items", NULL);
        size_t n = 0;

        if (!check_cluster_knows(f, API_PODS, ret))
                return;
        for (size_t i = 0; i < json_array_size(pods); i++)
                n += is_of(json_array_get(pods, i), "scheduler") &&
                     has_kube_scheduler(json_array_get(pods, i));
        if (n == 0) {
                finding_set(ret, GRADE_FAIL,
                            "no kube-scheduler is ready in a pod of aliquot-scheduler: pods for "
                            "ack-co-scheduler wait, unless another kube-scheduler has this profile and calls "
                            "the extender");
                finding_mend(ret, NS_OPTION "describe deploy aliquot-scheduler");
        } else
                finding_set(ret, GRADE_OK, "%zu ready, with the profile ack-co-scheduler", n);
}

/* ---- the webhook ---- */

static void check_bundle(const Facts *f, const char *kind, const json_t *webhook, Finding *ret) {
        const char *bundle = fact_text(webhook, "clientConfig", "caBundle", NULL),
                   *name = fact_text(webhook, "name", NULL);
        _cleanup_buf_ Buf pem = BUF_NULL;
        CertificateLife life;
        bool bad = false;

        if (!bundle[0])
                bad = finding_add(ret, GRADE_FAIL, "%s %s has no caBundle", kind, name);
        else if (!base64_decode(str_from(bundle), &pem) || buf_result(&pem) < 0 ||
                 !certificate_life(pem.data, &life))
                bad = finding_add(ret, GRADE_FAIL, "%s %s: the caBundle is no certificate", kind, name);
        else if (life.not_after <= f->now)
                bad = finding_add(ret, GRADE_FAIL, "%s %s: the CA in caBundle has expired", kind, name);
        if (bad)
                finding_mend(ret,
                             NS_OPTION "rollout restart deploy aliquot-scheduler: the leader writes it anew");
}

static void check_configuration(const Facts *f, ApiQuestion question, const char *kind, Finding *ret) {
        const Fact *fact = &f->cluster.api[question];
        const json_t *webhooks = fact_at(fact->json, "webhooks", NULL);

        if (fact->state == FACT_ABSENT && finding_add(ret, GRADE_FAIL, "there is no %s aliquot", kind))
                finding_mend(ret, "install it again: docs/operate/install.md");
        for (size_t i = 0; i < json_array_size(webhooks); i++)
                check_bundle(f, kind, json_array_get(webhooks, i), ret);
}

void check_control_webhook(const Facts *f, Finding *ret) {
        check_configuration(f, API_MUTATING, "MutatingWebhookConfiguration", ret);
        check_configuration(f, API_VALIDATING, "ValidatingWebhookConfiguration", ret);
        if (f->cluster.api[API_ENDPOINTS].state == FACT_KNOWN && count_endpoints(f, "aliquot-webhook") == 0 &&
            finding_add(ret, GRADE_FAIL, "the Service aliquot-webhook has no endpoint: GPU pods are refused"))
                finding_mend(ret, NS_OPTION "describe deploy aliquot-scheduler");
        for (ApiQuestion i = API_MUTATING; i <= API_VALIDATING; i++)
                if (ret->grade != GRADE_FAIL && f->cluster.api[i].state != FACT_ABSENT &&
                    !check_cluster_knows(f, i, ret))
                        return;
        finding_pass(ret, "both configurations have a CA that is valid");
}

/* Returns the value of a metric without labels; 0 when it is not there. */
static int64_t metric_value(const char *text, const char *name) {
        Str rest = str_from(text), line, first;
        uint64_t value;

        while (rest.len > 0) {
                line = str_split(&rest, '\n');
                first = str_split(&line, ' ');
                if (str_eq(first, str_from(name)) && str_to_u64(str_trim(line), &value))
                        return (int64_t) value;
        }
        return 0;
}

void check_control_certificate(const Facts *f, Finding *ret) {
        int64_t end, left;

        if (!check_cluster_knows(f, API_METRICS, ret))
                return;
        end = metric_value(f->cluster.api[API_METRICS].text, END_METRIC);
        left = end - f->now;
        if (end == 0)
                finding_set(ret, GRADE_SKIPPED, "the scheduler tells no " END_METRIC);
        else if (left <= 0)
                finding_set(ret, GRADE_FAIL, "the webhook's certificate has expired");
        else if (left < SOON)
                finding_set(ret, GRADE_WARN,
                            "the webhook's certificate expires in %lld hours and was not renewed",
                            (long long) left / 3600);
        else
                finding_set(ret, GRADE_OK, "the webhook's certificate is good for %lld days",
                            (long long) left / DAY);
        if (ret->grade > GRADE_OK)
                finding_mend(ret, NS_OPTION "logs deploy/aliquot-scheduler; " NS_OPTION
                                            "get secret aliquot-webhook-tls");
}

/* Judges a pod in a dry run: the API server asks the webhook, and stores nothing. */
void check_control_admission(const Facts *f, Finding *ret) {
        const Fact *answer = &f->cluster.api[API_ADMISSION];
        const char *scheduler = fact_text(answer->json, "spec", "schedulerName", NULL);

        if (answer->state == FACT_SILENT && strstr(answer->why.text, "webhook")) {
                finding_set(ret, GRADE_FAIL, "new GPU pods are refused: %s", answer->why.text);
                finding_mend(ret,
                             NS_OPTION "get endpointslices -l kubernetes.io/service-name=aliquot-webhook");
        } else if (answer->state == FACT_DENIED && !strstr(answer->why.text, "cannot create resource"))
                /* a quota or a policy refused it, and not RBAC */
                finding_set(ret, GRADE_SKIPPED, "the pod is refused before the webhook is asked: %s",
                            answer->why.text);
        else if (!check_cluster_knows(f, API_ADMISSION, ret))
                return;
        else if (strcmp(scheduler, "ack-co-scheduler") != 0) {
                finding_set(ret, GRADE_FAIL,
                            "a new GPU pod gets the scheduler \"%s\": the webhook is not asked", scheduler);
                finding_mend(ret, "kubectl get mutatingwebhookconfiguration aliquot -o yaml");
        } else
                finding_set(ret, GRADE_OK, "a GPU pod in a dry run gets ack-co-scheduler");
}

/* ---- the network, the clocks, the versions ---- */

/* Whether a policy with this selector may apply to a pod of ours. */
static bool selects_component(const json_t *selector, const char *component) {
        const char *key;
        json_t *value;

        json_object_foreach(fact_at(selector, "matchLabels", NULL), key, value) {
                const char *text = json_string_value(value) ? json_string_value(value) : "";

                if (!(strcmp(key, APPLICATION) == 0 && strcmp(text, "aliquot") == 0) &&
                    !(strcmp(key, COMPONENT) == 0 && strcmp(text, component) == 0))
                        return false;
        }
        return json_array_size(fact_at(selector, "matchExpressions", NULL)) == 0;
}

void check_control_network(const Facts *f, Finding *ret) {
        const json_t *policies = fact_at(f->cluster.api[API_POLICIES].json, "items", NULL);
        bool own = false;

        if (!check_cluster_knows(f, API_POLICIES, ret))
                return;
        for (size_t i = 0; i < json_array_size(policies); i++) {
                const json_t *policy = json_array_get(policies, i),
                             *selector = fact_at(policy, "spec", "podSelector", NULL);
                const char *name = fact_text(policy, "metadata", "name", NULL);

                if (strcmp(name, "aliquot-scheduler") == 0)
                        own = true;
                else if ((selects_component(selector, "scheduler") || selects_component(selector, "node")) &&
                         finding_add(ret, GRADE_WARN, "the NetworkPolicy %s applies to pods of aliquot",
                                     name))
                        finding_mend(ret,
                                     NS_OPTION
                                     "describe networkpolicy %s: ports 12347, 9443 and 9445 must stay open",
                                     name);
        }
        if (!own && finding_add(ret, GRADE_FAIL,
                                "there is no NetworkPolicy aliquot-scheduler: every pod reads on port 12347 "
                                "which pods hold which cards"))
                finding_mend(ret, "install it again: docs/operate/install.md");
        finding_pass(ret, "the port that reads is kept by the NetworkPolicy aliquot-scheduler");
}

static void check_skew(const char *whose, int64_t ahead, Finding *ret) {
        int64_t skew = ahead < 0 ? -ahead : ahead;

        if (skew > SKEW_SEC && finding_add(ret, skew > SKEW_BAD_SEC ? GRADE_FAIL : GRADE_WARN,
                                           "%s is %lld s %s the API server's", whose, (long long) skew,
                                           ahead > 0 ? "ahead of" : "behind"))
                finding_mend(ret, "chronyc makestep, or timedatectl set-ntp true");
}

/* The kubelet writes its own clock into its Lease every 10 s. Only an old Lease of a node that is
 * Ready, or one from the future, tells of a skew. */
static void check_node_clock(const Facts *f, const json_t *lease, int64_t now, Finding *ret) {
        const char *name = fact_text(lease, "metadata", "name", NULL);
        int64_t ahead = (int64_t) timestamp_read(str_from(fact_text(lease, "spec", "renewTime", NULL))) - now;
        char whose[300];

        (void) snprintf(whose, sizeof whose, "the clock of %s", name);
        for (size_t i = 0; i < f->cluster.n_nodes; i++)
                if (strcmp(f->cluster.nodes[i].name, name) == 0 && (ahead > 0 || ahead < -LEASE_OLD) &&
                    strcmp(check_cluster_condition(f->cluster.nodes[i].json, "Ready"), "True") == 0)
                        check_skew(whose, ahead, ret);
}

void check_control_clock(const Facts *f, Finding *ret) {
        const Fact *leases = &f->cluster.api[API_NODE_LEASES];
        const json_t *items = fact_at(leases->json, "items", NULL);
        int64_t date = f->cluster.api[API_VERSION].date;

        if (date == 0) {
                finding_set(ret, GRADE_SKIPPED, "%s",
                            leases->state == FACT_UNASKED ? "the cluster is not asked"
                                                          : "the API server does not tell its time");
                return;
        }
        check_skew("this machine's clock", f->now - date, ret);
        for (size_t i = 0; i < json_array_size(items); i++)
                check_node_clock(f, json_array_get(items, i), leases->date, ret);
        finding_pass(ret, leases->state == FACT_KNOWN
                                  ? "the clocks here, of the API server and of the nodes agree"
                                  : "the clocks here and of the API server agree");
}

static const char *image_of(const json_t *pod, const char *container) {
        const json_t *list = fact_at(pod, "spec", "containers", NULL);

        for (size_t i = 0; i < json_array_size(list); i++)
                if (strcmp(fact_text(json_array_get(list, i), "name", NULL), container) == 0)
                        return fact_text(json_array_get(list, i), "image", NULL);
        return "";
}

/* Names each container with an image that the node cannot get. The kubelet's reasons: ErrImagePull,
 * ImagePullBackOff, ErrImageNeverPull, InvalidImageName. */
static void check_pulled(const json_t *pod, Finding *ret) {
        const json_t *states = fact_at(pod, "status", "containerStatuses", NULL);

        for (size_t i = 0; i < json_array_size(states); i++) {
                const json_t *state = json_array_get(states, i);
                const char *why = fact_text(state, "state", "waiting", "reason", NULL);

                if (strstr(why, "Image") &&
                    finding_add(ret, GRADE_FAIL, "%s: the node %s has no image %s (%s)",
                                fact_text(pod, "metadata", "name", NULL),
                                fact_text(pod, "spec", "nodeName", NULL), fact_text(state, "image", NULL),
                                why))
                        finding_mend(
                                ret,
                                "import it on the node, or set its registry: docs/operate/chart.md#images");
        }
}

void check_control_versions(const Facts *f, Finding *ret) {
        const json_t *pods = fact_at(f->cluster.api[API_PODS].json, "items", NULL);
        const char *first = "";

        if (!check_cluster_knows(f, API_PODS, ret))
                return;
        for (size_t i = 0; i < json_array_size(pods); i++) {
                const json_t *pod = json_array_get(pods, i);
                bool agent = strcmp(fact_text(pod, "metadata", "labels", COMPONENT, NULL), "node") == 0;
                const char *image = image_of(pod, agent ? "aliquot-node" : "aliquot-scheduler");

                check_pulled(pod, ret);
                if (!first[0])
                        first = image;
                if (image[0] && strcmp(image, first) != 0 &&
                    finding_add(ret, GRADE_WARN, "%s runs %s, others %s",
                                fact_text(pod, "metadata", "name", NULL), image, first))
                        finding_mend(ret, NS_OPTION "rollout status ds/gpushare-device-plugin-ds; " NS_OPTION
                                                    "rollout status deploy/aliquot-scheduler");
        }
        if (!first[0])
                finding_set(ret, GRADE_SKIPPED, "no pod of aliquot runs in %s", f->cluster.namespace_);
        else
                finding_pass(ret, "scheduler and node agents run %s", first);
}
