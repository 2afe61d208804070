/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"

/* Appends the whole file, or standard input for "-", to *into. Files over `limit` bytes are refused before they are
 * read. Returns 0, -EFBIG over the limit, -ENOMEM, or the errno of open() or read(). */
int file_read(const char *path, size_t limit, Buf *into);
