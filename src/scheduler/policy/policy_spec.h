/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A ResourcePolicy (scheduling.alibabacloud.com/v1alpha1) as docs/use/resource-policy.md describes
 * it: which pods of a namespace fill which units of nodes in which order. */

#include "wire/object.h"
#include "wire/string_map.h"

enum { POLICY_E_MALFORMED = 1 };

/* The limits of the CRD. PAIRS: keys of the selector, and of each map of a unit. */
enum { POLICY_UNITS_MAX = 32, POLICY_KEYS_MAX = 16, POLICY_PAIRS_MAX = 64 };

/* Key in podLabels that makes pods wait in the unit for nodes of an autoscaler. It is not written
 * into pods. */
#define POLICY_LABEL_WAITS "k8s.aliyun.com/resource-policy-wait-for-ecs-scaling"

/* Most of one resource that the pods of a unit may request together, in thousandths. */
typedef struct PolicyAmount {
        Str name;
        int64_t milli;
} PolicyAmount;

typedef struct PolicyUnit {
        Str resource;              /* ecs, eci, elastic or acs */
        StringMap selects;         /* its nodeSelector */
        bool any_node;             /* no nodeSelector: all nodes that are not virtual */
        bool has_max;              /* max is set, if only to 0 */
        uint32_t max;              /* number of pods */
        PolicyAmount *max_amounts; /* its maxResources */
        size_t n_max_amounts;
        StringMap labels, annotations; /* podLabels and podAnnotations */
        bool waits;                    /* POLICY_LABEL_WAITS is "true" */
} PolicyUnit;

/* spec.whenTryNextUnits.policy */
typedef enum PolicyNext {
        POLICY_NEXT_LACK_OR_MAX, /* the default */
        POLICY_NEXT_MAX,
        POLICY_NEXT_LACK_AND_NO_TERMINATING,
        POLICY_NEXT_TIMEOUT_OR_MAX,
} PolicyNext;

typedef struct PolicySpec {
        ObjectMeta meta;
        int64_t generation;
        uint64_t created; /* seconds since 1970; 0: not known */
        StringMap selector;
        PolicyUnit *units;
        size_t n_units;
        Str *group_keys; /* matchLabelKeys */
        size_t n_group_keys;
        bool preempts_before_next; /* preemptPolicy: BeforeNextUnit */
        bool ignores_previous, ignores_terminating;
        PolicyNext next;
        uint64_t timeout;  /* seconds */
        uint64_t identity; /* hash of UID and spec: equal if nothing changed but the status */
        /* Why the policy is not in force, in sentences; "": it is. */
        Fault wrong;
        /* Members that have no effect, in sentences; "": none. */
        Fault ignored;
} PolicySpec;

/* Decodes one object; the result points into the text and the arena. Returns 0, POLICY_E_MALFORMED
 * with a fault (path and reason) when the object cannot be read, or -ENOMEM. A wrong type or value
 * in spec is no such error: ret->wrong tells of it. */
int policy_spec_decode(Str object, Arena *arena, PolicySpec *ret, Fault *fault);

/* Whether a key must not stand in podLabels and podAnnotations because it belongs to Kubernetes or
 * to Aliquot: a policy must not forge an allocation. */
bool policy_spec_key_is_reserved(Str key);
