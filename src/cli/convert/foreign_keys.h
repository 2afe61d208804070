/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names by which other systems share cards: HAMi and its relatives, and those that nothing here
 * reads. A manifest that still has one after its conversion asks a cluster of ours for nothing. */

#include <jansson.h>
#include <stdbool.h>

/* The system of a resource name, a label or an annotation; NULL when it is none of them. A quota's
 * "requests." and "limits." before the name are passed over. */
const char *foreign_key_system(const char *key);

/* The same for the text of a value, as Kueue's coveredResources lists names. */
const char *foreign_key_of_value(const char *text);

/* A member whose name counts only where it stands: nvidia.com/gpu as an amount other than 0, and
 * the label gpu=on of HAMi's nodes in a selector. `parent` is the member's object in the
 * document, "" at the top. Returns the system, or NULL. */
const char *foreign_key_of_member(const char *parent, const char *key, const json_t *value);
