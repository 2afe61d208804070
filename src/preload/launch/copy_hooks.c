/* SPDX-License-Identifier: Apache-2.0 */

/* The hooked copies and fills of libcuda: their signatures, direction and size. */

#include <stddef.h>

#include "preload/launch/admission.h"
#include "preload/launch/copy_hooks.h"
#include "preload/launch/hooks.h"

/* What a hook knows of a copy. to: its destination if its kind depends on that. */
typedef struct Given {
        CopyKind kind;
        bool waits; /* the function copies from the host before it returns */
        bool twin;
        uint64_t bytes, to;
        CuHandle stream;
} Given;

/* Whether the driver knows the address as memory that is not of the host. */
static bool is_on_card(uint64_t address) {
        CuResult (*get)(void *, int, uint64_t) =
                (CuResult(*)(void *, int, uint64_t)) real_get(REAL_cuPointerGetAttribute);
        unsigned type = COPY_MEMORY_HOST;

        return get && get(&type, COPY_ATTRIBUTE_MEMORY_TYPE, address) == CU_SUCCESS &&
               type != COPY_MEMORY_HOST;
}

/* Admits the copy if it is limited, and returns the real function; 0: libcuda lacks it or is not
 * loaded. */
static uintptr_t enter(unsigned number, const Given *given, AdmittedLaunch *l) {
        Gate *g = admission_gate();
        Copy c = {.kind = given->kind, .bytes = given->bytes};
        uintptr_t real = real_get(number);

        l->process = NULL;
        l->no_context = false;
        if (LIKELY(!g) || real == 0 || c.bytes < MIN_HELD_BYTES || c.kind == COPY_NOT_HELD ||
            (given->to != 0 && !is_on_card(given->to)))
                return real;
        c.blocks = given->waits && (c.kind == COPY_FROM_HOST || c.kind == COPY_FROM_ANY);
        admission_enter_copy(g, l, &c, given->stream, given->twin);
        return real;
}

static CuResult leave(AdmittedLaunch *l, CuResult r) {
        admission_leave(l, r);
        return r;
}

/* Defines one hook. ...: members of Given. */
#define COPY_HOOK(symbol, types, names, ...)                                                                 \
        CuResult aliquot_##symbol types EXPORTED(#symbol);                                                   \
        CuResult aliquot_##symbol types {                                                                    \
                AdmittedLaunch l;                                                                            \
                CuResult(*real) types =                                                                      \
                        (CuResult(*) types) enter(REAL_##symbol, &(const Given){__VA_ARGS__}, &l);           \
                                                                                                             \
                return real ? leave(&l, real names) : CU_ERROR_NOT_INITIALIZED;                              \
        }

/* Define both variants of a function without a stream, and of one with a stream. */
#define IN_DEFAULT(symbol, types, names, ...)                                                                \
        COPY_HOOK(symbol, types, names, .waits = true, __VA_ARGS__)                                          \
        COPY_HOOK(symbol##_ptds, types, names, .waits = true, .twin = true, __VA_ARGS__)
#define IN_STREAM(symbol, types, names, ...)                                                                 \
        COPY_HOOK(symbol, types, names, .stream = stream, __VA_ARGS__)                                       \
        COPY_HOOK(symbol##_ptsz, types, names, .stream = stream, .twin = true, __VA_ARGS__)

/* ---- copies of contiguous bytes ---- */

#define FROM_HOST .kind = COPY_FROM_HOST, .bytes = n
#define IN_CARD   .kind = COPY_IN_CARD, .bytes = n
#define FROM_ANY  .kind = COPY_FROM_ANY, .bytes = n, .to = to

#define ANY_TYPES  (uint64_t to, uint64_t from, size_t n)
#define ANY_STREAM (uint64_t to, uint64_t from, size_t n, CuHandle stream)
IN_DEFAULT(cuMemcpy, ANY_TYPES, (to, from, n), FROM_ANY)
IN_STREAM(cuMemcpyAsync, ANY_STREAM, (to, from, n, stream), FROM_ANY)
IN_DEFAULT(cuMemcpyDtoD_v2, ANY_TYPES, (to, from, n), IN_CARD)
IN_STREAM(cuMemcpyDtoDAsync_v2, ANY_STREAM, (to, from, n, stream), IN_CARD)

IN_DEFAULT(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t n), (to, from, n), FROM_HOST)
IN_STREAM(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t n, CuHandle stream),
          (to, from, n, stream), FROM_HOST)

IN_DEFAULT(cuMemcpyHtoA_v2, (CuHandle to, size_t at, const void *from, size_t n), (to, at, from, n),
           FROM_HOST)
IN_STREAM(cuMemcpyHtoAAsync_v2, (CuHandle to, size_t at, const void *from, size_t n, CuHandle stream),
          (to, at, from, n, stream), FROM_HOST)
IN_DEFAULT(cuMemcpyDtoA_v2, (CuHandle to, size_t at, uint64_t from, size_t n), (to, at, from, n), IN_CARD)
IN_DEFAULT(cuMemcpyAtoD_v2, (uint64_t to, CuHandle from, size_t at, size_t n), (to, from, at, n), IN_CARD)
IN_DEFAULT(cuMemcpyAtoA_v2, (CuHandle to, size_t at, CuHandle from, size_t from_at, size_t n),
           (to, at, from, from_at, n), IN_CARD)

/* ---- copies of rows and boxes ---- */

static CopyKind kind_between(unsigned from, unsigned to) {
        return to == COPY_MEMORY_HOST                                     ? COPY_NOT_HELD
               : from == COPY_MEMORY_HOST                                 ? COPY_FROM_HOST
               : from == COPY_MEMORY_UNIFIED || to == COPY_MEMORY_UNIFIED ? COPY_FROM_ANY
                                                                          : COPY_IN_CARD;
}

static uint64_t destination(unsigned to, uint64_t address) {
        return to == COPY_MEMORY_UNIFIED ? address : 0;
}

#define SIDES(c)                                                                                             \
        .kind = (c) ? kind_between((c)->from.type, (c)->to.type) : COPY_NOT_HELD,                            \
        .to = (c) ? destination((c)->to.type, (c)->to.device) : 0
#define ROWS(c) SIDES(c), .bytes = (c) ? (uint64_t) (c)->width * (c)->height : 0
#define BOX(c)  SIDES(c), .bytes = (c) ? (uint64_t) (c)->width * (c)->height * (c)->depth : 0

IN_DEFAULT(cuMemcpy2D_v2, (const CopyRows *copy), (copy), ROWS(copy))
IN_DEFAULT(cuMemcpy2DUnaligned_v2, (const CopyRows *copy), (copy), ROWS(copy))
IN_STREAM(cuMemcpy2DAsync_v2, (const CopyRows *copy, CuHandle stream), (copy, stream), ROWS(copy))
IN_DEFAULT(cuMemcpy3D_v2, (const CopyBox *copy), (copy), BOX(copy))
IN_STREAM(cuMemcpy3DAsync_v2, (const CopyBox *copy, CuHandle stream), (copy, stream), BOX(copy))

/* ---- fills ---- */

#define FILLED(count) .kind = COPY_FILL, .bytes = (uint64_t) (count) * sizeof value
#define FILL(bits, type)                                                                                     \
        IN_DEFAULT(cuMemsetD##bits##_v2, (uint64_t to, type value, size_t n), (to, value, n), FILLED(n))     \
        IN_STREAM(cuMemsetD##bits##Async, (uint64_t to, type value, size_t n, CuHandle stream),              \
                  (to, value, n, stream), FILLED(n))                                                         \
        IN_DEFAULT(cuMemsetD2D##bits##_v2,                                                                   \
                   (uint64_t to, size_t pitch, type value, size_t width, size_t height),                     \
                   (to, pitch, value, width, height), FILLED(width *height))                                 \
        IN_STREAM(cuMemsetD2D##bits##Async,                                                                  \
                  (uint64_t to, size_t pitch, type value, size_t width, size_t height, CuHandle stream),     \
                  (to, pitch, value, width, height, stream), FILLED(width *height))

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)
