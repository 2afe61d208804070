/* SPDX-License-Identifier: Apache-2.0 */
#include "compute.h"

#include <stdlib.h>

#include "events.h"
#include "trace.h"

/* NVC7C0_*, in bytes. */
enum {
        NOTIFY = 0x10C,
        WAIT_FOR_IDLE = 0x110,
        REPORT_PAYLOAD_LOWER = 0x158,
        REPORT_PAYLOAD_UPPER = 0x15C,
        REPORT_ADDRESS_LOWER = 0x160,
        REPORT_ADDRESS_UPPER = 0x164,
        REPORT_EXECUTE = 0x168,
        LINE_LENGTH_IN = 0x180,
        LINE_COUNT = 0x184,
        OFFSET_OUT = 0x188,
        PITCH_OUT = 0x190,
        LAUNCH_DMA = 0x1B0,
        LOAD_INLINE_DATA = 0x1B4,
        I2M_SEMAPHORE = 0x1DC,
        I2M_SEMAPHORE_PAYLOAD = 0x1E4,
        SEND_PCAS_A = 0x2B4,
        SEND_SIGNALING_PCAS = 0x2BC,
        SEND_SIGNALING_PCAS2 = 0x2C0,
        INLINE_QMD_ADDRESS = 0x318,
        INLINE_QMD_DATA = 0x320,
        INLINE_QMD_WORD4 = 0x330, /* bits 128 to 159 */
        INLINE_QMD_LAST = 0x41C,
        REPORT_SEMAPHORE_A = 0x1B00,
        REPORT_SEMAPHORE_C = 0x1B08,
        REPORT_SEMAPHORE_D = 0x1B0C,
};

#define NS_OF_BLOCK UINT64_C(1000)

enum {
        QMD_WORDS = 64,
        LAUNCHES = 256, /* of methods, at work at a time, for a channel; dependent ones come on top */
};

typedef struct Launch {
        uint64_t position;   /* in the card's engine */
        bool released;       /* it has ended, and what its QMD releases is released */
        unsigned dependents; /* that are done */
        unsigned major;
        uint32_t qmd[QMD_WORDS];
        struct Launch *next;
} Launch;

struct ComputeQueue {
        unsigned n;
        Launch *first, *last; /* NULL: there is none */
};
enum { QMD2 = 2, QMD3 = 3 };                                                    /* QMD_MAJOR_VERSION */
enum { QMD_SCHEDULE = 1, QMD_COPY_SCHEDULE = 3, QMD_DECREMENT_DEPENDENCE = 4 }; /* DEPENDENT_QMD0_ACTION */
enum { QMD_WORD4 = 4, QMD_COUNTER = 61 };

static uint32_t value(const ChannelState *s, uint32_t method) {
        return s->values[method / 4];
}

/* Reductions of this class by the numbers of the host's: RED_ADD, MIN, MAX, INC, DEC, AND, OR,
 * XOR. */
static unsigned host_reduction(unsigned operation) {
        static const uint8_t as_host[] = {5, 0, 1, 6, 7, 3, 4, 2};

        return as_host[operation & 7];
}

/* ---- inline data ---- */

/* s->progress: bytes that were written. Lines are `pitch` apart. */
static ChannelStep inline_data(ChannelState *s) {
        uint64_t length = value(s, LINE_LENGTH_IN), total = length * value(s, LINE_COUNT), at = s->progress;
        uint32_t word = value(s, LOAD_INLINE_DATA), launch = value(s, LAUNCH_DMA);
        ChannelStep step = CHANNEL_DONE;

        if (at >= total)
                return channel_fault(s->channel, CHANNEL_XID_GRAPHICS, at, "more inline data than announced");
        for (unsigned i = 0; i < 4 && at + i < total && step == CHANNEL_DONE;) {
                uint64_t in_line = (at + i) % length, rest = length - in_line;
                uint64_t to =
                        channel_address(s, OFFSET_OUT) + (at + i) / length * value(s, PITCH_OUT) + in_line;
                unsigned n = rest < 4 - i ? (unsigned) rest : 4 - i;

                step = channel_store(s->channel, to, (uint8_t *) &word + i, n);
                i += n;
        }
        s->progress = at + 4;
        if (step != CHANNEL_DONE || s->progress < total || channel_bits(launch, 5, 4) != 2)
                return step;
        return channel_release(s->channel, channel_address(s, I2M_SEMAPHORE), value(s, I2M_SEMAPHORE_PAYLOAD),
                               4, !channel_bits(launch, 12, 12));
}

/* ---- semaphores ---- */

/* Without FLUSH_DISABLE it comes after the work before it. */
static ChannelStep report(ChannelState *s) {
        uint32_t d = value(s, REPORT_SEMAPHORE_D);
        uint64_t address = channel_address(s, REPORT_SEMAPHORE_A);

        if (!channel_bits(d, 2, 2) && !compute_is_idle(s))
                return CHANNEL_WAITS;
        if (channel_bits(d, 1, 0) != 0)
                return CHANNEL_DONE; /* a trap only interrupts */
        if (channel_bits(d, 3, 3))
                return channel_reduce(s->channel, address, value(s, REPORT_SEMAPHORE_C), 4,
                                      host_reduction(channel_bits(d, 11, 9)), channel_bits(d, 18, 17));
        return channel_release(s->channel, address, value(s, REPORT_SEMAPHORE_C), 4,
                               !channel_bits(d, 28, 28));
}

static ChannelStep report_execute(ChannelState *s) {
        uint32_t execute = value(s, REPORT_EXECUTE);
        unsigned operation = channel_bits(execute, 1, 0), bytes = channel_bits(execute, 12, 12) ? 8 : 4;
        uint64_t address = (uint64_t) channel_bits(value(s, REPORT_ADDRESS_UPPER), 16, 0) << 32 |
                           value(s, REPORT_ADDRESS_LOWER),
                 payload = value(s, REPORT_PAYLOAD_LOWER), seen = 0;
        ChannelStep step;

        if (!channel_bits(execute, 5, 5) && !compute_is_idle(s))
                return CHANNEL_WAITS;
        if (bytes == 8)
                payload |= (uint64_t) value(s, REPORT_PAYLOAD_UPPER) << 32;
        if (operation == 1) { /* ACQUIRE */
                step = channel_load(s->channel, address, &seen, bytes);
                return step == CHANNEL_DONE && seen != payload ? CHANNEL_WAITS : step;
        }
        if (operation != 0)
                return CHANNEL_DONE;
        if (channel_bits(execute, 6, 6))
                return channel_reduce(s->channel, address, payload, bytes,
                                      host_reduction(channel_bits(execute, 9, 7)),
                                      channel_bits(execute, 11, 10));
        return channel_release(s->channel, address, payload, bytes, channel_bits(execute, 4, 3) == 0);
}

static ChannelStep awaken(ChannelStep step, uint32_t wanted) {
        if (step == CHANNEL_DONE && wanted)
                events_interrupt();
        return step;
}

/* ---- launches ---- */

/* MW(high:low) of clc7c0qmd.h, within one word. */
static uint32_t qmd_bits(const uint32_t *qmd, unsigned high, unsigned low) {
        return channel_bits(qmd[low / 32], high % 32, low % 32);
}

/* Where a release of the QMD is, by version: 2 has two, 3 three. */
typedef struct Release {
        unsigned enable, address, payload; /* bits; the operation's word is before the payload */
} Release;

static const Release releases[2][3] = {
        {{138, 736, 800}, {139, 832, 896}},
        {{823, 768, 832}, {951, 896, 960}, {1719, 1664, 1728}},
};

static ChannelStep release(Channel *c, const uint32_t *qmd, const Release *r, unsigned major) {
        uint32_t how = qmd[r->payload / 32 - 1];
        uint64_t address = (uint64_t) (how & 0xFF) << 32 | qmd[r->address / 32],
                 payload = qmd[r->payload / 32];
        unsigned bytes = major == QMD3 && channel_bits(how, 29, 29) ? 8 : 4;
        bool four_words = major == QMD3 ? channel_bits(how, 31, 30) == 0 : !channel_bits(how, 31, 31);

        if (bytes == 8)
                payload |= (uint64_t) qmd[r->payload / 32 + 1] << 32;
        if (channel_bits(how, 26, 26))
                return channel_reduce(c, address, payload, bytes, host_reduction(channel_bits(how, 22, 20)),
                                      channel_bits(how, 25, 24));
        return channel_release(c, address, payload, bytes, four_words);
}

/* Once the launch has ended: the releases of its QMD. */
static ChannelStep finish(ChannelState *s, const uint32_t *qmd, unsigned major) {
        ChannelStep step = CHANNEL_DONE;

        for (unsigned i = 0; i < 3 && step == CHANNEL_DONE; i++) {
                const Release *r = &releases[major - QMD2][i];

                if (r->address != 0 && qmd_bits(qmd, r->enable, r->enable))
                        step = release(s->channel, qmd, r, major);
        }
        return step;
}

/* A launch computes nothing and takes a microsecond for each block of its grid's width. */
static ChannelStep begin_launch(ChannelState *s, uint64_t address) {
        struct ComputeQueue *q = s->launches ? s->launches : calloc(1, sizeof *q);
        Launch *l = calloc(1, sizeof *l);
        ChannelStep step;

        if (!q || !l)
                abort();
        s->launches = q;
        step = channel_load(s->channel, address, l->qmd, sizeof l->qmd);
        l->major = qmd_bits(l->qmd, 583, 580);
        if (step == CHANNEL_DONE && l->major != QMD2 && l->major != QMD3)
                step = channel_fault(s->channel, CHANNEL_XID_GRAPHICS, address, "QMD version");
        if (step == CHANNEL_DONE && !channel_begin(s->channel, l->qmd[12] * NS_OF_BLOCK, &l->position))
                step = CHANNEL_WAITS;
        if (step != CHANNEL_DONE) {
                free(l);
                return step;
        }
        *(q->last ? &q->last->next : &q->first) = l;
        q->last = l;
        q->n++;
        trace("launch qmd=%#lx version=%u.%u grid=%ux%ux%u block=%ux%ux%u", address, l->major,
              qmd_bits(l->qmd, 579, 576), l->qmd[12], qmd_bits(l->qmd, 431, 416), qmd_bits(l->qmd, 463, 448),
              qmd_bits(l->qmd, 607, 592), qmd_bits(l->qmd, 623, 608), qmd_bits(l->qmd, 639, 624));
        return CHANNEL_DONE;
}

static ChannelStep launch(ChannelState *s, uint64_t address) {
        return s->launches && s->launches->n >= LAUNCHES ? CHANNEL_WAITS : begin_launch(s, address);
}

/* One launch less to wait for. A counter of 0 is a new one: it is set again behind the last. */
static ChannelStep decrement(ChannelState *s, uint64_t address) {
        uint32_t qmd[QMD_WORDS];
        ChannelStep step = channel_load(s->channel, address, qmd, sizeof qmd);
        uint32_t left;

        if (step != CHANNEL_DONE)
                return step;
        left = qmd_bits(qmd, 1967, 1952); /* HW_ONLY_DEPENDENCE_COUNTER */
        left = left ? left : channel_bits(qmd[QMD_WORD4], 29, 14);
        if (left <= 1 && (step = begin_launch(s, address)) != CHANNEL_DONE)
                return step;
        left -= left > 0;
        return channel_store(s->channel, address + 4 * QMD_COUNTER, &left, sizeof left);
}

/* What a QMD of version 3 does with two others once it has ended: the next kernels of a graph. */
static ChannelStep dependent(ChannelState *s, Launch *l) {
        static const struct {
                unsigned enable, action, pointer; /* bits; the pointer's word */
        } dependents[] = {{512, 513, 15}, {517, 518, 9}};

        for (; l->major == QMD3 && l->dependents < 2; l->dependents++) {
                unsigned i = l->dependents, from = dependents[i].action,
                         action = qmd_bits(l->qmd, from + 2, from);
                uint64_t address = (uint64_t) l->qmd[dependents[i].pointer] << 8;
                ChannelStep step = CHANNEL_DONE;

                if (!qmd_bits(l->qmd, dependents[i].enable, dependents[i].enable))
                        continue;
                if (action == QMD_DECREMENT_DEPENDENCE)
                        step = decrement(s, address);
                else if (action == QMD_SCHEDULE || action == QMD_COPY_SCHEDULE)
                        step = begin_launch(s, address);
                else
                        step = channel_fault(s->channel, CHANNEL_XID_GRAPHICS, action, "dependent QMD");
                if (step != CHANNEL_DONE)
                        return step;
        }
        return CHANNEL_DONE;
}

bool compute_look(ChannelState *s) {
        struct ComputeQueue *q = s->launches;
        Launch *l = q ? q->first : NULL;

        if (!l || !channel_has_ended(s->channel, l->position))
                return false;
        if (!l->released && finish(s, l->qmd, l->major) != CHANNEL_DONE)
                return false; /* the channel has ended */
        l->released = true;
        if (dependent(s, l) != CHANNEL_DONE)
                return false;
        q->first = l->next;
        if (!q->first)
                q->last = NULL;
        q->n--;
        free(l);
        return true;
}

bool compute_is_idle(const ChannelState *s) {
        return !s->launches || s->launches->n == 0;
}

void compute_done(ChannelState *s) {
        while (s->launches && s->launches->first) {
                Launch *l = s->launches->first;

                s->launches->first = l->next;
                free(l);
        }
        free(s->launches);
        s->launches = NULL;
}

/* The last word schedules it, if it is not to wait for another QMD to do so
 * (REQUIRE_SCHEDULING_PCAS). The upper half of the address is the first method. */
static ChannelStep inline_qmd(ChannelState *s, uint32_t method) {
        uint64_t address = (uint64_t) value(s, INLINE_QMD_ADDRESS) << 40 |
                           (uint64_t) value(s, INLINE_QMD_ADDRESS + 4) << 8;
        uint32_t word = value(s, method);
        ChannelStep step =
                channel_store(s->channel, address + (method - INLINE_QMD_DATA), &word, sizeof word);

        if (step != CHANNEL_DONE || method != INLINE_QMD_LAST ||
            channel_bits(value(s, INLINE_QMD_WORD4), 12, 12))
                return step;
        return launch(s, address);
}

ChannelStep compute_method(ChannelState *s, uint32_t method) {
        uint32_t v = value(s, method);
        uint64_t qmd = (uint64_t) value(s, SEND_PCAS_A) << 8;

        if (method >= INLINE_QMD_DATA && method <= INLINE_QMD_LAST)
                return inline_qmd(s, method);
        switch (method) {
        case LAUNCH_DMA:
                s->progress = 0;
                return CHANNEL_DONE;
        case LOAD_INLINE_DATA:
                return inline_data(s);
        case REPORT_EXECUTE:
                return awaken(report_execute(s), channel_bits(v, 2, 2));
        case REPORT_SEMAPHORE_D:
                return awaken(report(s), channel_bits(v, 20, 20) | channel_bits(v, 1, 0));
        case NOTIFY:
                return awaken(CHANNEL_DONE, v);
        case WAIT_FOR_IDLE:
                return compute_is_idle(s) ? CHANNEL_DONE : CHANNEL_WAITS;
        case SEND_SIGNALING_PCAS:
                return channel_bits(v, 1, 1) ? launch(s, qmd) : CHANNEL_DONE;
        case SEND_SIGNALING_PCAS2:
                trace("pcas2 %#x", v);
                switch (channel_bits(v, 3, 0)) { /* SCHEDULE, and with invalidation or prefetch */
                case 2:
                case 3:
                case 9:
                case 10:
                case 11:
                        return launch(s, qmd);
                case 7:
                        return decrement(s, qmd);
                default:
                        return CHANNEL_DONE;
                }
        default:
                return CHANNEL_DONE;
        }
}
