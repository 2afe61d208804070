/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kubernetes objects as trees, for the parts of a cluster that take manifests apart and put new
 * objects together. Not for hot paths: those decode text (wire/json.h). */

#include <jansson.h>

#include "base/cleanup.h"

#define _sentinel_ __attribute__((sentinel))

/* The value at a path of member names, NULL when any step is absent. */
json_t *tree_at(const json_t *from, ...) _sentinel_;

/* The same for a string; NULL also when something else stands there. */
const char *tree_text(const json_t *from, ...) _sentinel_;

/* The object at a path, made where it is absent or null; NULL when out of memory or when something
 * else stands in the way. */
json_t *tree_make(json_t *from, ...) _sentinel_;

/* "namespace/name" as people know an object; `default` when it names no namespace. Buffer of the
 * caller. */
enum { TREE_NAME_MAX = 560 }; /* two DNS subdomains and a slash */
void tree_pod_name(const json_t *object, char buffer[static TREE_NAME_MAX]);

/* Sets a string member, unless it is there already (`default`). 0 or -ENOMEM. */
int tree_set_text(json_t *object, const char *key, const char *value);
int tree_default_text(json_t *object, const char *key, const char *value);

#define _cleanup_json_ _cleanup_(json_decrefp) /* jansson's own, for NULL too */
