/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The taint gpu-mem with the effect NoSchedule keeps nodes with cards for pods that ask for cards.
 * A new pod that asks for gpu-mem or whole cards gets a toleration of it. The API server's
 * admission plugin ExtendedResourceToleration, which is off by default, adds the same toleration to
 * pods that ask for gpu-mem, before webhooks run
 * (plugin/pkg/admission/extendedresourcetoleration). */

#include "scheduler/webhook/subject.h"

typedef struct TolerationNeed {
        bool wanted;   /* the pod asks for cards and does not tolerate the taint yet */
        bool has_list; /* the pod has a list of tolerations */
} TolerationNeed;

/* json: text of the pod in s. A pod that names its node needs none. A list that cannot be read is
 * left alone. Returns 0 or -ENOMEM. */
int toleration_read(const Subject *s, Str json, Arena *arena, TolerationNeed *ret);

/* Appends the operation of a JSON patch that adds the toleration. */
void toleration_write(const TolerationNeed *need, Buf *out);
