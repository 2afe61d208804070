/* SPDX-License-Identifier: Apache-2.0 */
#include "copy.h"

#include <string.h>

#include "events.h"
#include "trace.h"

/* NVC7B5_*, in bytes. */
enum {
        SET_SEMAPHORE = 0x240,
        SET_SEMAPHORE_PAYLOAD = 0x248,
        SET_SEMAPHORE_PAYLOAD_UPPER = 0x24C,
        LAUNCH_DMA = 0x300,
        OFFSET_IN = 0x400,
        OFFSET_OUT = 0x408,
        PITCH_IN = 0x410,
        PITCH_OUT = 0x414,
        LINE_LENGTH_IN = 0x418,
        LINE_COUNT = 0x41C,
        REMAP_CONST_A = 0x700,
        REMAP_COMPONENTS = 0x708,
        DST_WIDTH = 0x710,
        DST_HEIGHT = 0x714,
        DST_LAYER = 0x71C,
        SRC_WIDTH = 0x72C,
        SRC_HEIGHT = 0x730,
        SRC_LAYER = 0x738,
        SRC_ORIGIN_X = 0x744,
        SRC_ORIGIN_Y = 0x748,
        DST_ORIGIN_X = 0x74C,
        DST_ORIGIN_Y = 0x750,
};

enum { SEMAPHORE_NONE, SEMAPHORE_ONE_WORD, SEMAPHORE_FOUR_WORDS };
enum { SOURCES = 4, CONST_A = 4, CONST_B = 5, NO_WRITE = 6 }; /* SET_REMAP_COMPONENTS_DST_X */
enum {
        CHUNK = 48 * 1024, /* bytes moved at once; a multiple of 1 to 4 components of 1 to 4 bytes */
        STEP = 16 << 20,   /* bytes in one turn of the channel */
};

typedef struct Lines { /* one side of a copy */
        uint64_t address, pitch;
} Lines;

static uint32_t value(const ChannelState *s, uint32_t method) {
        return s->values[method / 4];
}

/* A surface in blocks has its lines one after the other here: only copies look at its contents. */
static Lines lines_of(const ChannelState *s, bool is_out) {
        uint32_t launch = value(s, LAUNCH_DMA);
        bool is_pitch = channel_bits(launch, is_out ? 8 : 7, is_out ? 8 : 7);
        Lines l = {channel_address(s, is_out ? OFFSET_OUT : OFFSET_IN),
                   value(s, is_out ? PITCH_OUT : PITCH_IN)};

        if (is_pitch)
                return l;
        l.pitch = value(s, is_out ? DST_WIDTH : SRC_WIDTH);
        l.address += l.pitch * value(s, is_out ? DST_HEIGHT : SRC_HEIGHT) *
                     value(s, is_out ? DST_LAYER : SRC_LAYER);
        l.address += l.pitch * value(s, is_out ? DST_ORIGIN_Y : SRC_ORIGIN_Y);
        l.address += value(s, is_out ? DST_ORIGIN_X : SRC_ORIGIN_X);
        return l;
}

typedef struct Remap {
        bool enabled;
        unsigned bytes, in, out; /* of a component; components of an element */
        unsigned from[SOURCES];
} Remap;

static Remap remap_of(const ChannelState *s) {
        uint32_t c = value(s, REMAP_COMPONENTS);

        if (!channel_bits(value(s, LAUNCH_DMA), 10, 10))
                return (Remap){.bytes = 1, .in = 1, .out = 1};
        return (Remap){.enabled = true,
                       .bytes = channel_bits(c, 17, 16) + 1,
                       .in = channel_bits(c, 21, 20) + 1,
                       .out = channel_bits(c, 25, 24) + 1,
                       .from = {channel_bits(c, 2, 0), channel_bits(c, 6, 4), channel_bits(c, 10, 8),
                                channel_bits(c, 14, 12)}};
}

static bool reads_source(const Remap *r) {
        for (unsigned i = 0; i < r->out; i++)
                if (r->from[i] < SOURCES)
                        return true;
        return !r->enabled;
}

static bool keeps_target(const Remap *r) {
        for (unsigned i = 0; i < r->out; i++)
                if (r->enabled && r->from[i] == NO_WRITE)
                        return true;
        return false;
}

static void remap(const ChannelState *s, const Remap *r, const uint8_t *in, uint8_t *out, size_t elements) {
        for (size_t e = 0; e < elements; e++, in += r->in * r->bytes)
                for (unsigned i = 0; i < r->out; i++, out += r->bytes) {
                        unsigned from = r->from[i];

                        if (from == CONST_A || from == CONST_B)
                                memcpy(out, &s->values[REMAP_CONST_A / 4 + from - CONST_A], r->bytes);
                        else if (from < r->in)
                                memcpy(out, in + from * r->bytes, r->bytes);
                }
}

/* Elements of one line, from `first` on. */
static ChannelStep move(ChannelState *s, const Remap *r, uint64_t in, uint64_t out, uint64_t first,
                        size_t n) {
        uint8_t source[CHUNK], target[CHUNK];
        ChannelStep step = CHANNEL_DONE;

        in += first * r->in * r->bytes;
        out += first * r->out * r->bytes;
        if (reads_source(r))
                step = channel_load(s->channel, in, source, n * r->in * r->bytes);
        if (step == CHANNEL_DONE && !r->enabled)
                return channel_store(s->channel, out, source, n);
        if (step == CHANNEL_DONE && keeps_target(r))
                step = channel_load(s->channel, out, target, n * r->out * r->bytes);
        if (step != CHANNEL_DONE)
                return step;
        remap(s, r, source, target, n);
        return channel_store(s->channel, out, target, n * r->out * r->bytes);
}

/* s->progress: elements that were done in earlier turns. */
static ChannelStep transfer(ChannelState *s) {
        Lines in = lines_of(s, false), out = lines_of(s, true);
        Remap r = remap_of(s);
        uint64_t length = value(s, LINE_LENGTH_IN),
                 lines = channel_bits(value(s, LAUNCH_DMA), 9, 9) ? value(s, LINE_COUNT) : 1;
        uint64_t at_once = CHUNK / (r.bytes * (r.in > r.out ? r.in : r.out));
        uint64_t end = s->progress + STEP;
        ChannelStep step = CHANNEL_DONE;

        while (step == CHANNEL_DONE && s->progress < length * lines) {
                uint64_t line = s->progress / length, first = s->progress % length;
                uint64_t n = length - first < at_once ? length - first : at_once;

                if (s->progress >= end)
                        return CHANNEL_WAITS;
                step = move(s, &r, in.address + line * in.pitch, out.address + line * out.pitch, first, n);
                s->progress += n;
        }
        s->progress = 0;
        return step;
}

static ChannelStep signal_end(ChannelState *s) {
        uint32_t launch = value(s, LAUNCH_DMA);
        uint64_t address = channel_address(s, SET_SEMAPHORE), payload = value(s, SET_SEMAPHORE_PAYLOAD);
        unsigned kind = channel_bits(launch, 4, 3), bytes = channel_bits(launch, 27, 27) ? 8 : 4;

        if (bytes == 8)
                payload |= (uint64_t) value(s, SET_SEMAPHORE_PAYLOAD_UPPER) << 32;
        if (kind == SEMAPHORE_NONE)
                return CHANNEL_DONE;
        if (channel_bits(launch, 19, 19))
                return channel_reduce(s->channel, address, payload, bytes, channel_bits(launch, 17, 14),
                                      !channel_bits(launch, 18, 18));
        return channel_release(s->channel, address, payload, bytes, kind == SEMAPHORE_FOUR_WORDS);
}

ChannelStep copy_method(ChannelState *s, uint32_t method) {
        uint32_t launch = value(s, method);
        ChannelStep step = CHANNEL_DONE;

        if (method != LAUNCH_DMA)
                return CHANNEL_DONE;
        if (channel_bits(launch, 1, 0) != 0) {
                if (s->progress == 0)
                        trace("copy in=%#lx out=%#lx bytes=%u lines=%u launch=%#x",
                              channel_address(s, OFFSET_IN), channel_address(s, OFFSET_OUT),
                              value(s, LINE_LENGTH_IN), value(s, LINE_COUNT), launch);
                if (channel_bits(launch, 13, 12) != 0)
                        return channel_fault(s->channel, CHANNEL_XID_COPY, 0, "physical addresses");
                step = transfer(s);
        }
        if (step == CHANNEL_DONE)
                step = signal_end(s);
        if (step == CHANNEL_DONE && channel_bits(launch, 6, 5) != 0)
                events_interrupt();
        return step;
}
