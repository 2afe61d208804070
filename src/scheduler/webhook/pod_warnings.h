/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an allowed pod says that has another effect than its author may think. kubectl shows each
 * sentence as a warning. Pure. The API server cuts a warning at 256 characters. */

#include "base/buf.h"
#include "share/request.h"

/* Appends a sentence for each finding, with a newline behind it. request: of the pod; NULL: it asks
 * for nothing, or for what is refused. gangs: gangs are placed as wholes. 0 or -ENOMEM. */
int pod_warnings(const Pod *pod, const Request *request, bool gangs, Buf *out);

/* Appends a text as such a sentence, nothing for an empty one. 0 or -ENOMEM. */
int pod_warnings_add(const Buf *text, Buf *out);
