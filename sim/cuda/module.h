/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Modules and their functions. Any image is accepted, and any name is found in it: there
 * is no code. A function whose name contains `sleep_us` runs for as many microseconds as its first
 * argument (32 bits), every other function for 5. */

#include "sim/cuda/memory.h"

typedef struct CUfunc_st {
        CUfunction next;
        char *name;
        bool sleeps;
        int block[3];
        unsigned char parameters[16]; /* of cuParamSet*() */
} CUfunc_st;

typedef struct CUmod_st {
        CUmodule next;
        CUcontext context;
        CUfunction functions;
} CUmod_st;

CUresult function_check(CUfunction f);
uint64_t function_time(CUfunction f, void **params, void **extra);
void modules_end_context(CUcontext c);
