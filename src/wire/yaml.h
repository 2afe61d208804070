/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "base/fault.h"

enum { YAML_E_MALFORMED = 1 };

/* Called for each document of a stream, with its JSON text and the line where it begins. Empty
 * documents are skipped. A result that is not 0 ends the stream. */
typedef int (*YamlDocument)(void *userdata, Str json, unsigned line, Fault *fault);

/* Turns a YAML stream (JSON is YAML) into JSON documents; no other code reads YAML. Plain scalars
 * become what kubectl makes of them: null/~, true/false (also yes/no/on/off, as its YAML 1.1 does),
 * integers, floats, else strings. Quoted scalars are strings. Anchors and merge keys are resolved,
 * duplicate keys and non-scalar keys refused.
 *
 * Returns 0, YAML_E_MALFORMED with line and column, -ENOMEM, or the result of the callback. */
int yaml_documents(Str text, YamlDocument document, void *userdata, Fault *fault);
