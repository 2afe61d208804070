/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cuts an endless or a very long text into values while it arrives, in pieces of any size. Memory
 * is bounded by one value, not by the response.
 *
 *   JSON_STREAM_VALUES  a watch: JSON values one after another, separated by blanks
 *   JSON_STREAM_LIST    a Kubernetes List: {"metadata":{...},"items":[{...},...]}. Each element of
 *                       the top-level member `items` is one value, and so is every other top-level
 *                       member. `items: null` is an empty list, as Go writes a nil slice.
 *
 * Values are delimited by structure only; the decoder of a value checks it. Pieces may be cut
 * anywhere: the values, and the result, are the same. */

#include "base/buf.h"
#include "base/fault.h"

typedef enum JsonStreamKind { JSON_STREAM_VALUES, JSON_STREAM_LIST } JsonStreamKind;

/* member: in a list the top-level key ("items" for each element), raw as in the text; else empty.
 * value: the complete text, valid during the call. Return 0 to go on. Any other result stops the
 * stream, and json_stream_feed() and json_stream_finish() return it from then on. The callback must
 * not free the stream. */
typedef int (*JsonStreamValue)(void *userdata, Str member, Str value, Fault *fault);

typedef struct JsonStream JsonStream;

enum { JSON_STREAM_E_MALFORMED = 1, JSON_STREAM_E_TOO_LONG };

/* max_value: a value (or a top-level key) longer than this many bytes is refused, before it is
 * buffered. Returns 0 or -ENOMEM. */
int json_stream_new(JsonStreamKind kind, size_t max_value, JsonStreamValue value, void *userdata,
                    JsonStream **ret);
JsonStream *json_stream_free(JsonStream *s);

/* From now on a value over the limit does not end the stream. It is skipped without a buffer, and
 * the callback gets {NULL, 0} for it. (Otherwise a value is never empty.) A key over the limit is
 * still refused. */
void json_stream_skip_long(JsonStream *s);

/* Takes the next bytes. 0, JSON_STREAM_E_MALFORMED, JSON_STREAM_E_TOO_LONG, -ENOMEM, or what the
 * callback returned. */
int json_stream_feed(JsonStream *s, Str bytes, Fault *fault);

/* Call it at the end of input: only there a bare number is known to be complete. Returns 0 when the
 * input ended between values (VALUES) or behind the list (LIST). Otherwise, as for a watch that is
 * cut within a value, it returns JSON_STREAM_E_MALFORMED. */
int json_stream_finish(JsonStream *s, Fault *fault);

DEFINE_CLEANUP(JsonStream *, json_stream_free)
