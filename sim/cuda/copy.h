/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a copy of the API means in addresses. */

#include "sim/cuda/api_copy.h"
#include "sim/cuda/work.h"

/* INVALID_VALUE, INVALID_HANDLE (of an array); whether memory is there is work_check()'s to say. */
CUresult copy_resolve(const CUDA_MEMCPY3D *box, Copy *ret);
