/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"

/* RFC 4648 with padding; line ends are passed over, as Go does when it reads certificates. false, with *out as it
 * was, when the text is anything else. Out of memory shows in *out. */
bool base64_decode(Str text, Buf *out);
