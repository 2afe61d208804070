/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the API server is asked. Paths and texts are written for an installation in kube-system, and
 * changed here for one in another namespace. */

#include "base/buf.h"
#include "base/fault.h"
#include "node/publish/event_reasons.h"

#define QUESTIONS_NAMESPACE "kube-system"
#define QUESTIONS_SCHEDULER                                                                                  \
        "/api/v1/namespaces/" QUESTIONS_NAMESPACE "/services/aliquot-scheduler:12347/proxy"

enum { QUESTIONS_NAMESPACE_SIZE = 64 };

/* X(name, path, the right that the query needs). */
#define QUESTIONS(X)                                                                                         \
        X(VERSION, "/version", "get /version")                                                               \
        X(NODES, "/api/v1/nodes?resourceVersion=0", "list nodes")                                            \
        X(PODS,                                                                                              \
          "/api/v1/namespaces/" QUESTIONS_NAMESPACE                                                          \
          "/pods?resourceVersion=0&labelSelector=app.kubernetes.io%2Fname%3Daliquot",                        \
          "list pods in " QUESTIONS_NAMESPACE)                                                               \
        X(LEASE, "/apis/coordination.k8s.io/v1/namespaces/" QUESTIONS_NAMESPACE "/leases/aliquot-scheduler", \
          "get leases in " QUESTIONS_NAMESPACE)                                                              \
        X(NODE_LEASES, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",                     \
          "list leases in kube-node-lease")                                                                  \
        X(ENDPOINTS,                                                                                         \
          "/apis/discovery.k8s.io/v1/namespaces/" QUESTIONS_NAMESPACE                                        \
          "/endpointslices?labelSelector=kubernetes.io%2Fservice-name%20in%20(aliquot-scheduler,"            \
          "aliquot-webhook)",                                                                                \
          "list endpointslices in " QUESTIONS_NAMESPACE)                                                     \
        X(READY, QUESTIONS_SCHEDULER "/readyz", "get services/proxy in " QUESTIONS_NAMESPACE)                \
        X(METRICS, QUESTIONS_SCHEDULER "/metrics", "get services/proxy in " QUESTIONS_NAMESPACE)             \
        X(MUTATING, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/aliquot",           \
          "get mutatingwebhookconfigurations")                                                               \
        X(VALIDATING, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/aliquot",       \
          "get validatingwebhookconfigurations")                                                             \
        X(POLICIES, "/apis/networking.k8s.io/v1/namespaces/" QUESTIONS_NAMESPACE "/networkpolicies",         \
          "list networkpolicies in " QUESTIONS_NAMESPACE)                                                    \
        X(STRAYS,                                                                                            \
          "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DNode%2C"                    \
          "reason%3D" REASON_MEMORY_UNACCOUNTED,                                                             \
          "list events in default")                                                                          \
        X(ADMISSION, "/api/v1/namespaces/default/pods?dryRun=All", "create pods in default")

typedef enum ApiQuestion {
#define QUESTIONS_ENUM(name, path, right) API_##name,
        QUESTIONS(QUESTIONS_ENUM)
#undef QUESTIONS_ENUM
                API_QUESTIONS_,
} ApiQuestion;

/* Whether the text can be a namespace: a DNS label (RFC 1123). It becomes a part of paths. */
bool questions_is_namespace(const char *text);

/* Appends the path of the query. namespace_: where aliquot is installed. */
void questions_path(ApiQuestion question, const char *namespace_, Buf *out);
const char *questions_right(ApiQuestion question);

/* Replaces QUESTIONS_NAMESPACE by the namespace in a command or the words of a right. A text that
 * becomes too long is cut. */
void questions_localize(const char *namespace_, Fault *text);
