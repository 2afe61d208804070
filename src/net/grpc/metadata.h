/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Header values of gRPC (grpc/doc/PROTOCOL-HTTP2.md): grpc-message, grpc-timeout, content-type.
 * Pure. */

#include "base/buf.h"
#include "base/clock.h"

/* Text is cut to this length, between UTF-8 characters. Percent-encoded, it stays below the 8 KiB
 * of headers that gRPC's C core accepts. */
enum { METADATA_MAX_TEXT = 2000 };

/* grpc-message is percent-encoded: everything but printable ASCII, and "%". */
void metadata_encode_text(Buf *b, Str text);

/* Decodes grpc-message into a NUL-terminated line for people: cut to fit, control characters become
 * blanks, and a "%" that encodes nothing stays. */
void metadata_decode_text(Str value, char *line, size_t size);

/* grpc-timeout: at most eight digits and a unit of H M S m u n. A timeout is rounded up, never
 * down. */
enum { METADATA_TIMEOUT_SIZE = 12 };
bool metadata_parse_timeout(Str value, usec_t *ret);
void metadata_format_timeout(usec_t timeout, char text[static METADATA_TIMEOUT_SIZE]);

/* Accepts "application/grpc", alone or followed by "+..." or ";...". */
bool metadata_is_grpc(Str content_type);
