/* SPDX-License-Identifier: Apache-2.0 */

/* The hooked copies and fills of libcuda: their signatures, ends and size. */

#include <stddef.h>

#include "preload/launch/admission.h"
#include "preload/launch/copy_hooks.h"
#include "preload/launch/hooks.h"

/* One end of a copy. type: the memory that the application names; a host pointer may be an address
 * of the card all the same. at: 0 for an array. */
typedef struct CopyEnd {
        unsigned type;
        uint64_t at;
} CopyEnd;

/* What a hook knows of a copy. */
typedef struct Given {
        CopyEnd to, from;
        bool fills;
        bool waits; /* the function returns after a copy from or to the host */
        bool twin;
        uint64_t bytes;
        CuHandle stream;
} Given;

/* ---- what a copy is ---- */

/* False: the driver does not know the address. */
static bool ask_attribute(int number, uint64_t address, unsigned *ret) {
        CuResult (*get)(void *, int, uint64_t) =
                (CuResult(*)(void *, int, uint64_t)) real_get(REAL_cuPointerGetAttribute);

        *ret = 0;
        return get && get(ret, number, address) == CU_SUCCESS;
}

/* 0: the driver does not know the address. */
static unsigned pointer_attribute(int number, uint64_t address) {
        unsigned value;

        return ask_attribute(number, address, &value) ? value : 0;
}

static bool is_named_card(CopyEnd e) {
        return e.type == COPY_MEMORY_DEVICE || e.type == COPY_MEMORY_ARRAY;
}

static bool is_card(CopyEnd e) {
        return is_named_card(e) || pointer_attribute(COPY_ATTRIBUTE_MEMORY_TYPE, e.at) > COPY_MEMORY_HOST;
}

static bool is_managed(CopyEnd e) {
        return (e.type == COPY_MEMORY_DEVICE || e.type == COPY_MEMORY_UNIFIED) &&
               pointer_attribute(COPY_ATTRIBUTE_IS_MANAGED, e.at) != 0;
}

/* Between cards the copy is no kernel. libcuda looks at the addresses, not at the contexts. */
static bool is_between_cards(const Gate *g, const Given *c) {
        unsigned to, from;

        return g->n_cards > 1 && ask_attribute(COPY_ATTRIBUTE_ORDINAL, c->to.at, &to) &&
               ask_attribute(COPY_ATTRIBUTE_ORDINAL, c->from.at, &from) && to != from;
}

/* NVIDIA's libcuda copies by a kernel, whatever the size, where both ends are memory of one card or
 * one is managed memory. It also fills by kernels, except small single lines
 * (docs/internals/native-driver.md). */
static CopyKind kind_of(const Gate *g, const Given *c) {
        bool to_card, both;

        if (c->fills)
                return COPY_FILL;
        to_card = is_card(c->to);
        both = to_card && is_card(c->from);
        if ((both && !is_between_cards(g, c)) || is_managed(c->from) || is_managed(c->to))
                return COPY_IN_CARD;
        return to_card && !both && c->bytes >= MIN_HELD_BYTES ? COPY_FROM_HOST : COPY_NOT_HELD;
}

/* Admits the copy if it is limited, and returns the real function; 0: libcuda lacks it or is not
 * loaded. */
static uintptr_t enter_copy(unsigned number, const Given *given, AdmittedLaunch *l) {
        Gate *g = admission_gate();
        Copy c = {.bytes = given->bytes};
        uintptr_t real = real_get(number);

        l->process = NULL;
        l->no_context = false;
        if (LIKELY(!g) || real == 0 || given->bytes == 0)
                return real;
        c.kind = kind_of(g, given);
        if (c.kind == COPY_NOT_HELD)
                return real;
        c.blocks = given->waits && !given->fills && !(is_named_card(given->to) && is_named_card(given->from));
        admission_enter_copy(g, l, &c, given->stream, given->twin);
        return real;
}

static CuResult leave_copy(AdmittedLaunch *l, CuResult r) {
        admission_leave(l, r);
        return r;
}

/* Defines one hook. ...: members of Given. */
#define COPY_HOOK(symbol, types, names, ...)                                                                 \
        CuResult aliquot_##symbol types EXPORTED(#symbol);                                                   \
        CuResult aliquot_##symbol types {                                                                    \
                AdmittedLaunch l;                                                                            \
                CuResult(*real) types =                                                                      \
                        (CuResult(*) types) enter_copy(REAL_##symbol, &(const Given){__VA_ARGS__}, &l);      \
                                                                                                             \
                return real ? leave_copy(&l, real names) : CU_ERROR_NOT_INITIALIZED;                         \
        }

/* Define both variants of a function without a stream, and of one with a stream. */
#define IN_DEFAULT(symbol, types, names, ...)                                                                \
        COPY_HOOK(symbol, types, names, .waits = true, __VA_ARGS__)                                          \
        COPY_HOOK(symbol##_ptds, types, names, .waits = true, .twin = true, __VA_ARGS__)
#define IN_STREAM(symbol, types, names, ...)                                                                 \
        COPY_HOOK(symbol, types, names, .stream = stream, __VA_ARGS__)                                       \
        COPY_HOOK(symbol##_ptsz, types, names, .stream = stream, .twin = true, __VA_ARGS__)

/* ---- copies of contiguous bytes ---- */

static CopyEnd end_of(unsigned type, const void *host, uint64_t device) {
        return (CopyEnd){type, type == COPY_MEMORY_HOST ? (uintptr_t) host : device};
}

#define HOST(p)           end_of(COPY_MEMORY_HOST, p, 0)
#define CARD(address)     end_of(COPY_MEMORY_DEVICE, NULL, address)
#define ANY(address)      end_of(COPY_MEMORY_UNIFIED, NULL, address)
#define ARRAY             end_of(COPY_MEMORY_ARRAY, NULL, 0)
#define BYTES(end, other) .to = end, .from = other, .bytes = n

#define ANY_TYPES  (uint64_t to, uint64_t from, size_t n)
#define ANY_STREAM (uint64_t to, uint64_t from, size_t n, CuHandle stream)
IN_DEFAULT(cuMemcpy, ANY_TYPES, (to, from, n), BYTES(ANY(to), ANY(from)))
IN_STREAM(cuMemcpyAsync, ANY_STREAM, (to, from, n, stream), BYTES(ANY(to), ANY(from)))
IN_DEFAULT(cuMemcpyDtoD_v2, ANY_TYPES, (to, from, n), BYTES(CARD(to), CARD(from)))
IN_STREAM(cuMemcpyDtoDAsync_v2, ANY_STREAM, (to, from, n, stream), BYTES(CARD(to), CARD(from)))

IN_DEFAULT(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t n), (to, from, n),
           BYTES(CARD(to), HOST(from)))
IN_STREAM(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t n, CuHandle stream),
          (to, from, n, stream), BYTES(CARD(to), HOST(from)))
IN_DEFAULT(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t n), (to, from, n), BYTES(HOST(to), CARD(from)))
IN_STREAM(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t n, CuHandle stream), (to, from, n, stream),
          BYTES(HOST(to), CARD(from)))

IN_DEFAULT(cuMemcpyHtoA_v2, (CuHandle to, size_t at, const void *from, size_t n), (to, at, from, n),
           BYTES(ARRAY, HOST(from)))
IN_STREAM(cuMemcpyHtoAAsync_v2, (CuHandle to, size_t at, const void *from, size_t n, CuHandle stream),
          (to, at, from, n, stream), BYTES(ARRAY, HOST(from)))
IN_DEFAULT(cuMemcpyAtoH_v2, (void *to, CuHandle from, size_t at, size_t n), (to, from, at, n),
           BYTES(HOST(to), ARRAY))
IN_STREAM(cuMemcpyAtoHAsync_v2, (void *to, CuHandle from, size_t at, size_t n, CuHandle stream),
          (to, from, at, n, stream), BYTES(HOST(to), ARRAY))
IN_DEFAULT(cuMemcpyDtoA_v2, (CuHandle to, size_t at, uint64_t from, size_t n), (to, at, from, n),
           BYTES(ARRAY, CARD(from)))
IN_DEFAULT(cuMemcpyAtoD_v2, (uint64_t to, CuHandle from, size_t at, size_t n), (to, from, at, n),
           BYTES(CARD(to), ARRAY))
IN_DEFAULT(cuMemcpyAtoA_v2, (CuHandle to, size_t at, CuHandle from, size_t from_at, size_t n),
           (to, at, from, from_at, n), BYTES(ARRAY, ARRAY))

IN_DEFAULT(cuMemcpyPeer, (uint64_t to, CuHandle to_context, uint64_t from, CuHandle from_context, size_t n),
           (to, to_context, from, from_context, n), BYTES(CARD(to), CARD(from)))
IN_STREAM(cuMemcpyPeerAsync,
          (uint64_t to, CuHandle to_context, uint64_t from, CuHandle from_context, size_t n, CuHandle stream),
          (to, to_context, from, from_context, n, stream), BYTES(CARD(to), CARD(from)))

/* ---- copies of rows and boxes ---- */

#define END(c, side) (c) ? end_of((c)->side.type, (c)->side.host, (c)->side.device) : end_of(0, NULL, 0)
#define ROWS(c)      .to = END(c, to), .from = END(c, from), .bytes = (c) ? (uint64_t) (c)->width * (c)->height : 0
#define BOX(c)                                                                                               \
        .to = END(c, to), .from = END(c, from),                                                              \
        .bytes = (c) ? (uint64_t) (c)->width * (c)->height * (c)->depth : 0

#define ROWS_STREAM (const CopyRows *copy, CuHandle stream)
#define BOX_STREAM  (const CopyBox *copy, CuHandle stream)
IN_DEFAULT(cuMemcpy2D_v2, (const CopyRows *copy), (copy), ROWS(copy))
IN_DEFAULT(cuMemcpy2DUnaligned_v2, (const CopyRows *copy), (copy), ROWS(copy))
IN_STREAM(cuMemcpy2DAsync_v2, ROWS_STREAM, (copy, stream), ROWS(copy))
IN_DEFAULT(cuMemcpy3D_v2, (const CopyBox *copy), (copy), BOX(copy))
IN_STREAM(cuMemcpy3DAsync_v2, BOX_STREAM, (copy, stream), BOX(copy))
IN_DEFAULT(cuMemcpy3DPeer, (const CopyBox *copy), (copy), BOX(copy))
IN_STREAM(cuMemcpy3DPeerAsync, BOX_STREAM, (copy, stream), BOX(copy))

/* ---- fills ---- */

#define FILLED(count) .fills = true, .bytes = (uint64_t) (count) * sizeof value
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
