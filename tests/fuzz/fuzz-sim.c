/* SPDX-License-Identifier: Apache-2.0 */

/* Any calls of two programs on the simulated driver, from any memory. No byte outside of it is
 * touched, the use is never above the size, and closing all files frees everything. A call is: a
 * byte for file and request form, the number, the size (two bytes), and the position of the
 * parameters. Then come the numbers of bytes for each of two positions in memory, and these
 * bytes. */

#include <assert.h>

#include "../fake/memory-caller.h"
#include "gpu/cards/simulated_cards.h"
#include "gpu/rm/rm.h"
#include "gpu/rm/uvm_ioctl.h"
#include "sim/call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 5, CLIENT = 0x77, DEVICE = 1, SUBDEVICE = 2, PARAMS = MEMORY_PAGE, NESTED = 2 * MEMORY_PAGE };

static const uint64_t places[] = {
        MEMORY_START, MEMORY_READ_ONLY, MEMORY_START + MEMORY_PAGE, MEMORY_END - 8, 0, UINT64_MAX - 3};
static const uint32_t uvm_requests[] = {UVM_INITIALIZE_CMD,
                                        UVM_DEINITIALIZE_CMD,
                                        UVM_REGISTER_GPU_CMD,
                                        UVM_UNREGISTER_GPU_CMD,
                                        UVM_PAGEABLE_MEM_ACCESS_CMD,
                                        UVM_MM_INITIALIZE_CMD,
                                        UVM_REGISTER_VASPACE_CMD,
                                        UVM_UNREGISTER_VASPACE_CMD,
                                        UVM_MAP_EXTERNAL_CMD,
                                        UVM_FREE_CMD,
                                        UVM_UNMAP_EXTERNAL_CMD,
                                        UVM_ALLOC_POOL_CMD,
                                        UVM_CREATE_RANGE_CMD,
                                        UVM_MAP_SPARSE_CMD,
                                        UVM_ALLOC_P2P_CMD};
enum { UVM_REQUESTS = sizeof uvm_requests / sizeof *uvm_requests };

static Sim sim;
static SimFile *files[FILES];
static MemoryCaller callers[2];

static SimFile *open_nth(size_t n) {
        static const SimFileKind kinds[FILES] = {SIM_FILE_CTL, SIM_FILE_CTL, SIM_FILE_CARD, SIM_FILE_UVM,
                                                 SIM_FILE_UVM_TOOLS};
        SimFile *f = sim_file_open(&sim, kinds[n], 0);

        assert(f);
        return f;
}

static void start(void) {
        CardList cards = {0};
        SimClient *c;
        SimObject *o;

        assert(cards_simulate(STR("2xT:64MiB"), STR("n"), &cards, NULL) == 0 &&
               sim_init(&sim, &cards, 1 << 20) == 0);
        card_list_done(&cards);
        sim.max_file_objects = 64;
        for (size_t i = 0; i < FILES; i++)
                files[i] = open_nth(i);
        for (uint32_t i = 0; i < 2; i++) {
                memory_caller_init(&callers[i], 7 + i, 0);
                callers[i].files[0] = files[0];
                callers[i].files[1] = files[1];
                assert(sim_client_new(files[i], CLIENT + i, (SimProcess){7 + i, 0}, &c) == RM_OK);
                assert(sim_object_new(c, &(SimWish){CLIENT + i, DEVICE, RM_CLASS_DEVICE, i, 0}, &o) == RM_OK);
                assert(sim_object_new(c, &(SimWish){DEVICE, SUBDEVICE, RM_CLASS_SUBDEVICE, 0, 0}, &o) ==
                       RM_OK);
        }
}

static void check(void) {
        for (size_t i = 0; i < sim.n_cards; i++)
                assert(sim.cards[i].used <= sim.cards[i].bytes - sim.cards[i].reserved &&
                       sim_card_largest(&sim.cards[i]).bytes <= sim_card_free(&sim.cards[i]));
        for (size_t i = 0; i < FILES; i++)
                assert(files[i]->n_objects <= sim.max_file_objects);
}

static size_t fill(uint8_t *to, const uint8_t *data, size_t size) {
        size_t n = size > 0 ? data[0] : 0;

        if (size == 0)
                return 0;
        n = n < size - 1 ? n : size - 1;
        memcpy(to, data + 1, n);
        return n + 1;
}

/* A UUID that begins with 0 or 1 becomes that of the card. What follows a list of cards is taken
 * from the other position, because no fill reaches it. */
static void complete_uvm(uint8_t *params, const uint8_t *nested, uint32_t request) {
        size_t at = request == UVM_MAP_EXTERNAL_CMD || request == UVM_ALLOC_P2P_CMD      ? 24
                    : request == UVM_UNMAP_EXTERNAL_CMD || request == UVM_MAP_SPARSE_CMD ? 16
                                                                                         : 0;

        if (request == UVM_MAP_EXTERNAL_CMD)
                memmove(params + offsetof(UvmMapExternal, n), nested,
                        sizeof(UvmMapExternal) - offsetof(UvmMapExternal, n));
        if (request != UVM_INITIALIZE_CMD && request != UVM_FREE_CMD && request != UVM_CREATE_RANGE_CMD &&
            request != UVM_ALLOC_POOL_CMD && params[at] < sim.n_cards)
                sim_uuid_bytes(&sim.cards[params[at]], params + at);
}

static size_t one_call(const uint8_t *data, size_t size) {
        size_t n = data[0] % FILES, at = 5;
        MemoryCaller *who = &callers[data[0] >> 4 & 1];
        uint32_t request = RM_IOCTL(data[1], data[2] | data[3] << 8);
        int r;

        if (files[n]->kind == SIM_FILE_UVM)
                request = uvm_requests[data[1] % UVM_REQUESTS];
        at += fill(who->bytes + PARAMS, data + at, size - at);
        at += fill(who->bytes + NESTED, data + at, size - at);
        if (files[n]->kind == SIM_FILE_UVM)
                complete_uvm(who->bytes + PARAMS, who->bytes + NESTED, request);
        (void) sim_call_descriptor(&who->caller, request, places[data[4] % 6]);
        r = sim_call(files[n], &who->caller, request, places[data[4] % 6]);
        assert(r == 0 || r == -EFAULT || r == -EINVAL);
        if (data[0] >> 5 == 7) {
                sim_file_close(files[n]);
                files[n] = open_nth(n);
                for (size_t i = 0; i < 2 && n < MEMORY_FILES; i++)
                        callers[i].files[n] = files[n];
        }
        return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        start();
        while (size > 5) {
                size_t used = one_call(data, size);

                data += used;
                size -= used;
                check();
        }
        for (size_t i = 0; i < FILES; i++)
                sim_file_close(files[i]);
        assert(sim.n_objects == 0 && sim.cards[0].used == 0 && sim.cards[1].used == 0);
        sim_done(&sim);
        return 0;
}
