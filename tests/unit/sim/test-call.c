/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "gpu/rm/uvm_ioctl.h"
#include "program.h"

static Sim sim;

static void memory_comes_rounded(void) {
        RmMemoryParams *out;
        Program p;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        c = program_start(&p, 1);
        ASSERT_INT(program_memory(&p, c, 3, 3 * MIB), RM_OK);
        out = program_bytes(&p, NESTED_AT);
        ASSERT_INT(out->size, 4 * MIB);
        ASSERT_INT(out->limit, 4 * MIB - 1);
        ASSERT_INT(out->attr >> RM_ATTR_PAGE_SHIFT & RM_ATTR_PAGE_MASK, RM_ATTR_PAGE_HUGE);
        ASSERT_INT(sim.cards[1].used, 4 * MIB);
        ASSERT_INT(program_free(&p, c, 3), RM_OK);
        ASSERT_INT(sim.cards[1].used, 0);
        ASSERT_INT(program_memory(&p, c, 3, 256 * MIB + 1), RM_ERR_NO_MEMORY);
        ASSERT_INT(program_memory(&p, c, 3, 256 * MIB), RM_OK);
        sim_file_close(p.ctl);
        ASSERT_INT(sim.cards[1].used, 0);
        sim_done(&sim);
}

static uint32_t alloc_memory(Program *p, uint32_t c, RmMemoryParams m) {
        return program_alloc(p, c, 1, 3, RM_CLASS_MEMORY_LOCAL, &m, sizeof m);
}

static void invalid_memory_is_refused(void) {
        Program p;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        c = program_start(&p, 0);
        ASSERT_INT(alloc_memory(&p, c, (RmMemoryParams){.owner = 1}), RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(alloc_memory(&p, c, (RmMemoryParams){.size = MIB}), RM_ERR_INVALID_OWNER);
        ASSERT_INT(alloc_memory(&p, c, (RmMemoryParams){.owner = 0xDEAF0003, .size = MIB}),
                   RM_ERR_INVALID_OWNER);
        ASSERT_INT(alloc_memory(&p, c, (RmMemoryParams){.owner = 1, .size = UINT64_MAX}), RM_ERR_NO_MEMORY);
        ASSERT_INT(alloc_memory(&p, c, (RmMemoryParams){.owner = 1, .size = MIB, .flags = RM_FLAG_VIRTUAL}),
                   RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(alloc_memory(&p, c,
                                (RmMemoryParams){.owner = 1,
                                                 .size = MIB,
                                                 .attr = RM_ATTR_LOCATION_PCI << RM_ATTR_LOCATION_SHIFT}),
                   RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(alloc_memory(&p, c, (RmMemoryParams){.owner = 1, .size = MIB, .internal_flags = 1}),
                   RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(program_alloc(&p, c, 1, 3, RM_CLASS_MEMORY_LOCAL, NULL, 0), RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(program_alloc(&p, c, c, 3, RM_CLASS_DEVICE, NULL, 0), RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(program_memory(&p, c + 1, 3, MIB), RM_ERR_INVALID_OBJECT_HANDLE);
        ASSERT_INT(sim.cards[0].used, 0);
        ASSERT_INT(sim.n_objects, 3);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

/* If the result cannot be copied out, the object is made all the same. */
static void unwritable_results_keep_the_object(void) {
        RmMemoryParams m = {.owner = 1, .size = 2 * MIB};
        RmAlloc a = {.parent = 1, .class_ = RM_CLASS_MEMORY_LOCAL, .new = 3, .params = MEMORY_READ_ONLY};
        Program p;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        a.root = program_start(&p, 0);
        memcpy(p.memory.bytes, &m, sizeof m);
        ASSERT_OK(program_call(&p, RM_ESC_ALLOC, &a, sizeof a));
        ASSERT_INT(a.status, RM_ERR_INVALID_ADDRESS);
        ASSERT_INT(sim.cards[0].used, 2 * MIB);

        a.new = 4;
        a.params = NESTED_AT;
        memcpy(program_bytes(&p, NESTED_AT), &m, sizeof m);
        memcpy(p.memory.bytes, &a, sizeof a);
        ASSERT_INT(sim_call(p.ctl, &p.memory.caller, RM_IOCTL(RM_ESC_ALLOC, sizeof a), MEMORY_READ_ONLY),
                   -EFAULT);
        ASSERT_INT(sim.cards[0].used, 4 * MIB);
        ASSERT_INT(program_free(&p, a.root, 3), RM_OK);
        ASSERT_INT(program_free(&p, a.root, 4), RM_OK);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static void invalid_addresses(void) {
        static const uint64_t bad[] = {
                0, 1, MEMORY_END, MEMORY_END - 1, UINT64_MAX, UINT64_MAX - 31, MEMORY_READ_ONLY - 1};
        Program p;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        c = program_start(&p, 0);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                RmAlloc a = {.root = c, .parent = 1, .class_ = RM_CLASS_MEMORY_LOCAL, .params = bad[i]};
                RmXfer x = {RM_ESC_ALLOC, sizeof a, bad[i]};

                ASSERT_INT(sim_call(p.ctl, &p.memory.caller, RM_IOCTL(RM_ESC_ALLOC, sizeof a), bad[i]),
                           -EFAULT);
                ASSERT_OK(program_call(&p, RM_ESC_ALLOC, &a, sizeof a));
                ASSERT_INT(a.status, bad[i] == 0 ? RM_ERR_INVALID_ARGUMENT : RM_ERR_INVALID_ADDRESS);
                ASSERT_INT(program_call(&p, RM_ESC_XFER_CMD, &x, sizeof x), -EFAULT);
        }
        ASSERT_INT(sim.n_objects, 3);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static void calls_by_number_and_size(void) {
        uint8_t params[256] = {0};
        SimFile *card, *tools;
        Program p;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        card = sim_file_open(&sim, SIM_FILE_CARD, 0);
        tools = sim_file_open(&sim, SIM_FILE_UVM_TOOLS, 0);
        ASSERT_INT(program_call(&p, 1, params, 16), -EINVAL);
        ASSERT_INT(program_call(&p, RM_ESC_ALLOC, params, 31), -EINVAL);
        ASSERT_INT(program_call(&p, RM_ESC_FREE, params, 32), -EINVAL);
        ASSERT_INT(program_call(&p, RM_ESC_CARD_INFO, params, 0), -EINVAL);
        ASSERT_INT(program_call(&p, RM_ESC_CARD_INFO, params, 71), -EINVAL);
        ASSERT_INT(program_call(&p, RM_ESC_CARD_INFO, params, 72), -EINVAL); /* there are two */
        ASSERT_OK(program_call(&p, RM_ESC_CARD_INFO, params, 144));
        ASSERT_INT(((RmCardInfo *) params)[1].gpu, 0x200);
        ASSERT_INT(program_call(&p, RM_ESC_ALLOC_MEMORY, params, sizeof(RmAllocMemory)),
                   -EINVAL); /* on a card's file */
        ASSERT_INT(program_call_on(&p, card, RM_ESC_FREE, params, sizeof(RmFree)), -EINVAL);
        ASSERT_INT(program_call_on(&p, card, RM_ESC_ALLOC, params, sizeof(RmAlloc)), -EINVAL);
        ASSERT_INT(program_call_on(&p, tools, RM_ESC_FREE, params, sizeof(RmFree)), -EINVAL);
        /* The type byte and the direction of a request do not count. */
        memset(params, 0, sizeof params);
        ((RmAlloc *) params)->class_ = RM_CLASS_ROOT_CLIENT;
        memcpy(program_bytes(&p, PARAMS_AT), params, sizeof(RmAlloc));
        ASSERT_OK(sim_call(p.ctl, &p.memory.caller, (uint32_t) sizeof(RmAlloc) << 16 | RM_ESC_ALLOC,
                           PARAMS_AT));
        ASSERT_INT(sim.n_objects, 1);
        sim_file_close(tools);
        sim_file_close(card);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static void both_forms_of_alloc(void) {
        RmAllocRights a = {.class_ = RM_CLASS_ROOT_CLIENT, .root = 0x77, .status = 99};
        Program p;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        ASSERT_OK(program_call(&p, RM_ESC_ALLOC, &a, sizeof a));
        ASSERT_INT(a.status, RM_OK);
        ASSERT_INT(a.new, 0x77);
        a.status = 99;
        ASSERT_OK(program_call(&p, RM_ESC_ALLOC, &a, sizeof a));
        ASSERT_INT(a.status, RM_ERR_INSERT_DUPLICATE_NAME);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static void transferred_calls(void) {
        RmAlloc a = {.class_ = RM_CLASS_ROOT_CLIENT};
        RmXfer x = {RM_ESC_ALLOC, sizeof a, NESTED_AT};
        Program p;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        memcpy(program_bytes(&p, NESTED_AT), &a, sizeof a);
        ASSERT_OK(program_call(&p, RM_ESC_XFER_CMD, &x, sizeof x));
        ASSERT_INT(sim.n_objects, 1);
        x.size = RM_XFER_MAX + 1;
        ASSERT_INT(program_call(&p, RM_ESC_XFER_CMD, &x, sizeof x), -EINVAL);
        x.size = RM_XFER_MAX;
        ASSERT_INT(program_call(&p, RM_ESC_XFER_CMD, &x, sizeof x), -EINVAL);
        x = (RmXfer){RM_ESC_XFER_CMD, sizeof x, NESTED_AT};
        ASSERT_INT(program_call(&p, RM_ESC_XFER_CMD, &x, sizeof x), -EINVAL);
        ASSERT_INT(program_call(&p, RM_ESC_XFER_CMD, &x, sizeof x - 1), -EINVAL);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static void frees(void) {
        Program p, q;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        q = program_open(&sim, 8, 0);
        c = program_start(&p, 0);
        ASSERT_INT(program_memory(&p, c, 3, MIB), RM_OK);
        ASSERT_INT(program_free(&q, c, 3), RM_ERR_INVALID_CLIENT);
        ASSERT_INT(program_free(&p, c, 3), RM_OK);
        ASSERT_INT(program_free(&p, c, 3), RM_OK); /* a missing object counts as freed */
        ASSERT_INT(program_memory(&p, c, 3, MIB), RM_OK);
        ASSERT_INT(program_free(&p, c, c), RM_OK);
        ASSERT_INT(program_free(&p, c, c), RM_ERR_INVALID_OBJECT_HANDLE);
        ASSERT_INT(program_memory(&p, c, 3, MIB), RM_ERR_INVALID_OBJECT_HANDLE);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_file_close(p.ctl);
        sim_file_close(q.ctl);
        sim_done(&sim);
}

static uint32_t duplicate(Program *p, uint32_t to, uint32_t from, uint32_t source) {
        RmDup d = {.client = to, .parent = 1, .object = 9, .source_client = from, .source_object = source};

        ASSERT_OK(program_call(p, RM_ESC_DUP_OBJECT, &d, sizeof d));
        return d.status;
}

static void duplicates_between_programs(void) {
        Program p, q;
        uint32_t c, d;

        machine_init(&sim);
        p = program_open(&sim, 7, 1000);
        q = program_open(&sim, 8, 1000);
        c = program_start(&p, 0);
        d = program_start(&q, 0);
        ASSERT_INT(program_memory(&p, c, 3, 2 * MIB), RM_OK);
        ASSERT_INT(duplicate(&q, d, c, 3), RM_OK);
        ASSERT_INT(duplicate(&q, d, c, 3), RM_ERR_INSERT_DUPLICATE_NAME);
        ASSERT_INT(duplicate(&q, d, 5, 3), RM_ERR_INVALID_OBJECT_HANDLE);
        ASSERT_INT(duplicate(&q, c, d, 9), RM_ERR_INVALID_CLIENT);
        sim_file_close(p.ctl);
        ASSERT_INT(sim.cards[0].used, 2 * MIB);
        ASSERT_INT(program_free(&q, d, 9), RM_OK);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_file_close(q.ctl);
        sim_done(&sim);
}

static uint32_t heap(Program *p, uint32_t c, uint32_t function, RmHeap *h) {
        h->root = c;
        h->parent = 1;
        h->function = function;
        ASSERT_OK(program_call(p, RM_ESC_VID_HEAP_CONTROL, h, sizeof *h));
        return h->status;
}

static void vid_heap_control(void) {
        RmHeap h = {.owner = 1, .size = 3 * MIB, .memory = 77};
        RmHeapPitch pitch = {
                .owner = 1, .height = 100, .pitch = 1000, .memory = 5, .flags = RM_FLAG_HANDLE_GIVEN};
        RmHeapRange range = {.owner = 1, .memory = 6, .flags = RM_FLAG_HANDLE_GIVEN, .alignment = 64 * KIB};
        RmHeapFree gone = {.memory = 5};
        Program p;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        c = program_start(&p, 0);
        ASSERT_INT(heap(&p, c, RM_HEAP_ALLOC_SIZE, &h), RM_OK);
        ASSERT_INT(h.size, 4 * MIB);
        ASSERT_INT(h.memory, 0xCAF00000);                     /* without the flag that it is given */
        memcpy((uint8_t *) &range + 80, &(uint64_t){MIB}, 8); /* nvos.h, AllocSizeRange.size */
        ASSERT_INT(heap(&p, c, RM_HEAP_ALLOC_SIZE_RANGE, (RmHeap *) &range), RM_OK);
        ASSERT_INT(range.size, MIB);
        ASSERT_INT(heap(&p, c, RM_HEAP_ALLOC_PITCH_HEIGHT, (RmHeap *) &pitch), RM_OK);
        ASSERT_INT(pitch.size, 128 * KIB);
        ASSERT_INT(sim.cards[0].used, 5 * MIB + 128 * KIB);
        h = (RmHeap){0};
        ASSERT_INT(heap(&p, c, RM_HEAP_INFO, &h), RM_OK);
        ASSERT_INT(h.total, 256 * MIB);
        ASSERT_INT(h.free, 251 * MIB - 128 * KIB);
        ASSERT_INT(heap(&p, c, RM_HEAP_FREE, (RmHeap *) &gone), RM_ERR_INVALID_ARGUMENT);
        gone.flags = 1;
        ASSERT_INT(heap(&p, c, RM_HEAP_FREE, (RmHeap *) &gone), RM_OK);
        ASSERT_INT(sim.cards[0].used, 5 * MIB);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

/* By RM_ALLOC and by VID_HEAP_CONTROL the size comes back in whole pages of 4 KiB. */
static void memory_of_the_machine_comes_rounded(void) {
        static const struct {
                uint64_t asked, got;
        } cases[] = {{1, 4096}, {4096, 4096}, {4097, 8192}, {0x532010, 0x533000}};
        RmHeap h = {.owner = 1, .size = UINT64_MAX, .attr = RM_ATTR_LOCATION_PCI << RM_ATTR_LOCATION_SHIFT};
        RmMemoryParams m;
        Program p;
        RmAlloc a = {.parent = 1, .class_ = RM_CLASS_MEMORY_SYSTEM, .params = NESTED_AT};

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        a.root = program_start(&p, 0);
        ASSERT_INT(heap(&p, a.root, RM_HEAP_ALLOC_SIZE, &h), RM_ERR_NO_MEMORY);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                h.size = cases[i].asked;
                ASSERT_INT(heap(&p, a.root, RM_HEAP_ALLOC_SIZE, &h), RM_OK);
                ASSERT_INT(h.size, cases[i].got);
                m = (RmMemoryParams){.owner = 1, .size = cases[i].asked};
                memcpy(program_bytes(&p, NESTED_AT), &m, sizeof m);
                a.new = 0;
                ASSERT_OK(program_call(&p, RM_ESC_ALLOC, &a, sizeof a));
                ASSERT_INT(a.status, RM_OK);
                memcpy(&m, program_bytes(&p, NESTED_AT), sizeof m);
                ASSERT_INT(m.size, cases[i].got);
                ASSERT_INT(m.limit, cases[i].got - 1);
        }
        ASSERT_INT(sim.cards[0].used, 0);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static void vid_heap_control_refuses(void) {
        RmHeap h = {.owner = 1, .size = MIB, .flags = RM_FLAG_VIRTUAL};
        RmHeapPitch pitch = {.owner = 1, .height = UINT32_MAX, .pitch = -1};
        Program p;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        c = program_start(&p, 0);
        ASSERT_INT(heap(&p, c, RM_HEAP_ALLOC_SIZE, &h), RM_OK); /* addresses */
        h = (RmHeap){.owner = 1, .size = MIB, .attr = RM_ATTR_LOCATION_PCI << RM_ATTR_LOCATION_SHIFT};
        ASSERT_INT(heap(&p, c, RM_HEAP_ALLOC_SIZE, &h), RM_OK); /* memory of the machine */
        ASSERT_INT(sim.cards[0].used, 0);
        h = (RmHeap){.owner = 1, .size = MIB, .ivc = 1};
        ASSERT_INT(heap(&p, c, RM_HEAP_ALLOC_SIZE, &h), RM_ERR_NOT_SUPPORTED);
        h = (RmHeap){.owner = 1, .size = MIB};
        ASSERT_INT(heap(&p, c, 99, &h), RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(heap(&p, c + 1, RM_HEAP_ALLOC_SIZE, &h), RM_ERR_INVALID_OBJECT_HANDLE);
        ASSERT_INT(heap(&p, c, RM_HEAP_ALLOC_PITCH_HEIGHT, (RmHeap *) &pitch), RM_ERR_NO_MEMORY);
        pitch = (RmHeapPitch){.owner = 1};
        ASSERT_INT(heap(&p, c, RM_HEAP_ALLOC_PITCH_HEIGHT, (RmHeap *) &pitch), RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static void alloc_memory_gives_no_memory(void) {
        RmAllocMemory m = {.parent = 1, .new = 3, .class_ = RM_CLASS_MEMORY_LOCAL, .limit = 2 * MIB - 1};
        RmRegisterFd fd = {MEMORY_CTL_FD + 1};
        SimFile *card;
        Program p;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        card = sim_file_open(&sim, SIM_FILE_CARD, 0);
        m.root = program_start(&p, 0);
        ASSERT_OK(program_call_on(&p, card, RM_ESC_ALLOC_MEMORY, &m, sizeof m));
        ASSERT_INT(m.status, RM_ERR_INVALID_CLIENT);
        ASSERT_INT(program_call_on(&p, card, RM_ESC_REGISTER_FD, &fd, sizeof fd), -EINVAL);
        fd.ctl = MEMORY_CTL_FD;
        ASSERT_OK(program_call_on(&p, card, RM_ESC_REGISTER_FD, &fd, sizeof fd));
        ASSERT_INT(program_call_on(&p, card, RM_ESC_REGISTER_FD, &fd, sizeof fd), -EINVAL);
        ASSERT_OK(program_call_on(&p, card, RM_ESC_ALLOC_MEMORY, &m, sizeof m));
        ASSERT_INT(m.status, RM_OK);
        ASSERT_INT(m.limit, 256 * MIB - 1);
        ASSERT_INT(sim.cards[0].used, 0);
        m = (RmAllocMemory){.root = m.root, .parent = 1, .class_ = 0x1234};
        ASSERT_OK(program_call_on(&p, card, RM_ESC_ALLOC_MEMORY, &m, sizeof m));
        ASSERT_INT(m.status, RM_ERR_INVALID_CLASS);
        m.class_ = RM_CLASS_MEMORY_SYSTEM;
        m.flags = 1u << 16;
        ASSERT_OK(program_call_on(&p, card, RM_ESC_ALLOC_MEMORY, &m, sizeof m));
        ASSERT_INT(m.status, RM_ERR_INVALID_FLAGS);
        sim_file_close(card);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static int version(Program *p, uint32_t cmd, const char *text, RmVersion *v) {
        *v = (RmVersion){.cmd = cmd};
        memset(v->version, 'x', sizeof v->version);
        memcpy(v->version, text, strlen(text) + 1);
        return program_call(p, RM_ESC_CHECK_VERSION, v, sizeof *v);
}

static void versions(void) {
        Program p;
        RmVersion v;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        ASSERT_OK(version(&p, RM_VERSION_STRICT, SIM_VERSION, &v));
        ASSERT_INT(v.reply, 1);
        ASSERT_INT(version(&p, RM_VERSION_STRICT, "595.45.05", &v), -EINVAL);
        ASSERT_TEXT(v.version, SIM_VERSION);
        ASSERT_OK(version(&p, RM_VERSION_RELAXED, "595.99", &v));
        ASSERT_INT(version(&p, RM_VERSION_RELAXED, "59", &v), -EINVAL);
        ASSERT_OK(version(&p, RM_VERSION_QUERY, "", &v));
        ASSERT_TEXT(v.version, SIM_VERSION);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static void uvm(void) {
        UvmRegisterGpu r = {0};
        UvmInitialize i = {.status = 9};
        UvmPageableMemAccess a;
        MemoryCaller m;
        SimFile *f;

        machine_init(&sim);
        memory_caller_init(&m, 7, 0);
        f = sim_file_open(&sim, SIM_FILE_UVM, 0);
        sim_uuid_bytes(&sim.cards[1], r.uuid);
        ASSERT_OK(m.caller.write(&m.caller, PARAMS_AT, &r, sizeof r));
        ASSERT_OK(sim_call(f, &m.caller, UVM_REGISTER_GPU_CMD, PARAMS_AT));
        ASSERT_OK(m.caller.read(&m.caller, PARAMS_AT, &r, sizeof r));
        ASSERT_INT(r.status, RM_ERR_ILLEGAL_ACTION);
        ASSERT_OK(m.caller.write(&m.caller, PARAMS_AT, &i, sizeof i));
        ASSERT_OK(sim_call(f, &m.caller, UVM_INITIALIZE_CMD, PARAMS_AT));
        ASSERT_OK(m.caller.read(&m.caller, PARAMS_AT, &i, sizeof i));
        ASSERT_INT(i.status, RM_OK);
        ASSERT_OK(m.caller.write(&m.caller, PARAMS_AT, &r, sizeof r));
        ASSERT_OK(sim_call(f, &m.caller, UVM_REGISTER_GPU_CMD, PARAMS_AT));
        ASSERT_OK(m.caller.read(&m.caller, PARAMS_AT, &r, sizeof r));
        ASSERT_INT(r.status, RM_OK);
        r.uuid[0] ^= 1;
        ASSERT_OK(m.caller.write(&m.caller, PARAMS_AT, &r, sizeof r));
        ASSERT_OK(sim_call(f, &m.caller, UVM_REGISTER_GPU_CMD, PARAMS_AT));
        ASSERT_OK(m.caller.read(&m.caller, PARAMS_AT, &r, sizeof r));
        ASSERT_INT(r.status, RM_ERR_INVALID_DEVICE);
        ASSERT_OK(sim_call(f, &m.caller, UVM_PAGEABLE_MEM_ACCESS_CMD, PARAMS_AT));
        ASSERT_OK(m.caller.read(&m.caller, PARAMS_AT, &a, sizeof a));
        ASSERT_INT(a.pageable, 1);
        for (i.flags = 1; i.flags <= 4; i.flags += 3) { /* another version string, and an unknown command */
                ASSERT_OK(m.caller.write(&m.caller, PARAMS_AT, &i, sizeof i));
                ASSERT_OK(sim_call(f, &m.caller, UVM_INITIALIZE_CMD, PARAMS_AT));
                ASSERT_OK(m.caller.read(&m.caller, PARAMS_AT, &i, sizeof i));
                ASSERT_INT(i.status, RM_ERR_INVALID_ARGUMENT);
        }
        ASSERT_OK(sim_call(f, &m.caller, UVM_DEINITIALIZE_CMD, 0));
        ASSERT_INT(sim_call(f, &m.caller, UVM_INITIALIZE_CMD, 0), -EFAULT);
        ASSERT_INT(sim_call(f, &m.caller, UVM_INITIALIZE_CMD, MEMORY_READ_ONLY), -EFAULT);
        ASSERT_INT(sim_call(f, &m.caller, 9999, PARAMS_AT), -EINVAL);
        sim_file_close(f);
        sim_done(&sim);
}

static void pageable_is(SimFile *f, MemoryCaller *m, uint32_t status, int pageable) {
        UvmPageableOnGpu a = {.pageable = 9};

        sim_uuid_bytes(&sim.cards[1], a.uuid);
        ASSERT_OK(m->caller.write(&m->caller, PARAMS_AT, &a, sizeof a));
        ASSERT_OK(sim_call(f, &m->caller, UVM_PAGEABLE_ON_GPU_CMD, PARAMS_AT));
        ASSERT_OK(m->caller.read(&m->caller, PARAMS_AT, &a, sizeof a));
        ASSERT_INT(a.status, status);
        ASSERT_INT(a.pageable, pageable);
}

/* A registered card reaches plain memory exactly when HMM is on; other cards are unknown. */
static void pageable_on_gpu(void) {
        UvmRegisterGpu r = {0};
        MemoryCaller m;
        SimFile *f;

        machine_init(&sim);
        memory_caller_init(&m, 7, 0);
        for (UvmInitialize i = {0}; i.flags <= UVM_INIT_DISABLE_HMM; i.flags++) {
                f = sim_file_open(&sim, SIM_FILE_UVM, 0);
                pageable_is(f, &m, RM_ERR_ILLEGAL_ACTION, 9);
                ASSERT_OK(m.caller.write(&m.caller, PARAMS_AT, &i, sizeof i));
                ASSERT_OK(sim_call(f, &m.caller, UVM_INITIALIZE_CMD, PARAMS_AT));
                pageable_is(f, &m, RM_ERR_INVALID_DEVICE, 9);
                sim_uuid_bytes(&sim.cards[1], r.uuid);
                ASSERT_OK(m.caller.write(&m.caller, PARAMS_AT, &r, sizeof r));
                ASSERT_OK(sim_call(f, &m.caller, UVM_REGISTER_GPU_CMD, PARAMS_AT));
                pageable_is(f, &m, RM_OK, i.flags == 0);
                sim_file_close(f);
        }
        sim_done(&sim);
}

int main(void) {
        return TEST_MAIN(TEST(memory_comes_rounded), TEST(invalid_memory_is_refused),
                         TEST(unwritable_results_keep_the_object), TEST(invalid_addresses),
                         TEST(calls_by_number_and_size), TEST(both_forms_of_alloc), TEST(transferred_calls),
                         TEST(frees), TEST(duplicates_between_programs), TEST(vid_heap_control),
                         TEST(memory_of_the_machine_comes_rounded), TEST(vid_heap_control_refuses),
                         TEST(alloc_memory_gives_no_memory), TEST(versions), TEST(uvm),
                         TEST(pageable_on_gpu));
}
