/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Warnings about an allowed pod: what in it has another effect than its author may think. kubectl
 * shows each sentence; the API server cuts a warning at 256 characters. Pure. */

#include "base/buf.h"
#include "share/request.h"

/* Appends a sentence and a newline for each finding. request: of the pod; NULL: it asks for
 * nothing, or is refused. gangs: gangs are on. Returns 0 or -ENOMEM. */
int pod_warnings(const Pod *pod, const Request *request, bool gangs, Buf *out);

/* Appends the text and a newline; nothing if it is empty. Returns 0 or -ENOMEM. */
int pod_warnings_add(const Buf *text, Buf *out);
