/* SPDX-License-Identifier: Apache-2.0 */
#include "turnstile/real.h"

#include "guest/loaded.h"

_Atomic uintptr_t real_table[REAL_ALL];

#define REAL_SYMBOL(name, symbol, twin) #symbol,
#define REAL_SYMBOL_OF_USED(name)       #name,

static const char *const symbols[REAL_ALL] = {GATE_CUDA(REAL_SYMBOL) GATE_USES(REAL_SYMBOL_OF_USED)};

bool real_find(void) {
        ElfObject libcuda;

        if (!loaded_object("libcuda.so.1", &libcuda))
                return false;
        for (unsigned i = 0; i < REAL_ALL; i++)
                atomic_store_explicit(&real_table[i], (uintptr_t) loaded_function(&libcuda, symbols[i]),
                                      memory_order_release);
        return true;
}

bool real_is_captured(CuHandle stream) {
        int (*capturing)(CuHandle, int *) = (int (*)(CuHandle, int *)) real_get(REAL_cuStreamIsCapturing);
        int status = 0;

        return capturing && (capturing(stream, &status) != 0 || status != 0);
}
