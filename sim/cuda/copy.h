/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Turns a copy of the API into addresses. */

#include "sim/cuda/api_copy.h"
#include "sim/cuda/work.h"

/* INVALID_VALUE, INVALID_HANDLE (of an array). Whether the memory is allocated is checked by
 * work_check(). */
CUresult copy_resolve(const CUDA_MEMCPY3D *box, Copy *ret);
