/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The host engine of the simulated card: one thread of each process fetches what its channels have
 * in their GPFIFOs and executes the methods of their pushbuffers in turn.
 *
 *   GP_PUT in USERD, doorbell -> GPFIFO entry -> pushbuffer -> method
 *       method < 0x100: of the host itself (semaphores, memory operations)
 *       else:           of the class on the method's subchannel: copy.h, compute.h
 *
 * Numbers are those of NVIDIA's class headers: clc56f.h (host), clc361.h (doorbell), clc7b5.h
 * (copy), clc7c0.h and clc7c0qmd.h (compute). All functions but channel_start() need kernel.h's
 * lock. */

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "timing.h"

enum { CHANNEL_SUBCHANNELS = 8, CHANNEL_METHODS = 0x1000 };

/* Errors as the driver reports them: nverror.h. */
typedef enum ChannelXid {
        CHANNEL_XID_GRAPHICS = 13, /* ROBUST_CHANNEL_GR_EXCEPTION */
        CHANNEL_XID_MMU = 31,      /* ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT */
        CHANNEL_XID_HOST = 32,     /* ROBUST_CHANNEL_PBDMA_ERROR */
        CHANNEL_XID_COPY = 39,     /* ROBUST_CHANNEL_CE0_ERROR */
} ChannelXid;

typedef enum ChannelStep {
        CHANNEL_DONE,
        CHANNEL_WAITS, /* the method is executed again in the channel's next turn */
        CHANNEL_FAULT, /* channel_fault() was called */
} ChannelStep;

typedef struct Channel Channel;
struct ComputeQueue;

/* What a method of a class sees: the values of all methods of its subchannel. */
typedef struct ChannelState {
        Channel *channel;
        uint32_t class_;
        uint32_t values[CHANNEL_METHODS]; /* by method / 4 */
        uint64_t progress;                /* of an engine, between steps; 0 at first */
        struct ComputeQueue *launches;    /* that have not ended; NULL: there were none yet */
} ChannelState;

/* group: with the minor of its card. params: NV_CHANNEL_ALLOC_PARAMS. memory: contents of an
 * object of the client by its handle. */
typedef Memory *(*ChannelMemory)(uint32_t client, uint32_t handle);
void channel_new(TimingGroup group, uint32_t handle, const void *params, ChannelMemory memory);
void channel_free(uint32_t client, uint32_t handle); /* no such channel: nothing */
/* The token that the doorbell gets for this channel; 0: no such channel. */
uint32_t channel_token(uint32_t client, uint32_t handle);
/* A card's page of doorbells, which the thread watches until channel_no_doorbell(). At most 32. */
void channel_doorbell(Memory *page);
void channel_no_doorbell(const Memory *page); /* no such page: nothing */

/* Executes what is there. false: nothing was, or all channels wait. */
bool channel_turn(void);

/* Ends the channel with an error: it fetches no more, and its error notifier has the number. */
ChannelStep channel_fault(Channel *c, ChannelXid xid, uint64_t address, const char *what);

/* The channel's time on the compute engine: as timing_begin() and timing_is_done(). */
bool channel_begin(Channel *c, uint64_t ns, uint64_t *ret_position);
bool channel_has_ended(Channel *c, uint64_t position);

/* Whether a channel of the process has had a fault of an address since the last clear. */
bool channel_has_mmu_fault(void);
void channel_clear_mmu_fault(void);

/* A value and, behind it, the time: offsets 0 and 8. bytes: of the value, 4 or 8. */
ChannelStep channel_release(Channel *c, uint64_t address, uint64_t value, unsigned bytes, bool with_time);
/* The operations of NVC56F_SEM_EXECUTE_REDUCTION on 4 or 8 bytes. */
ChannelStep channel_reduce(Channel *c, uint64_t address, uint64_t value, unsigned bytes, unsigned operation,
                           bool is_signed);
ChannelStep channel_load(Channel *c, uint64_t address, void *to, uint64_t n);
ChannelStep channel_store(Channel *c, uint64_t address, const void *from, uint64_t n);

/* ns of the card's clock, which is the machine's time of day. */
uint64_t channel_now(void);

/* Bits high to low of a method's value. */
static inline uint32_t channel_bits(uint32_t value, unsigned high, unsigned low) {
        return value >> low & (uint32_t) ((UINT64_C(1) << (high - low + 1)) - 1);
}

/* Two methods that together are an address, the upper one first. */
static inline uint64_t channel_address(const ChannelState *s, uint32_t method) {
        return (uint64_t) channel_bits(s->values[method / 4], 16, 0) << 32 | s->values[method / 4 + 1];
}
