/* SPDX-License-Identifier: Apache-2.0 */

/* The kernels, as text that the driver compiles for its card; every card since 2017 accepts it.
 *
 *     sleep_us(us)                          until so much time has passed
 *     fill(at, words, value)
 *     work_sleep_us(us, iterations, out)    fixed work, whatever time it takes
 *     watch_sleep_us(us, out, most)         watches the clock for gaps: see compute.c
 *
 * A simulated card computes nothing. It lets a kernel with sleep_us in its name run for as long as
 * the first parameter says; work_sleep_us has that parameter for this reason only. */

#include "case.h"

#define HEAD ".version 6.3\n.target sm_70\n.address_size 64\n"

#define SLEEP                                                                                                \
        ".visible .entry sleep_us(.param .u32 us)\n"                                                         \
        "{\n"                                                                                                \
        ".reg .pred %p;\n"                                                                                   \
        ".reg .b64 %now, %end, %t;\n"                                                                        \
        ".reg .b32 %us;\n"                                                                                   \
        "ld.param.u32 %us, [us];\n"                                                                          \
        "mul.wide.u32 %t, %us, 1000;\n"                                                                      \
        "mov.u64 %now, %globaltimer;\n"                                                                      \
        "add.u64 %end, %now, %t;\n"                                                                          \
        "again:\n"                                                                                           \
        "mov.u64 %now, %globaltimer;\n"                                                                      \
        "setp.lt.u64 %p, %now, %end;\n"                                                                      \
        "@%p bra again;\n"                                                                                   \
        "ret;\n"                                                                                             \
        "}\n"

#define FILL                                                                                                 \
        ".visible .entry fill(.param .u64 at, .param .u32 n, .param .u32 value)\n"                           \
        "{\n"                                                                                                \
        ".reg .pred %p;\n"                                                                                   \
        ".reg .b64 %at, %off;\n"                                                                             \
        ".reg .b32 %i, %n, %v, %b, %d;\n"                                                                    \
        "ld.param.u64 %at, [at];\n"                                                                          \
        "ld.param.u32 %n, [n];\n"                                                                            \
        "ld.param.u32 %v, [value];\n"                                                                        \
        "cvta.to.global.u64 %at, %at;\n"                                                                     \
        "mov.u32 %b, %ctaid.x;\n"                                                                            \
        "mov.u32 %d, %ntid.x;\n"                                                                             \
        "mov.u32 %i, %tid.x;\n"                                                                              \
        "mad.lo.u32 %i, %b, %d, %i;\n"                                                                       \
        "setp.ge.u32 %p, %i, %n;\n"                                                                          \
        "@%p bra done;\n"                                                                                    \
        "mul.wide.u32 %off, %i, 4;\n"                                                                        \
        "add.u64 %at, %at, %off;\n"                                                                          \
        "st.global.u32 [%at], %v;\n"                                                                         \
        "done:\n"                                                                                            \
        "ret;\n"                                                                                             \
        "}\n"

/* A chain of dependent additions. It stores its result if that is one certain number, which it
 * never is: so the compiler keeps the loop. */
#define WORK                                                                                                 \
        ".visible .entry work_sleep_us(.param .u32 us, .param .u32 n, .param .u64 out)\n"                    \
        "{\n"                                                                                                \
        ".reg .pred %p;\n"                                                                                   \
        ".reg .b64 %out;\n"                                                                                  \
        ".reg .b32 %i, %n;\n"                                                                                \
        ".reg .f32 %a, %b, %c;\n"                                                                            \
        "ld.param.u32 %n, [n];\n"                                                                            \
        "ld.param.u64 %out, [out];\n"                                                                        \
        "mov.u32 %i, %tid.x;\n"                                                                              \
        "cvt.rn.f32.u32 %a, %i;\n"                                                                           \
        "mov.f32 %b, 0f3F800347;\n"                                                                          \
        "mov.f32 %c, 0f3F000000;\n"                                                                          \
        "setp.eq.u32 %p, %n, 0;\n"                                                                           \
        "@%p bra done;\n"                                                                                    \
        "again:\n"                                                                                           \
        "fma.rn.f32 %a, %a, %b, %c;\n"                                                                       \
        "sub.u32 %n, %n, 1;\n"                                                                               \
        "setp.ne.u32 %p, %n, 0;\n"                                                                           \
        "@%p bra again;\n"                                                                                   \
        "done:\n"                                                                                            \
        "setp.neu.f32 %p, %a, 0f4640E6B7;\n"                                                                 \
        "@%p bra end;\n"                                                                                     \
        "cvta.to.global.u64 %out, %out;\n"                                                                   \
        "st.global.f32 [%out], %a;\n"                                                                        \
        "end:\n"                                                                                             \
        "ret;\n"                                                                                             \
        "}\n"

/* One thread. out: the number of gaps, the clock's smallest step, then gap and run before it. */
#define WATCH                                                                                                \
        ".visible .entry watch_sleep_us(.param .u32 us, .param .u64 out, .param .u32 most)\n"                \
        "{\n"                                                                                                \
        ".reg .pred %p;\n"                                                                                   \
        ".reg .b64 %out, %at, %begin, %last, %since, %t, %d, %length, %least;\n"                             \
        ".reg .b32 %us, %most, %k;\n"                                                                        \
        "ld.param.u32 %us, [us];\n"                                                                          \
        "ld.param.u64 %out, [out];\n"                                                                        \
        "ld.param.u32 %most, [most];\n"                                                                      \
        "cvta.to.global.u64 %out, %out;\n"                                                                   \
        "mul.wide.u32 %length, %us, 1000;\n"                                                                 \
        "mov.u64 %begin, %globaltimer;\n"                                                                    \
        "mov.u64 %last, %begin;\n"                                                                           \
        "mov.u64 %since, %begin;\n"                                                                          \
        "mov.u64 %least, 1000000000;\n"                                                                      \
        "mov.u32 %k, 0;\n"                                                                                   \
        "add.u64 %at, %out, 16;\n"                                                                           \
        "again:\n"                                                                                           \
        "mov.u64 %t, %globaltimer;\n"                                                                        \
        "sub.u64 %d, %t, %last;\n"                                                                           \
        "setp.eq.u64 %p, %d, 0;\n"                                                                           \
        "@%p bra again;\n"                                                                                   \
        "min.u64 %least, %least, %d;\n"                                                                      \
        "setp.le.u64 %p, %d, 20000;\n"                                                                       \
        "@%p bra next;\n"                                                                                    \
        "setp.ge.u32 %p, %k, %most;\n"                                                                       \
        "@%p bra next;\n"                                                                                    \
        "st.global.u64 [%at], %d;\n"                                                                         \
        "sub.u64 %d, %last, %since;\n"                                                                       \
        "st.global.u64 [%at+8], %d;\n"                                                                       \
        "add.u64 %at, %at, 16;\n"                                                                            \
        "add.u32 %k, %k, 1;\n"                                                                               \
        "mov.u64 %since, %t;\n"                                                                              \
        "next:\n"                                                                                            \
        "mov.u64 %last, %t;\n"                                                                               \
        "sub.u64 %d, %t, %begin;\n"                                                                          \
        "setp.lt.u64 %p, %d, %length;\n"                                                                     \
        "@%p bra again;\n"                                                                                   \
        "cvt.u64.u32 %d, %k;\n"                                                                              \
        "st.global.u64 [%out], %d;\n"                                                                        \
        "st.global.u64 [%out+8], %least;\n"                                                                  \
        "ret;\n"                                                                                             \
        "}\n"

static const char kernels[] = HEAD SLEEP FILL WORK WATCH;

CUfunction case_function(const char *name) {
        CUfunction f = NULL;
        CUmodule m = NULL;

        OK(CU(cuModuleLoadData)(&m, kernels));
        OK(CU(cuModuleGetFunction)(&f, m, name));
        return f;
}
