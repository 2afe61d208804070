/* SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"
#include "compute.h"
#include "events.h"
#include "test.h"
#include "trace.h"

/* The engines without a driver: pushbuffers of every kind, and faults. Each lane is a channel with
 * a GPFIFO, a pushbuffer, a USERD and an error notifier of its own, in memory that is mapped at
 * BASE. */

#define BASE UINT64_C(0x200000000)

enum {
        CLIENT = 7,
        LANES = 2,
        LANE_BYTES = 1 << 20,
        ENTRIES = 64,
        PUSHBUFFER_AT = 0x1000, /* in the lane; the GPFIFO is before it */
        DATA_AT = 0x80000,
        GP_GET = 0x88,
        GP_PUT = 0x8C,
        COPY = 0xC7B5,
        COMPUTE = 0xC7C0,
        SEM_ADDR_LO = 0x5C, /* and HI, PAYLOAD_LO, PAYLOAD_HI, EXECUTE behind it: clc56f.h */
        SEM_WAIT = 3,       /* ACQ_CIRC_GEQ */
        SEM_RELEASE = 1,
        SEM_RELEASE_TIME = 1 | 1 << 25,
        SEM_RELEASE_WFI = 1 | 1 << 20,
        QMD_AT = 0x40000,
};

static Memory *card, *userd[LANES], *notifier[LANES];
static uint32_t put[LANES], cursor[LANES]; /* entry, and byte of the pushbuffer */
static unsigned interrupts, errors;
static uint64_t submitted, ended; /* launches */

/* ---- what the engines call ---- */

void trace(const char *format, ...) {
        (void) format;
}

void events_interrupt(void) {
        interrupts++;
}

void events_error(void) {
        errors++;
}

bool timing_begin(TimingGroup g, unsigned channel, uint64_t ns, uint64_t *ret_position) {
        (void) g;
        (void) channel;
        ASSERT_INT(ns % 1000, 0);
        *ret_position = ++submitted;
        return true;
}

bool timing_is_done(TimingGroup g, unsigned channel, uint64_t position) {
        (void) g;
        (void) channel;
        return position <= ended;
}

/* ---- lanes ---- */

static Memory *memory_by_handle(uint32_t client, uint32_t handle) {
        ASSERT_INT(client, CLIENT);
        return handle < LANES + 1 ? userd[handle - 1] : notifier[handle - LANES - 1];
}

static uint64_t address(unsigned lane, uint32_t offset) {
        return BASE + lane * (uint64_t) LANE_BYTES + offset;
}

static void begin(void) {
        card = memory_new(LANES * LANE_BYTES);
        memory_map(BASE, LANES * LANE_BYTES, card, 0);
        for (unsigned lane = 0; lane < LANES; lane++) {
                struct {
                        uint32_t error, buffer;
                        uint64_t gpfifo;
                        uint32_t entries, flags, share, vaspace, userd[8];
                        uint64_t userd_offset[8];
                        uint32_t engine;
                } params = {.error = LANES + 1 + lane,
                            .gpfifo = address(lane, 0),
                            .entries = ENTRIES,
                            .userd = {lane + 1}};

                userd[lane] = memory_new(4096);
                notifier[lane] = memory_new(4096);
                put[lane] = cursor[lane] = 0;
                channel_new((TimingGroup){.client = CLIENT}, lane + 1, &params, memory_by_handle);
        }
        interrupts = errors = 0;
        submitted = ended = 0;
}

static void end(void) {
        for (unsigned lane = 0; lane < LANES; lane++) {
                channel_free(CLIENT, lane + 1);
                memory_unref(userd[lane]);
                memory_unref(notifier[lane]);
        }
        memory_unmap(BASE, LANES * LANE_BYTES);
        memory_unref(card);
}

static void set_put(unsigned lane, uint32_t value) {
        ASSERT_TRUE(memory_write(userd[lane], GP_PUT, &value, sizeof value));
}

/* An entry of the GPFIFO for n words at that address. */
static void submit(unsigned lane, uint64_t at, uint32_t n) {
        uint32_t entry[2] = {(uint32_t) at, (uint32_t) (at >> 32) | n << 10};
        uint64_t fault;

        ASSERT_TRUE(memory_store(address(lane, 8 * put[lane]), entry, sizeof entry, &fault));
        put[lane] = (put[lane] + 1) % ENTRIES;
        set_put(lane, put[lane]);
}

static void push(unsigned lane, const uint32_t *words, uint32_t n) {
        uint64_t at = address(lane, PUSHBUFFER_AT + cursor[lane]), fault;

        ASSERT_TRUE(memory_store(at, words, 4 * (size_t) n, &fault));
        cursor[lane] += 4 * n;
        submit(lane, at, n);
}

static uint32_t header(unsigned kind, unsigned subchannel, uint32_t method, uint32_t n) {
        return kind << 29 | n << 16 | subchannel << 13 | method / 4;
}

static void method(unsigned lane, unsigned subchannel, uint32_t at, uint32_t value) {
        push(lane, (uint32_t[]){header(1, subchannel, at, 1), value}, 2);
}

static void semaphore(unsigned lane, uint64_t at, uint64_t value, uint32_t execute) {
        push(lane,
             (uint32_t[]){header(1, 0, SEM_ADDR_LO, 5), (uint32_t) at, (uint32_t) (at >> 32),
                          (uint32_t) value, (uint32_t) (value >> 32), execute},
             6);
}

static void run(void) {
        while (channel_turn())
                ;
}

static uint64_t word(uint64_t at, unsigned bytes) {
        uint64_t value = 0, fault;

        ASSERT_TRUE(memory_load(at, &value, bytes, &fault));
        return value;
}

static uint32_t error_of(unsigned lane) {
        uint32_t info;

        ASSERT_TRUE(memory_read(notifier[lane], 8, &info, sizeof info));
        return info;
}

/* ---- cases ---- */

static void semaphores_order_channels(void) {
        uint64_t flag = address(0, DATA_AT), done = address(1, DATA_AT);
        uint32_t get;

        begin();
        semaphore(1, flag, 5, SEM_WAIT);
        semaphore(1, done, 9, SEM_RELEASE_TIME);
        run();
        ASSERT_INT(word(done, 4), 0);
        semaphore(0, flag, 4, SEM_RELEASE);
        run();
        ASSERT_INT(word(done, 4), 0);
        semaphore(0, flag, 5, SEM_RELEASE);
        run();
        ASSERT_INT(word(done, 4), 9);
        ASSERT_TRUE(word(done + 8, 8) > 0);
        ASSERT_TRUE(memory_read(userd[1], GP_GET, &get, sizeof get));
        ASSERT_INT(get, 2);
        semaphore(0, flag, 3, 6 | 5 << 27); /* REDUCTION, IADD */
        run();
        ASSERT_INT(word(flag, 4), 8);
        end();
}

static void headers_of_each_kind(void) {
        begin();
        method(0, 1, 0, COMPUTE);
        /* Data of the pushbuffer: NON_INC words, and ONE_INC from LAUNCH_DMA on. */
        push(0,
             (uint32_t[]){header(1, 1, 0x180, 4), 6, 2, (uint32_t) (BASE >> 32),
                          (uint32_t) address(0, DATA_AT), header(1, 1, 0x190, 1), 8, header(5, 1, 0x1B0, 4),
                          0x41, 0x04030201, 0x08070605, 0x0C0B0A09},
             12);
        push(0, (uint32_t[]){header(4, 0, 0x20, 0)}, 1); /* immediate: NON_STALL_INTERRUPT */
        run();
        ASSERT_INT(error_of(0), 0);
        ASSERT_INT(word(address(0, DATA_AT), 8), INT64_C(0x060504030201));
        ASSERT_INT(word(address(0, DATA_AT + 8), 8), INT64_C(0x0C0B0A090807));
        ASSERT_INT(interrupts, 1);
        end();
}

static void copy_lines(unsigned lane, uint64_t from, uint64_t to, uint32_t length, uint32_t lines,
                       uint32_t launch) {
        push(lane,
             (uint32_t[]){header(1, 4, 0x400, 8), (uint32_t) (from >> 32), (uint32_t) from,
                          (uint32_t) (to >> 32), (uint32_t) to, 100, 200, length, lines,
                          header(1, 4, 0x300, 1), launch},
             11);
}

static void copies_and_fills(void) {
        uint64_t from = address(0, DATA_AT), to = address(1, DATA_AT), fault, value;

        begin();
        method(0, 4, 0, COPY);
        for (uint64_t i = 0; i < 400; i += 8) {
                value = i * 0x0101010101010101;
                ASSERT_TRUE(memory_store(from + i, &value, sizeof value, &fault));
        }
        copy_lines(0, from, to, 96, 3, 0x382); /* pitch, several lines */
        run();
        for (uint32_t line = 0; line < 3; line++)
                for (uint32_t i = 0; i < 96; i += 4)
                        ASSERT_INT(word(to + 200 * line + i, 4), word(from + 100 * line + i, 4));
        ASSERT_INT(word(to + 96, 4), 0);
        /* A fill of 16-bit elements, and a semaphore with the time. */
        push(0, (uint32_t[]){header(1, 4, 0x240, 3), (uint32_t) (BASE >> 32), (uint32_t) from, 77}, 4);
        push(0, (uint32_t[]){header(1, 4, 0x700, 3), 0xABCD, 0, 0x10004}, 4);
        copy_lines(0, 0, to, 5, 1, 0x582 | 2 << 3);
        run();
        ASSERT_INT(error_of(0), 0);
        ASSERT_INT(word(to, 8), (int64_t) UINT64_C(0xABCDABCDABCDABCD));
        ASSERT_INT(word(to + 8, 2), 0xABCD);
        ASSERT_INT(word(to + 10, 2), 0x0808); /* as before */
        ASSERT_INT(word(from, 4), 77);
        ASSERT_TRUE(word(from + 8, 8) > UINT64_C(1) << 56);
        end();
}

/* The launch works on while the channel goes on; its release and what waits for idle come later. */
static void launches_end_later(void) {
        uint64_t at = address(0, DATA_AT), qmd = address(0, QMD_AT), fault;
        uint32_t words[64] = {0};

        begin();
        words[12] = 3;                                           /* CTA_RASTER_WIDTH */
        words[18] = 3 << 4;                                      /* QMD_MAJOR_VERSION */
        words[24] = (uint32_t) at;                               /* RELEASE0_ADDRESS_LOWER */
        words[25] = (uint32_t) (BASE >> 32) | 1 << 23 | 1 << 30; /* UPPER, ENABLE, one word */
        words[26] = 55;
        ASSERT_TRUE(memory_store(qmd, words, sizeof words, &fault));
        method(0, 1, 0, COMPUTE);
        method(0, 1, 0x2B4, (uint32_t) (qmd >> 8));
        method(0, 1, 0x2BC, 2); /* SEND_SIGNALING_PCAS_B, schedule */
        semaphore(0, at + 16, 1, SEM_RELEASE);
        semaphore(0, at + 32, 1, SEM_RELEASE_WFI);
        run();
        ASSERT_INT(submitted, 1);
        ASSERT_INT(word(at, 4), 0);
        ASSERT_INT(word(at + 16, 4), 1);
        ASSERT_INT(word(at + 32, 4), 0);
        ended = 1;
        run();
        ASSERT_INT(word(at, 4), 55);
        ASSERT_INT(word(at + 32, 4), 1);
        ASSERT_INT(error_of(0), 0);
        end();
}

static void graph_node(uint64_t at, uint32_t counter, uint32_t dependents, uint64_t first, uint64_t second) {
        uint32_t words[64] = {[4] = 1 << 12 | counter << 14, /* REQUIRE_SCHEDULING_PCAS, DEPENDENCE_COUNTER */
                              [9] = (uint32_t) (second >> 8),
                              [12] = 1,
                              [15] = (uint32_t) (first >> 8),
                              [16] = dependents,
                              [18] = 3 << 4,
                              [24] = (uint32_t) at + 256, /* RELEASE0: one word, RED_ADD */
                              [25] = (uint32_t) (BASE >> 32) | 1 << 23 | 1 << 26 | 1 << 30,
                              [26] = 1};

        method(0, 1, 0x318, (uint32_t) (at >> 40));
        method(0, 1, 0x31C, (uint32_t) (at >> 8));
        push(0, (uint32_t[]){header(1, 1, 0x320, 64)}, 1);
        push(0, words, 64);
}

/* A first kernel schedules a second and lets a third, which has two to wait for, wait for one less.
 * The graph is launched twice from what is in memory. */
static void a_graph_launches_its_kernels(void) {
        enum { SCHEDULE = 1, DECREMENT = 4 };
        uint64_t node[3];

        begin();
        for (unsigned i = 0; i < 3; i++)
                node[i] = address(0, QMD_AT + 1024 * i);
        method(0, 1, 0, COMPUTE);
        graph_node(node[2], 2, 0, 0, 0);
        graph_node(node[1], 0, 1 | DECREMENT << 1, node[2], 0);
        graph_node(node[0], 0, 1 | SCHEDULE << 1 | 1 << 5 | DECREMENT << 6, node[1], node[2]);
        run();
        ASSERT_INT(submitted, 0); /* they were stored and wait */
        for (uint32_t launch = 1; launch <= 2; launch++) {
                uint64_t before = submitted;

                method(0, 1, 0x2B4, (uint32_t) (node[0] >> 8));
                method(0, 1, 0x2C0, 2); /* SEND_SIGNALING_PCAS2_B, SCHEDULE */
                method(0, 1, 0x110, 0); /* WAIT_FOR_IDLE */
                semaphore(0, address(0, DATA_AT), launch, SEM_RELEASE);
                for (unsigned i = 0; i < 3; i++) {
                        run();
                        ASSERT_INT(submitted, before + i + 1);
                        ASSERT_INT(word(address(0, DATA_AT), 4), launch - 1);
                        ended++;
                }
                run();
                ASSERT_INT(submitted, before + 3);
                ASSERT_INT(word(address(0, DATA_AT), 4), launch);
                for (unsigned i = 0; i < 3; i++)
                        ASSERT_INT(word(node[i] + 256, 4), launch);
        }
        /* By methods, as the first kernels of a graph that has several. */
        for (unsigned i = 0; i < 2; i++) {
                ASSERT_INT(submitted, 6);
                method(0, 1, 0x2B4, (uint32_t) (node[2] >> 8));
                method(0, 1, 0x2C0, 7); /* DECREMENT_DEPENDENCE */
                run();
        }
        ASSERT_INT(submitted, 7);
        ASSERT_INT(error_of(0), 0);
        end();
}

/* Each of these ends its channel with its number, and the other channel goes on. */
static void faults(void) {
        static const struct {
                uint32_t xid;
                uint32_t n, words[4];
        } cases[] = {
                {32, 1, {6u << 29}},                                  /* reserved header */
                {32, 2, {1 << 29 | 1 << 16 | 1, 0}},                  /* ILLEGAL */
                {13, 2, {1 << 29 | 1 << 16 | 2 << 13 | 0x40, 0}},     /* a subchannel without a class */
                {31, 2, {1 << 29 | 1 << 16 | 0x6C / 4, SEM_RELEASE}}, /* a semaphore at address 0 */
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                begin();
                push(0, cases[i].words, cases[i].n);
                semaphore(0, address(0, DATA_AT), 1, SEM_RELEASE);
                semaphore(1, address(1, DATA_AT), 1, SEM_RELEASE);
                run();
                ASSERT_INT(error_of(0), cases[i].xid);
                ASSERT_INT(word(address(0, DATA_AT), 4), 0);
                ASSERT_INT(error_of(1), 0);
                ASSERT_INT(word(address(1, DATA_AT), 4), 1);
                ASSERT_INT(errors, 1);
                ASSERT_INT(channel_has_mmu_fault(), cases[i].xid == 31);
                channel_clear_mmu_fault();
                end();
        }
}

static void addresses_outside(void) {
        begin();
        submit(0, BASE + LANES * LANE_BYTES - 4, 2); /* a pushbuffer that ends behind the mapping */
        set_put(1, ENTRIES);                         /* beyond the GPFIFO */
        run();
        ASSERT_INT(error_of(0), 31);
        ASSERT_INT(error_of(1), 32);
        end();
        begin();
        method(0, 4, 0, COPY);
        copy_lines(0, BASE - 64, address(0, DATA_AT), 96, 1, 0x182);
        method(1, 4, 0, COPY);
        copy_lines(1, address(0, DATA_AT), BASE, 96, 1, 0x182 | 1 << 12); /* physical */
        run();
        ASSERT_INT(error_of(0), 31);
        ASSERT_INT(error_of(1), 39);
        channel_clear_mmu_fault();
        end();
}

/* A pushbuffer that moves its own GP_PUT back again and again. */
static void a_loop_holds_up_no_channel(void) {
        uint64_t userd_at = BASE + (UINT64_C(1) << 32);

        begin();
        memory_map(userd_at, 4096, userd[0], 0);
        for (uint32_t i = 0; i < ENTRIES - 1; i++)
                semaphore(0, userd_at + GP_PUT, i, SEM_RELEASE); /* always one behind GP_GET: never empty */
        semaphore(1, address(1, DATA_AT), 1, SEM_RELEASE);
        for (unsigned turn = 0; turn < 1000; turn++)
                (void) channel_turn();
        ASSERT_INT(word(address(1, DATA_AT), 4), 1);
        ASSERT_TRUE(channel_turn());
        memory_unmap(userd_at, 4096);
        end();
}

static bool rings(Memory *page) {
        enum { DOORBELL = 0x90 };
        uint32_t token = 1;

        ASSERT_TRUE(memory_write(page, DOORBELL, &token, sizeof token));
        (void) channel_turn();
        ASSERT_TRUE(memory_read(page, DOORBELL, &token, sizeof token));
        return token == UINT32_MAX;
}

/* Each card has a page; one that the program gives back is not written any more. */
static void doorbells_of_two_cards(void) {
        Memory *page[2] = {memory_new(4096), memory_new(4096)};

        for (unsigned i = 0; i < 2; i++)
                channel_doorbell(page[i]);
        ASSERT_TRUE(rings(page[0]));
        ASSERT_TRUE(rings(page[1]));
        channel_no_doorbell(page[1]);
        ASSERT_TRUE(rings(page[0]));
        ASSERT_FALSE(rings(page[1]));
        channel_no_doorbell(page[0]);
        for (unsigned i = 0; i < 2; i++)
                memory_unref(page[i]);
}

static void a_mapping_is_cut(void) {
        Memory *m;
        uint8_t bytes[3 * 4096] = {0};
        uint64_t fault = 0;

        begin();
        m = memory_new(3 * 4096);
        memory_map(0x10000, 3 * 4096, m, 0);
        memory_unmap(0x11000, 0x1000);
        ASSERT_FALSE(memory_load(0x10000, bytes, sizeof bytes, &fault));
        ASSERT_INT(fault, 0x11000);
        ASSERT_TRUE(memory_load(0x12000, bytes, 4096, &fault));
        ASSERT_FALSE(memory_load(0x12FFF, bytes, 2, &fault));
        ASSERT_INT(fault, 0x13000);
        memory_unmap(0, UINT64_C(1) << 32);
        ASSERT_FALSE(memory_load(0x10000, bytes, 1, &fault));
        memory_unref(m);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(semaphores_order_channels), TEST(headers_of_each_kind), TEST(copies_and_fills),
                         TEST(launches_end_later), TEST(a_graph_launches_its_kernels), TEST(faults),
                         TEST(addresses_outside), TEST(a_loop_holds_up_no_channel), TEST(a_mapping_is_cut),
                         TEST(doorbells_of_two_cards));
}
