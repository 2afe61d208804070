/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kubernetes objects as trees, for code that splits manifests and builds objects. Not for hot
 * paths, which decode text (wire/json.h). */

#include <jansson.h>

#include "base/cleanup.h"

#define _sentinel_ __attribute__((sentinel))

/* The value at a path of member names, NULL when any step is absent. */
json_t *tree_at(const json_t *from, ...) _sentinel_;

/* The same for a string; NULL also when the value is no string. */
const char *tree_text(const json_t *from, ...) _sentinel_;

/* The object at a path, made where it is absent or null. NULL when out of memory, or when a value
 * on the path is no object. */
json_t *tree_make(json_t *from, ...) _sentinel_;

/* Writes "namespace/name"; the namespace is `default` when the object has none. */
enum { TREE_NAME_MAX = 560 }; /* two DNS subdomains and a slash */
void tree_pod_name(const json_t *object, char buffer[static TREE_NAME_MAX]);

/* tree_set_text() sets a string member, tree_default_text() only where it is absent. Return 0 or
 * -ENOMEM. */
int tree_set_text(json_t *object, const char *key, const char *value);
int tree_default_text(json_t *object, const char *key, const char *value);

#define _cleanup_json_ _cleanup_(json_decrefp) /* jansson's own, for NULL too */
