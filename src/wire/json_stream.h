/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cuts an endless or a very long text into values while it arrives, in pieces of any size, so that memory is
 * bounded by one value and not by the response: JSON_STREAM_VALUES  a watch: JSON values one after another,
 * separated by blanks; JSON_STREAM_LIST    a Kubernetes List: {"metadata":{...},"items":[{...},...]}: each
 * element of the top-level member `items` is one value, and every other top-level member is one too. `items:
 * null` is an empty list, as Go writes a nil slice. Values are delimited by structure only; who decodes them
 * checks them. Pieces may be cut anywhere: the values, and the answer, are the same. */

#include "base/buf.h"
#include "base/fault.h"

typedef enum JsonStreamKind { JSON_STREAM_VALUES, JSON_STREAM_LIST } JsonStreamKind;

/* member: in a list the top-level key ("items" for each element), else empty; raw, as in the text.
 * value: complete text of the value, valid during the call. Return 0 to go on; anything else stops
 * the stream and comes back from json_stream_feed() or _finish(), then and ever after. The stream
 * must not be freed in here. */
typedef int (*JsonStreamValue)(void *userdata, Str member, Str value, Fault *fault);

typedef struct JsonStream JsonStream;

enum { JSON_STREAM_E_MALFORMED = 1, JSON_STREAM_E_TOO_LONG };

/* max_value: a value (or a top-level key) longer than this many bytes is refused, before it is
 * buffered. Returns 0 or -ENOMEM. */
int json_stream_new(JsonStreamKind kind, size_t max_value, JsonStreamValue value, void *userdata,
                    JsonStream **ret);
JsonStream *json_stream_free(JsonStream *s);

/* From now on a value over the limit does not end the stream: it is passed over unbuffered, and the
 * callback gets {NULL, 0} in its place. (A value is never empty otherwise.) A key that long is
 * still refused. */
void json_stream_skip_long(JsonStream *s);

/* Takes the next bytes. 0, JSON_STREAM_E_MALFORMED, JSON_STREAM_E_TOO_LONG, -ENOMEM, or what the
 * callback returned. */
int json_stream_feed(JsonStream *s, Str bytes, Fault *fault);

/* At the end of input, where a bare number is complete at last: 0 when it ended between values
 * (VALUES) or behind the list (LIST), else JSON_STREAM_E_MALFORMED. A watch that is cut within a
 * value ends so. */
int json_stream_finish(JsonStream *s, Fault *fault);

DEFINE_CLEANUP(JsonStream *, json_stream_free)
