/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the API server refuses in a create or an update, for the mistakes that manifests can have.
 * immutable.c has the members that an update may not change. */

#include "local/apiserver/text.h"
#include "local/apiserver/violation.h"

/* The whole object, admitted, with the name and namespace it will have. Returns 0, STORE_VALID_E_*
 * with the first violation, or -ENOMEM. */
int store_validate(const StoreKind *kind, Str object, const StoreIdentity *id, StoreViolation *ret);

/* What may not change in an update: of a pod everything in spec but images, tolerations and the
 * deadline. */
int store_validate_update(const StoreKind *kind, Str old_object, Str new_object, StoreViolation *ret);

int store_validate_annotations(Str annotations, StoreViolation *ret); /* of a Binding */

bool store_is_dns_subdomain(Str name); /* RFC 1123, up to 253 characters: what names of objects are */
