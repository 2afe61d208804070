/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Controls that set how the card's time is shared (ctrla06c.h, ctrl2080fifo.h, ctrl2080gr.h). Any
 * process may call them, and libcuda makes most of them for each context. */

#include "gpu/rm/layout.h"

enum {
        RM_CTRL_GROUP_SCHEDULE = 0xA06C0101, /* on a channel group: its channels may run */
        RM_CTRL_SET_TIMESLICE = 0xA06C0103,  /* on a channel group */
        RM_CTRL_GET_TIMESLICE = 0xA06C0104,  /* on a channel group: the value that was set last */
        RM_CTRL_PREEMPT = 0xA06C0105,        /* on a channel group */
        RM_CTRL_PREEMPTION_MODE = 0x20801210,
        RM_CTRL_DISABLE_CHANNELS = 0x2080110B,
};

enum { RM_PREEMPT_MAX_USEC = 1000000 };

typedef struct RmPreempt { /* NVA06C_CTRL_PREEMPT_PARAMS */
        uint8_t wait, manual_timeout, pad0[2];
        uint32_t timeout_usec;
} RmPreempt;

typedef struct RmGroupSchedule { /* NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS; skip_enable: from 575 on */
        uint8_t enable, skip_submit, skip_enable;
} RmGroupSchedule;

typedef struct RmTimeslice { /* NVA06C_CTRL_TIMESLICE_PARAMS */
        uint64_t usec;
} RmTimeslice;

/* Flags and modes of RmPreemptionMode. CILP preempts at any instruction, CTA at the end of a block,
 * WFI waits until the channel is idle. */
enum {
        RM_PREEMPT_FLAG_COMPUTE = 1,  /* `compute` is to be set */
        RM_PREEMPT_FLAG_GRAPHICS = 2, /* `graphics` is to be set */
        RM_PREEMPT_COMPUTE_WFI = 0,
        RM_PREEMPT_COMPUTE_CTA = 1,
        RM_PREEMPT_COMPUTE_CILP = 2,
};

typedef struct RmPreemptionMode { /* NV2080_CTRL_GR_SET_CTXSW_PREEMPTION_MODE_PARAMS */
        uint32_t flags, channel, graphics, compute;
        uint32_t route_flags, pad0;
        uint64_t route;
} RmPreemptionMode;

enum { RM_DISABLE_CHANNELS_MAX = 64 };

/* Stops or resumes channels of any client that the caller can name: clients[i] owns channels[i]. */
typedef struct RmDisableChannels { /* NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS */
        uint8_t disable, pad0[3];
        uint32_t n;
        uint8_t only_scheduling, rewind, pad1[6];
        uint64_t event; /* for clients in the kernel only */
        uint32_t clients[RM_DISABLE_CHANNELS_MAX], channels[RM_DISABLE_CHANNELS_MAX];
} RmDisableChannels;

RM_SIZE(RmGroupSchedule, 3);
RM_SIZE(RmTimeslice, 8);
RM_SIZE(RmPreempt, 8);
RM_SIZE(RmPreemptionMode, 32);
RM_AT(RmPreemptionMode, compute, 12);
RM_SIZE(RmDisableChannels, 536);
RM_AT(RmDisableChannels, clients, 24);
RM_AT(RmDisableChannels, channels, 280);
