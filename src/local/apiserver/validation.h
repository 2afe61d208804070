/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the API server refuses in a create or an update, for the mistakes that manifests can have.
 * immutable.c has the members that an update may not change. */

#include "local/apiserver/text.h"
#include "local/apiserver/violation.h"

/* Validates the whole object, admitted, with the name and namespace it will have. Returns 0,
 * -ENOMEM, or STORE_VALID_E_* with the first violation. */
int store_validate(const StoreKind *kind, Str object, const StoreIdentity *id, StoreViolation *ret);

/* Validates an update. Of a pod's spec only images, tolerations and activeDeadlineSeconds may
 * change, and schedulingGates may be removed. */
int store_validate_update(const StoreKind *kind, Str old_object, Str new_object, StoreViolation *ret);

/* the annotations of a Binding */
int store_validate_annotations(Str annotations, StoreViolation *ret);

/* RFC 1123, up to 253 characters: the form of object names */
bool store_is_dns_subdomain(Str name);
