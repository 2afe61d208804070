/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The common part of the cases of cuda-run. Each begins and ends without a context; run_case()
 * checks by NVML that the card is as before. */

#include "cuda-calls.h"
#include "test.h"

#define MIB      (1ull << 20)
#define OK(call) ASSERT_INT(call, CUDA_SUCCESS)

uint64_t used_of(unsigned card); /* bytes, all processes */
uint64_t own_of(unsigned card);  /* bytes of this process */
static inline uint64_t used(void) {
        return used_of(0);
}

CUcontext begin(void); /* a context on card 0, current */
void end(CUcontext c);
CUfunction function(const char *name); /* of a module of the current context */
void launch_sleep(CUstream s, unsigned us);
/* Whether all `n` bytes at `at` have this value. */
bool holds(CUdeviceptr at, unsigned char value, size_t n);

/* memory.c */
void plain(void);
void small_pieces(void);
void pitched(void);
void pools(void);
void pool_gives_back_before_it_fails(void);
void mapped(void);
void mapped_in_pieces(void);
void exported(void);
void forged(void);
void arrays(void);
void mipmaps(void);
void host_and_managed(void);
void variables(void);
void runs_out(void);
void ends_with_its_context(void);
void two_cards(void);
void pointers(void);

/* order.c */
void time_passes(void);
void streams_and_events(void);
void the_stream_zero(void);
void host_functions_in_order(void);
void waits_for_words(void);
void captures(void);
void captures_refuse(void);
void graphs_with_memory(void);
void threads(void);
void addresses(void);
void after_fork(void);
void bad_arguments(void);

/* time.c */
void every_launch_takes_time(void);
void copies_take_time(void);
void streams_share_the_card(void);
void a_ring_is_full(void);
int saturate(unsigned kernel_us, unsigned n);
