/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names that are read on pods: labels, annotations, keys of the nodeSelector, variables of a
 * container's environment and resources. A name that is close to one of them and is not read
 * (wire/key_typo.h) is probably misspelt. A key of nodes (share/node_key.h) changes nothing on a
 * pod. Pure. */

#include "base/arena.h"
#include "base/buf.h"

enum { POD_KEY_NAMES_SAID = 16 }; /* most sentences about one pod */

/* pod: JSON of a pod, or of a pod template. Appends a sentence and a newline for each such name.
 * Nothing is appended for a text that is no pod. Returns 0 or -ENOMEM. */
int pod_key_names_check(Str pod, Arena *arena, Buf *out);

/* The same of the labels and annotations that a workload has itself: they are read in the metadata
 * of its pod template alone. metadata: JSON of the workload's. pod: of the template; a key that
 * stands there as well is passed over. path: of the template, such as "spec.template.". Returns 0
 * or -ENOMEM. */
int pod_key_names_check_outer(Str metadata, Str pod, const char *path, Arena *arena, Buf *out);
