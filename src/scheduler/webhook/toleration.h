/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Nodes with cards can be kept for pods that ask for cards by one taint, with the name gpu-mem and
 * the effect NoSchedule. A new pod that asks for gpu-mem or for whole cards tolerates that taint.
 * The API server's admission plugin ExtendedResourceToleration adds the same toleration to pods
 * that ask for gpu-mem, before webhooks run; it is off by default
 * (plugin/pkg/admission/extendedresourcetoleration). */

#include "scheduler/webhook/subject.h"

typedef struct TolerationNeed {
        bool wanted;   /* the pod asks for cards and does not tolerate the taint yet */
        bool has_list; /* it has other tolerations */
} TolerationNeed;

/* json: of the pod in s. A pod that is bound by its manifest needs none. A list that cannot be read
 * is left as it is. 0 or -ENOMEM. */
int toleration_read(const Subject *s, Str json, Arena *arena, TolerationNeed *ret);

/* Appends the operation of a JSON patch that adds it. */
void toleration_write(const TolerationNeed *need, Buf *out);
