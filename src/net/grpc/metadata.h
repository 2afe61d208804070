/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Header values of gRPC (grpc/doc/PROTOCOL-HTTP2.md): grpc-message, grpc-timeout, content-type.
 * Pure. */

#include "base/buf.h"
#include "base/clock.h"

/* Text is cut to this, between characters of UTF-8: percent-encoded it stays under the 8 KiB of
 * headers that gRPC's C core takes. */
enum { METADATA_MAX_TEXT = 2000 };

/* grpc-message is percent-encoded: everything but printable ASCII, and "%". */
void metadata_encode_text(Buf *b, Str text);

/* Back, as a NUL-terminated line for people: cut to fit, control characters as blanks, a "%" that
 * means nothing kept. */
void metadata_decode_text(Str value, char *line, size_t size);

/* grpc-timeout: at most eight digits and a unit of H M S m u n. A timeout is rounded up, never
 * down. */
enum { METADATA_TIMEOUT_SIZE = 12 };
bool metadata_parse_timeout(Str value, usec_t *ret);
void metadata_format_timeout(usec_t timeout, char text[static METADATA_TIMEOUT_SIZE]);

/* "application/grpc", alone or with "+..." or ";..." behind it. */
bool metadata_is_grpc(Str content_type);
