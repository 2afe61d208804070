/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A line of the log as a JSON object. Pure.
 *
 *     bound pod=default/a node=n1
 *     {"time":"...","level":"info","message":"bound pod=default/a node=n1",
 *      "pod":"default/a","node":"n1"}
 *
 * The message is the whole text. Besides, each of its words KEY=VALUE is a field: KEY is of small
 * letters, digits, - and _; VALUE ends before the blank, and before a comma, colon or semicolon
 * there. A key that the object has already is not repeated, and at most 13 words become fields.
 * Values are strings. */

#include <stddef.h>

/* Enough for a text of `n` bytes: each may become six, as \u0001, in message and field. */
#define LOG_JSON_SIZE(n) (12 * (size_t) (n) + 256)

/* Writes the object and a line feed. What is not UTF-8 becomes U+FFFD, byte by byte. `time` and
 * `level` are copied as they are. Returns the length, or 0 where `size` is less than
 * LOG_JSON_SIZE(length of the text) and the lengths of both. */
size_t log_json_format(char *ret, size_t size, const char *time, const char *level, const char *text);
