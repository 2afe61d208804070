/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"

/* Appends the bytes that the standard base64 text encodes (RFC 4648; padding is optional, line
 * breaks are ignored). Returns false and leaves *out unchanged when the text is malformed. */
bool base64_decode(Str text, Buf *out);

/* Appends standard base64 with padding, in one line. */
void base64_encode(Buf *out, Str bytes);
