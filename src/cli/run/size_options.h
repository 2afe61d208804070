/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The options that say how large a slice is: --gpu-mem, --gpu-mem-unit and --gpu-core of
 * `aliquot run` (main.c) and `aliquot resize` (resize.c). */

#include "base/options.h"
#include "cli/run/slicing.h"

typedef struct SizeOptions {
        SliceRequest request; /* mem and unit_mib: complete after size_options_finish() */
        uint32_t units;       /* --gpu-mem without a unit of its own; 0: not given, or with one */
        const char *mem;      /* --gpu-mem as the user wrote it; NULL: not given */
        bool has_core;        /* --gpu-core is given */
        const char *unit;     /* as the user wrote it; NULL: not given */
} SizeOptions;

/* Handlers for the options table of a program. Its options begin with a SizeOptions. */
int size_options_take_mem(void *options, const Option *option, const char *text, Fault *fault);
int size_options_take_unit(void *options, const Option *option, const char *text, Fault *fault);
int size_options_take_core(void *options, const Option *option, const char *text, Fault *fault);

#define SIZE_OPTIONS(core_help)                                                                              \
        {"gpu-mem", "N", "memory of each card: a number of units, or an amount as 2GiB or 512MiB",           \
         OPTION_TO_CALL(size_options_take_mem)},                                                             \
                {"gpu-mem-unit", "U", "the unit: GiB (default), 128MiB...",                                  \
                 OPTION_TO_CALL(size_options_take_unit)},                                                    \
        {                                                                                                    \
                "gpu-core", "P", core_help, OPTION_TO_CALL(size_options_take_core)                           \
        }

/* Whether --gpu-mem is given. */
bool size_options_has_mem(const SizeOptions *o);

/* Completes the request after all options are read. Returns OPTIONS_GO, or the exit status of wrong
 * usage. */
int size_options_finish(const OptionsTable *table, SizeOptions *o);
