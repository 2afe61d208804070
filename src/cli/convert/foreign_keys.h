/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names by which other GPU sharing systems are requested: HAMi and its relatives, and systems
 * without a conversion here. A manifest that still has one after its conversion requests
 * nothing from Aliquot. */

#include <jansson.h>
#include <stdbool.h>

/* Returns the system of a resource name, a label or an annotation; NULL when it is none of them. A
 * quota's "requests." or "limits." before the name is skipped. */
const char *foreign_key_system(const char *key);

/* Like foreign_key_system(), for the text of a value, as Kueue's coveredResources lists names. */
const char *foreign_key_of_value(const char *text);

/* Like foreign_key_system(), for what is foreign only by its context. These are nvidia.com/gpu as a
 * nonzero amount in resources, and gpu=on (HAMi's node label) in a node selector. Also HAMi's
 * scheduler, and the variables of its library. parent: key of the enclosing object or list, "" at
 * the top. ret_what: the foreign word, borrowed. Returns the system, or NULL. */
const char *foreign_key_of_member(const char *parent, const char *key, const json_t *value,
                                  const char **ret_what);
