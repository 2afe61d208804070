/* SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compute.h"
#include "copy.h"
#include "events.h"
#include "trace.h"

enum {
        TOKEN_FIRST = 1,
        TURN_METHODS = 4096, /* executed in one turn, so that a channel without end holds up no other */
        SEGMENT_WORDS_MAX = 1u << 21, /* NVC56F_GP_ENTRY1_LENGTH */
        USERD_GP_GET = 0x88,          /* Nvc56fControl */
        USERD_GP_PUT = 0x8C,
        DOORBELL_TIME = 0x80, /* NVC361_TIME_0 and 1 */
        DOORBELL = 0x90,      /* NVC361_NOTIFY_CHANNEL_PENDING */
        DOORBELL_AT_REST = -1,
        DOORBELLS = 32,
        HOST_METHODS = 0x100,
};

/* NVC56F_*, in bytes. */
enum {
        SET_OBJECT = 0x0,
        ILLEGAL = 0x4,
        SEMAPHORE_A = 0x10,
        SEMAPHORE_B = 0x14,
        SEMAPHORE_C = 0x18,
        SEMAPHORE_D = 0x1C,
        NON_STALL_INTERRUPT = 0x20,
        SEM_ADDR_LO = 0x5C,
        SEM_ADDR_HI = 0x60,
        SEM_PAYLOAD_LO = 0x64,
        SEM_PAYLOAD_HI = 0x68,
        SEM_EXECUTE = 0x6C,
        WFI = 0x78,
};

enum {
        ACQUIRE,
        RELEASE,
        ACQ_STRICT_GEQ,
        ACQ_CIRC_GEQ,
        ACQ_AND,
        ACQ_NOR,
        REDUCTION
}; /* SEM_EXECUTE_OPERATION */
enum { OLD_ACQUIRE = 1, OLD_RELEASE = 2, OLD_ACQ_GEQ = 4, OLD_ACQ_AND = 8, OLD_REDUCTION = 16 };
enum { SEC_TERT0, SEC_INC, SEC_TERT2, SEC_NON_INC, SEC_IMMEDIATE, SEC_ONE_INC, SEC_RESERVED, SEC_END };

typedef struct ChannelParams { /* NV_CHANNEL_ALLOC_PARAMS, alloc_channel.h */
        uint32_t error, buffer;
        uint64_t gpfifo;
        uint32_t entries, flags, share, vaspace;
        uint32_t userd[8];
        uint64_t userd_offset[8];
        uint32_t engine;
} ChannelParams;

struct Channel {
        uint32_t client, handle, token, entries, get;
        TimingGroup group;
        uint64_t gpfifo, userd_offset;
        Memory *userd, *error;
        bool dead;
        /* The segment of the pushbuffer that is executed. */
        uint32_t *words;
        uint32_t n, at;
        /* The method that the next words are for. */
        uint32_t method, subchannel, left, kind;
        ChannelState subchannels[CHANNEL_SUBCHANNELS];
        Channel *next;
};

static struct {
        Channel *channels;
        uint32_t tokens;
        bool traces_methods, mmu_fault;
        Memory *doorbells[DOORBELLS]; /* of the cards; NULL: free */
} state;

uint64_t channel_now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_REALTIME, &t); /* this clock is there */
        return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

/* ---- channels ---- */

static Channel **find(uint32_t client, uint32_t handle) {
        Channel **c = &state.channels;

        while (*c && ((*c)->client != client || (*c)->handle != handle))
                c = &(*c)->next;
        return c;
}

static Memory *ref_of(ChannelMemory memory, uint32_t client, uint32_t handle) {
        Memory *m = handle ? memory(client, handle) : NULL;

        return m ? memory_ref(m) : NULL;
}

void channel_new(TimingGroup group, uint32_t handle, const void *params, ChannelMemory memory) {
        const ChannelParams *p = params;
        Channel *c = calloc(1, sizeof *c);

        if (!c)
                abort();
        *c = (Channel){.client = group.client,
                       .handle = handle,
                       .group = group,
                       .token = TOKEN_FIRST + state.tokens++,
                       .entries = p->entries,
                       .gpfifo = p->gpfifo,
                       .userd_offset = p->userd_offset[0],
                       .userd = ref_of(memory, group.client, p->userd[0]),
                       .error = ref_of(memory, group.client, p->error),
                       .next = state.channels};
        for (unsigned i = 0; i < CHANNEL_SUBCHANNELS; i++)
                c->subchannels[i].channel = c;
        state.channels = c;
        state.traces_methods = getenv("NATIVE_METHODS") != NULL;
        trace("channel %u gpfifo=%#lx entries=%u userd=%d offset=%#lx error=%#x engine=%u", c->token,
              c->gpfifo, c->entries, c->userd != NULL, c->userd_offset, p->error, p->engine);
}

void channel_free(uint32_t client, uint32_t handle) {
        Channel **link = find(client, handle), *c = *link;

        if (!c)
                return;
        *link = c->next;
        for (unsigned i = 0; i < CHANNEL_SUBCHANNELS; i++)
                compute_done(&c->subchannels[i]);
        memory_unref(c->userd);
        memory_unref(c->error);
        free(c->words);
        free(c);
}

uint32_t channel_token(uint32_t client, uint32_t handle) {
        const Channel *c = *find(client, handle);

        return c ? c->token : 0;
}

void channel_doorbell(Memory *page) {
        uint32_t at_rest = (uint32_t) DOORBELL_AT_REST;
        unsigned i = 0;

        while (i < DOORBELLS && state.doorbells[i] && state.doorbells[i] != page)
                i++;
        if (i == DOORBELLS)
                abort();
        state.doorbells[i] = page;
        (void) memory_write(page, DOORBELL, &at_rest, sizeof at_rest); /* the page has it */
}

void channel_no_doorbell(const Memory *page) {
        for (unsigned i = 0; i < DOORBELLS; i++)
                if (state.doorbells[i] == page)
                        state.doorbells[i] = NULL;
}

/* ---- what a method does ---- */

ChannelStep channel_fault(Channel *c, ChannelXid xid, uint64_t address, const char *what) {
        struct { /* NvNotification, nvgputypes.h; info32 has the error's number */
                uint64_t time;
                uint32_t info32;
                uint16_t info16, status;
        } notifier = {channel_now(), xid, 0, 0xFFFF};

        trace("xid %d channel=%u address=%#lx method=%#x: %s", xid, c->token, address, c->method, what);
        c->dead = true;
        state.mmu_fault |= xid == CHANNEL_XID_MMU;
        if (c->error)
                (void) memory_write(c->error, 0, &notifier, sizeof notifier); /* it has that size */
        events_error();
        return CHANNEL_FAULT;
}

ChannelStep channel_load(Channel *c, uint64_t address, void *to, uint64_t n) {
        uint64_t fault;

        if (memory_load(address, to, n, &fault))
                return CHANNEL_DONE;
        return channel_fault(c, CHANNEL_XID_MMU, fault, "read");
}

ChannelStep channel_store(Channel *c, uint64_t address, const void *from, uint64_t n) {
        uint64_t fault;

        if (memory_store(address, from, n, &fault))
                return CHANNEL_DONE;
        return channel_fault(c, CHANNEL_XID_MMU, fault, "write");
}

/* The time is there when the value is. */
ChannelStep channel_release(Channel *c, uint64_t address, uint64_t value, unsigned bytes, bool with_time) {
        uint64_t now = channel_now();
        ChannelStep step = with_time ? channel_store(c, address + 8, &now, sizeof now) : CHANNEL_DONE;

        return step == CHANNEL_DONE ? channel_store(c, address, &value, bytes) : step;
}

bool channel_has_mmu_fault(void) {
        return state.mmu_fault;
}

void channel_clear_mmu_fault(void) {
        state.mmu_fault = false;
}

bool channel_begin(Channel *c, uint64_t ns, uint64_t *ret_position) {
        return timing_begin(c->group, c->token, ns, ret_position);
}

bool channel_has_ended(Channel *c, uint64_t position) {
        return timing_is_done(c->group, c->token, position);
}

static int64_t extend(uint64_t value, unsigned bytes) {
        return bytes == 4 ? (int32_t) value : (int64_t) value;
}

static uint64_t reduced(uint64_t old, uint64_t value, unsigned bytes, unsigned operation, bool is_signed) {
        bool less = is_signed ? extend(old, bytes) < extend(value, bytes) : old < value;

        switch (operation) {
        case 0: /* IMIN */
                return less ? old : value;
        case 1:
                return less ? value : old;
        case 2:
                return old ^ value;
        case 3:
                return old & value;
        case 4:
                return old | value;
        case 5:
                return old + value;
        case 6: /* INC: wraps behind the value */
                return old >= value ? 0 : old + 1;
        default:
                return old == 0 || old > value ? value : old - 1;
        }
}

ChannelStep channel_reduce(Channel *c, uint64_t address, uint64_t value, unsigned bytes, unsigned operation,
                           bool is_signed) {
        uint64_t old = 0;
        ChannelStep step = channel_load(c, address, &old, bytes);

        if (step != CHANNEL_DONE)
                return step;
        old = reduced(old, value, bytes, operation, is_signed);
        return channel_store(c, address, &old, bytes);
}

static bool is_acquired(uint64_t seen, uint64_t value, unsigned bytes, unsigned operation) {
        switch (operation) {
        case ACQUIRE:
                return seen == value;
        case ACQ_STRICT_GEQ:
                return seen >= value;
        case ACQ_CIRC_GEQ:
                return extend(seen - value, bytes) >= 0;
        case ACQ_AND:
                return (seen & value) != 0;
        default: /* ACQ_NOR */
                return extend(~(seen | value), bytes) != 0;
        }
}

static ChannelStep acquire(Channel *c, uint64_t address, uint64_t value, unsigned bytes, unsigned operation) {
        uint64_t seen = 0;
        ChannelStep step = channel_load(c, address, &seen, bytes);

        if (step != CHANNEL_DONE)
                return step;
        return is_acquired(seen, value, bytes, operation) ? CHANNEL_DONE : CHANNEL_WAITS;
}

static bool is_idle(const Channel *c) {
        for (unsigned i = 0; i < CHANNEL_SUBCHANNELS; i++)
                if (!compute_is_idle(&c->subchannels[i]))
                        return false;
        return true;
}

static ChannelStep semaphore(ChannelState *s, uint32_t execute) {
        uint32_t *v = s->values;
        uint64_t address =
                (uint64_t) channel_bits(v[SEM_ADDR_HI / 4], 7, 0) << 32 | (v[SEM_ADDR_LO / 4] & ~3u);
        unsigned operation = channel_bits(execute, 2, 0), bytes = channel_bits(execute, 24, 24) ? 8 : 4;
        uint64_t value = v[SEM_PAYLOAD_LO / 4];

        if (bytes == 8)
                value |= (uint64_t) v[SEM_PAYLOAD_HI / 4] << 32;
        if (operation == RELEASE && channel_bits(execute, 20, 20) && !is_idle(s->channel))
                return CHANNEL_WAITS;
        if (operation == RELEASE)
                return channel_release(s->channel, address, value, bytes, channel_bits(execute, 25, 25));
        if (operation == REDUCTION)
                return channel_reduce(s->channel, address, value, bytes, channel_bits(execute, 30, 27),
                                      !channel_bits(execute, 31, 31));
        return acquire(s->channel, address, value, bytes, operation);
}

static ChannelStep old_semaphore(ChannelState *s, uint32_t execute) {
        uint32_t *v = s->values;
        uint64_t address =
                (uint64_t) channel_bits(v[SEMAPHORE_A / 4], 7, 0) << 32 | (v[SEMAPHORE_B / 4] & ~3u);
        uint32_t value = v[SEMAPHORE_C / 4];

        switch (channel_bits(execute, 4, 0)) {
        case OLD_ACQUIRE:
                return acquire(s->channel, address, value, 4, ACQUIRE);
        case OLD_ACQ_GEQ:
                return acquire(s->channel, address, value, 4, ACQ_CIRC_GEQ);
        case OLD_ACQ_AND:
                return acquire(s->channel, address, value, 4, ACQ_AND);
        case OLD_RELEASE:
                if (!channel_bits(execute, 20, 20) && !is_idle(s->channel))
                        return CHANNEL_WAITS;
                return channel_release(s->channel, address, value, 4, !channel_bits(execute, 24, 24));
        case OLD_REDUCTION:
                return channel_reduce(s->channel, address, value, 4, channel_bits(execute, 30, 27),
                                      !channel_bits(execute, 31, 31));
        default:
                return channel_fault(s->channel, CHANNEL_XID_HOST, address, "semaphore operation");
        }
}

static ChannelStep host_method(ChannelState *s, uint32_t method, uint32_t value) {
        switch (method) {
        case SET_OBJECT:
                s->class_ = channel_bits(value, 15, 0);
                trace("class %#x channel=%u", s->class_, s->channel->token);
                return CHANNEL_DONE;
        case ILLEGAL:
                return channel_fault(s->channel, CHANNEL_XID_HOST, 0, "illegal method");
        case SEMAPHORE_D:
                return old_semaphore(s, value);
        case NON_STALL_INTERRUPT:
                events_interrupt();
                return CHANNEL_DONE;
        case SEM_EXECUTE:
                return semaphore(s, value);
        case WFI:
                return is_idle(s->channel) ? CHANNEL_DONE : CHANNEL_WAITS;
        default: /* memory operations */
                return CHANNEL_DONE;
        }
}

static ChannelStep execute(Channel *c, uint32_t value) {
        ChannelState *s = &c->subchannels[c->subchannel];
        uint32_t method = c->method;

        if (state.traces_methods)
                trace("method %u.%u:%#x = %#x", c->token, c->subchannel, method, value);
        s->values[method / 4] = value;
        if (method < HOST_METHODS)
                return host_method(s, method, value);
        switch (s->class_ & 0xFF) {
        case 0xB5: /* AMPERE_DMA_COPY_B and its like */
                return copy_method(s, method);
        case 0xC0: /* AMPERE_COMPUTE_B */
                return compute_method(s, method);
        default:
                return channel_fault(c, CHANNEL_XID_GRAPHICS, s->class_, "no such class");
        }
}

/* ---- the pushbuffer ---- */

/* A word that says which method the next ones are for. */
static ChannelStep take_header(Channel *c, uint32_t word) {
        uint32_t kind = channel_bits(word, 31, 29);

        c->kind = kind;
        c->method = channel_bits(word, 11, 0) * 4;
        c->subchannel = channel_bits(word, 15, 13);
        c->left = channel_bits(word, 28, 16);
        switch (kind) {
        case SEC_INC:
        case SEC_NON_INC:
        case SEC_ONE_INC:
                return CHANNEL_DONE;
        case SEC_IMMEDIATE:
                c->left = 0;
                return execute(c, channel_bits(word, 28, 16));
        case SEC_END:
                c->left = 0;
                c->at = c->n - 1; /* the caller counts this word */
                return CHANNEL_DONE;
        case SEC_TERT0: /* the older format, or the mask of cards, of which there is one */
                if (channel_bits(word, 17, 16) != 0) {
                        c->left = 0;
                        return CHANNEL_DONE;
                }
                c->kind = SEC_INC;
                c->method = word & 0x1FFC;
                c->left = channel_bits(word, 28, 18);
                return CHANNEL_DONE;
        default:
                return channel_fault(c, CHANNEL_XID_HOST, word, "pushbuffer header");
        }
}

static ChannelStep take_word(Channel *c) {
        ChannelStep step;

        if (c->left == 0)
                return take_header(c, c->words[c->at]);
        step = execute(c, c->words[c->at]);
        if (step != CHANNEL_DONE)
                return step;
        c->left--;
        if (c->kind == SEC_INC || c->kind == SEC_ONE_INC)
                c->method = (c->method + 4) % (CHANNEL_METHODS * 4);
        if (c->kind == SEC_ONE_INC)
                c->kind = SEC_NON_INC;
        return CHANNEL_DONE;
}

/* Fetches the next entry of the GPFIFO. false: there is none. */
static bool fetch(Channel *c) {
        uint32_t entry[2], put;
        uint64_t address;

        if (!c->userd || !memory_read(c->userd, c->userd_offset + USERD_GP_PUT, &put, sizeof put) ||
            put == c->get)
                return false;
        if (put >= c->entries) {
                (void) channel_fault(c, CHANNEL_XID_HOST, put, "GP_PUT"); /* it is dead */
                return false;
        }
        if (channel_load(c, c->gpfifo + 8 * (uint64_t) c->get, entry, sizeof entry) != CHANNEL_DONE)
                return false;
        c->n = channel_bits(entry[1], 30, 10);
        c->at = 0;
        c->get = (c->get + 1) % c->entries;
        address = (uint64_t) channel_bits(entry[1], 7, 0) << 32 | (entry[0] & ~3u);
        free(c->words);
        c->words = malloc(4 * (size_t) c->n + 4);
        if (!c->words)
                abort();
        return channel_load(c, address, c->words, 4 * (uint64_t) c->n) == CHANNEL_DONE;
}

static void tell_get(const Channel *c) {
        if (c->userd)
                (void) memory_write(c->userd, c->userd_offset + USERD_GP_GET, &c->get,
                                    sizeof c->get); /* a channel without its USERD has none */
}

static bool run(Channel *c) {
        ChannelStep step = CHANNEL_DONE;
        unsigned done = 0;

        for (unsigned i = 0; i < CHANNEL_SUBCHANNELS; i++)
                while (!c->dead && compute_look(&c->subchannels[i]))
                        done++;
        while (!c->dead && done < TURN_METHODS) {
                if (c->at == c->n && !fetch(c))
                        break;
                if (c->at < c->n)
                        step = take_word(c);
                if (step != CHANNEL_DONE)
                        break;
                c->at += c->at < c->n;
                done++;
                if (c->at == c->n)
                        tell_get(c);
        }
        return done > 0;
}

/* The doorbell is set back first, so that a channel that rings while the others are looked at is
 * not missed. */
static bool answer_doorbell(Memory *page) {
        uint32_t at_rest = (uint32_t) DOORBELL_AT_REST, token = at_rest;
        uint64_t now = channel_now();

        if (!page)
                return false;
        (void) memory_write(page, DOORBELL_TIME, &now, sizeof now); /* as in channel_doorbell() */
        (void) memory_read(page, DOORBELL, &token, sizeof token);
        if (token != at_rest)
                (void) memory_write(page, DOORBELL, &at_rest, sizeof at_rest); /* as above */
        return token != at_rest;
}

bool channel_turn(void) {
        bool worked = false;

        for (unsigned i = 0; i < DOORBELLS; i++)
                worked |= answer_doorbell(state.doorbells[i]);
        for (Channel *c = state.channels; c; c = c->next)
                worked |= run(c);
        return worked;
}
