/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The text of a refusal for people, with the amounts of the node's cards. */

#include "base/buf.h"
#include "share/refusal.h"

/* Appends one sentence without a full stop:
 *
 *     container "main": aliyun.com/gpu-core.percentage is 33, must be a multiple of 5 from 5 to 100
 *     no card has 8 of gpu-mem free: gpu0 3 of 15, gpu1 7 of 15 */
void refusal_format(const Refusal *refusal, Buf *out);
