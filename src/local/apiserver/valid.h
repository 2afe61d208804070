/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the API server would refuse to create, as far as our users' manifests can get it wrong. */

#include "local/apiserver/text.h"

enum {
        STORE_VALID_E_TYPE = 1, /* 400: a member has the wrong type */
        STORE_VALID_E_RULE,     /* 422: a rule is broken */
};

typedef struct StoreViolation {
        char field[256];    /* spec.containers[0].resources.limits[aliyun.com/gpu-mem] */
        const char *reason; /* of the Status cause: FieldValueInvalid, FieldValueRequired... */
        Fault rule;         /* Invalid value: "500m": must be an integer */
} StoreViolation;

/* The whole object, admitted, with the name and namespace it will have. Returns 0, STORE_VALID_E_*
 * with the first violation, or -ENOMEM. */
int store_validate(const StoreKind *kind, Str object, const StoreIdentity *id, StoreViolation *ret);

/* What may not change in an update: of a pod everything in spec but images, tolerations and the
 * deadline. */
int store_validate_update(const StoreKind *kind, Str old_object, Str new_object, StoreViolation *ret);

int store_validate_annotations(Str annotations, StoreViolation *ret); /* of a Binding */

bool store_is_dns_subdomain(Str name); /* RFC 1123, up to 253 characters: what names of objects are */
