/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/str.h"

/* Results other than 0. The text should then be shown as it was written. */
typedef enum QuantityResult {
        QUANTITY_E_MALFORMED = 1, /* not a Kubernetes quantity */
        QUANTITY_E_FRACTION,      /* a quantity, but not a whole number: 1.5, 500m */
        QUANTITY_E_RANGE,         /* negative, or over 2^63 - 1 */
} QuantityResult;

/* Parses a Kubernetes Quantity that must be a whole, non-negative number: "8", "2k", "1e3", "1Ki",
 * "1.5k" (1500), "0.5Gi". Every form occurs: the API server keeps "2k" as it was written and turns
 * 100000 into "100k". Grammar: k8s.io/apimachinery/pkg/api/resource, quantity.go. Returns 0 and
 * sets *ret, or a QuantityResult. */
int quantity_parse(Str text, uint64_t *ret);

/* Parses a quantity in thousandths, rounded up as Quantity.MilliValue() does, for amounts such as
 * "1500m" and "1.5" of cpu. False for what is not a quantity, and for amounts that are negative or
 * over 2^63 - 1 thousandths. */
bool quantity_parse_milli(Str text, int64_t *ret);
