/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Inside of the reader: the tokens of JSON, checked against the grammar. Each function takes a
 * place in the text and returns the place behind the token, or NULL after it recorded the fault. */

#include "wire/json.h"

/* The first fault stays. The cursor jumps to the end, so that every later call meets "nothing more"
 * by itself. */
const char *json_lex_fault(JsonReader *r, const char *at, const char *text);

/* p: behind the opening quote. Returns the closing one. */
const char *json_lex_string(JsonReader *r, const char *p, bool *ret_escaped);

/* Any of string, number, true, false, null; p < end. */
const char *json_lex_scalar(JsonReader *r, const char *p);

/* The value behind a string's raw text, whose escapes json_lex_string() has checked. out: room for
 * 3 bytes per byte of the raw text, the growth of a byte that becomes U+FFFD. Returns the
 * length. */
size_t json_unescape(Str raw, char *out);

/* Is it a value of this type that stands next? null is taken away and answers no; anything else is
 * a fault.
 */
bool json_expect(JsonReader *r, JsonType type, const char *otherwise);
