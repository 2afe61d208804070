/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* Appends the value as a YAML document in block style, members in their order, ending in a newline.
 * A string that another reader could take for something else is quoted, as JSON does it. */
void yaml_write(const json_t *value, Buf *out);
