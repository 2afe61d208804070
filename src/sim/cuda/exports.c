/* SPDX-License-Identifier: Apache-2.0 */

/* The map of exports for the linker: this text behind the preprocessor. */

#include "sim/cuda/names.h"
#define EXPORT(name, symbol, version, twin) symbol;
EXPORTS {
global:
        SERVED(EXPORT) local : *;
};
