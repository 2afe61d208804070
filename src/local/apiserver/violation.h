/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why an object was refused: the answer of validation.h and types.h. */

#include "base/fault.h"

enum {
        STORE_VALID_E_TYPE = 1, /* 400: a member has the wrong type */
        STORE_VALID_E_RULE,     /* 422: a rule is broken */
};

typedef struct StoreViolation {
        char field[256]; /* spec.containers[0].resources.limits[aliyun.com/gpu-mem] */
        /* reason of the Status cause: FieldValueInvalid, FieldValueRequired... */
        const char *reason;
        Fault rule; /* Invalid value: "500m": must be an integer */
} StoreViolation;
