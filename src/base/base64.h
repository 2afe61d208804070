/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"

/* Appends the bytes that standard base64 (RFC 4648, padding optional, line breaks passed over)
 * stands for. false, and *out as it was, when the text is malformed. */
bool base64_decode(Str text, Buf *out);

/* Standard base64 with padding, in one line. */
void base64_encode(Buf *out, Str bytes);
