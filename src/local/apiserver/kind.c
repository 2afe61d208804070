/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/kind.h"

#include <stdio.h>

#define HEAD(name, version) STR("{\"kind\":\"" name "\",\"apiVersion\":\"" version "\",")
#define CORE(resource, name)                                                                                 \
        .group = STR(""), .plural = STR(resource), .kind = STR(name), .api_version = STR("v1"),              \
        .head = HEAD(name, "v1")
#define NAMED(resource, name, api)                                                                           \
        .group = STR(api), .plural = STR(resource), .kind = STR(name), .api_version = STR(api "/v1"),        \
        .head = HEAD(name, api "/v1")

/* Selectable fields: the conversions registered in
 * k8s.io/kubernetes/pkg/apis/<group>/v1/conversion.go. */
const StoreKind store_kinds[STORE_N_KINDS] = {
        {CORE("pods", "Pod"), .singular = "pod", .short_name = "po", .namespaced = true, .status = true,
         .selectable = {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
                        "spec.serviceAccountName", "status.phase", "status.podIP",
                        "status.nominatedNodeName"}},
        {CORE("nodes", "Node"), .singular = "node", .short_name = "no", .status = true,
         .selectable = {"spec.unschedulable"}},
        {CORE("namespaces", "Namespace"), .singular = "namespace", .short_name = "ns", .status = true,
         .must_name_version = true, .selectable = {"status.phase"}},
        {CORE("configmaps", "ConfigMap"), .singular = "configmap", .short_name = "cm", .namespaced = true},
        {CORE("secrets", "Secret"), .singular = "secret", .namespaced = true, .selectable = {"type"}},
        {CORE("services", "Service"), .singular = "service", .short_name = "svc", .namespaced = true,
         .status = true, .selectable = {"spec.clusterIP", "spec.type"}},
        {CORE("serviceaccounts", "ServiceAccount"), .singular = "serviceaccount", .short_name = "sa",
         .namespaced = true},
        {CORE("persistentvolumeclaims", "PersistentVolumeClaim"), .singular = "persistentvolumeclaim",
         .short_name = "pvc", .namespaced = true, .status = true},
        {CORE("resourcequotas", "ResourceQuota"), .singular = "resourcequota", .short_name = "quota",
         .namespaced = true, .status = true},
        {CORE("events", "Event"), .singular = "event", .short_name = "ev", .namespaced = true,
         .selectable = {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
                        "involvedObject.uid", "reason", "source", "type"}},
        {NAMED("deployments", "Deployment", "apps"), .singular = "deployment", .short_name = "deploy",
         .namespaced = true, .status = true},
        {NAMED("statefulsets", "StatefulSet", "apps"), .singular = "statefulset", .short_name = "sts",
         .namespaced = true, .status = true},
        {NAMED("replicasets", "ReplicaSet", "apps"), .singular = "replicaset", .short_name = "rs",
         .namespaced = true, .status = true, .selectable = {"status.replicas"}},
        {NAMED("daemonsets", "DaemonSet", "apps"), .singular = "daemonset", .short_name = "ds",
         .namespaced = true, .status = true},
        {NAMED("jobs", "Job", "batch"), .singular = "job", .namespaced = true, .status = true,
         .selectable = {"status.successful"}},
        {NAMED("leases", "Lease", "coordination.k8s.io"), .singular = "lease", .namespaced = true,
         .must_name_version = true},
        {NAMED("poddisruptionbudgets", "PodDisruptionBudget", "policy"), .singular = "poddisruptionbudget",
         .short_name = "pdb", .namespaced = true, .status = true},
        {.group = STR("scheduling.alibabacloud.com"),
         .plural = STR("resourcepolicies"),
         .kind = STR("ResourcePolicy"),
         .version = STR("v1alpha1"),
         .api_version = STR("scheduling.alibabacloud.com/v1alpha1"),
         .head = HEAD("ResourcePolicy", "scheduling.alibabacloud.com/v1alpha1"),
         .singular = "resourcepolicy",
         .namespaced = true,
         .status = true},
};

const StoreKind *store_kind_by_plural(Str group, Str plural) {
        for (size_t i = 0; i < STORE_N_KINDS; i++)
                if (str_eq(store_kinds[i].group, group) && str_eq(store_kinds[i].plural, plural))
                        return &store_kinds[i];
        return NULL;
}

const StoreKind *store_kind_by_kind(Str api_version, Str kind) {
        for (size_t i = 0; i < STORE_N_KINDS; i++)
                if (str_eq(store_kinds[i].api_version, api_version) && str_eq(store_kinds[i].kind, kind))
                        return &store_kinds[i];
        return NULL;
}

void store_kind_qualified(const StoreKind *kind, char *into, size_t size) {
        (void) snprintf(into, size, STR_FMT "%s" STR_FMT, STR_ARG(kind->plural),
                        str_is_empty(kind->group) ? "" : ".", STR_ARG(kind->group));
}
