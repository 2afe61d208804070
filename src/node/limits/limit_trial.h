/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The trial whether the driver limits memory here: on each card a limit is set on a cgroup of our
 * own, read back, and lifted. */

#include "gpu/cards/card_source.h"

typedef struct LimitTrial LimitTrial;

/* Called once. fault: NULL when the driver limited memory on each card. dmem: the cgroup has the
 * files of the kernel's dmem controller. */
typedef void (*LimitTrialDone)(void *userdata, bool dmem, const Fault *fault);

/* cgroup_root: where this process sees the tree. A trial that cannot begin is a failed one. 0 or
 * -ENOMEM. */
int limit_trial_new(CardSource *source, const CardList *cards, const char *cgroup_root, LimitTrialDone done,
                    void *userdata, LimitTrial **ret);
LimitTrial *limit_trial_free(LimitTrial *t); /* removes its cgroup; done is not called any more */
