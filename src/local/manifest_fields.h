/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The fields of the kinds that manifests have, for manifest_check.h. */

#include <stddef.h>

typedef struct ManifestType {
        const char *name;
        /* "NAME NAME:TYPE": separated by blanks; TYPE is the type of the member, or of the items of
         * its list. A member without TYPE has any content. */
        const char *fields;
} ManifestType;

extern const ManifestType manifest_types[]; /* sorted by name */
extern const size_t manifest_n_types;
