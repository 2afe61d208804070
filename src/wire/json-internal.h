/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the reader's files share (json.c, json_lex.c, json_scalar.c). A function of json_lex.c takes
 * a position in the text, checks the token there against the grammar, and returns the position
 * behind it, or NULL after it recorded the fault. */

#include "wire/json.h"

/* Records the fault, unless there is one already, and moves the cursor to the end, so that every
 * later call finds nothing more. Returns NULL. */
const char *json_lex_fault(JsonReader *r, const char *at, const char *text);

/* Reads a string; p is behind its opening quote. Returns the position of its closing one. */
const char *json_lex_string(JsonReader *r, const char *p, bool *ret_escaped);

/* Reads a string, a number, true, false or null; p < end. */
const char *json_lex_scalar(JsonReader *r, const char *p);

/* Writes the text for which a string's raw text stands. Its escapes were checked by
 * json_lex_string(). out has room for 3 bytes per byte of the raw text, since a byte that
 * is not UTF-8 becomes U+FFFD. Returns the length. */
size_t json_unescape(Str raw, char *out);

/* Whether a value of this type stands next. A null is skipped and answers false; any other value is
 * a fault with the text `otherwise` (static). */
bool json_expect(JsonReader *r, JsonType type, const char *otherwise);
