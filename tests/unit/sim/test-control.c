/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "gpu/rm/export.h"
#include "program.h"
#include "sim/status.h"

static Sim sim;

static void lists_cards(void) {
        RmAttachedIds ids = {0};
        RmProbedIds probed = {0};
        RmIdInfo info = {0};
        RmIdInfoV2 v2 = {.gpu = 0x200};
        Program p;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        c = program_client(&p);
        ASSERT_INT(program_control(&p, c, c, RM_CTRL_ATTACHED_IDS, &ids, sizeof ids), RM_OK);
        ASSERT_INT(ids.gpus[0], 0x100);
        ASSERT_INT(ids.gpus[1], 0x200);
        ASSERT_INT(ids.gpus[2], RM_GPU_ID_NONE);
        ASSERT_INT(program_control(&p, c, c, RM_CTRL_PROBED_IDS, &probed, sizeof probed), RM_OK);
        ASSERT_INT(probed.gpus[1], 0x200);
        ASSERT_INT(probed.excluded[0], RM_GPU_ID_NONE);
        ASSERT_INT(program_control(&p, c, c, RM_CTRL_ID_INFO_V2, &v2, sizeof v2), RM_OK);
        ASSERT_INT(v2.device, 1);
        ASSERT_INT(v2.flags, 0);
        (void) program_start(&p, 1);
        info.gpu = ids.gpus[1];
        ASSERT_INT(program_control(&p, c, c, RM_CTRL_ID_INFO, &info, sizeof info), RM_OK);
        ASSERT_INT(info.device, 1);
        ASSERT_INT(info.flags, 1); /* in use */
        info.gpu = 0x300;
        ASSERT_INT(program_control(&p, c, c, RM_CTRL_ID_INFO, &info, sizeof info), RM_ERR_INVALID_ARGUMENT);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static void returns_names(void) {
        RmNameString name = {0};
        RmGidInfo gid = {0};
        Program p;
        uint32_t c;
        char text[64];

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        c = program_start(&p, 1);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_NAME_STRING, &name, sizeof name), RM_OK);
        ASSERT_TEXT((char *) name.name, "T");
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_GID_INFO, &gid, sizeof gid), RM_OK);
        ASSERT_INT(gid.length, 41);
        ASSERT_TEXT((char *) gid.data, sim.cards[1].about.uuid);
        gid.flags = RM_GID_BINARY;
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_GID_INFO, &gid, sizeof gid), RM_OK);
        ASSERT_INT(gid.length, 16);
        (void) snprintf(text, sizeof text,
                        "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                        gid.data[0], gid.data[1], gid.data[2], gid.data[3], gid.data[4], gid.data[5],
                        gid.data[6], gid.data[7], gid.data[8], gid.data[9], gid.data[10], gid.data[11],
                        gid.data[12], gid.data[13], gid.data[14], gid.data[15]);
        ASSERT_TEXT(text, sim.cards[1].about.uuid);
        gid.flags = 4;
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_GID_INFO, &gid, sizeof gid), RM_ERR_INVALID_FLAGS);
        gid.flags = 8;
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_GID_INFO, &gid, sizeof gid), RM_ERR_INVALID_PARAMETER);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static uint32_t fb(Program *p, uint32_t c, uint32_t index) {
        RmFbInfoV2 i = {.n = 1, .list = {{index, 12345}}};

        ASSERT_INT(program_control(p, c, 2, RM_CTRL_FB_INFO_V2, &i, sizeof i), RM_OK);
        return i.list[0].data;
}

static void returns_memory(void) {
        RmFbInfo list = {.n = 2, .list = NESTED_AT + 4096};
        RmFbEntry entries[2] = {{RM_FB_HEAP_FREE, 0}, {RM_FB_TOTAL_RAM_SIZE, 0}};
        RmFbInfoV2 none = {0};
        RmFbRegions regions = {0};
        Program p;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        c = program_start(&p, 0);
        ASSERT_INT(program_memory(&p, c, 3, 6 * MIB), RM_OK);
        ASSERT_INT(fb(&p, c, RM_FB_RAM_SIZE), 256 * KIB);
        ASSERT_INT(fb(&p, c, RM_FB_TOTAL_RAM_SIZE), 256 * KIB);
        ASSERT_INT(fb(&p, c, RM_FB_HEAP_SIZE), 256 * KIB);
        ASSERT_INT(fb(&p, c, RM_FB_USABLE_RAM_SIZE), 256 * KIB);
        ASSERT_INT(fb(&p, c, RM_FB_MAPPABLE_HEAP_SIZE), 256 * KIB);
        ASSERT_INT(fb(&p, c, RM_FB_HEAP_FREE), 250 * KIB);
        ASSERT_INT(fb(&p, c, RM_FB_LARGEST_FREE_REGION), 250 * KIB);
        ASSERT_INT(fb(&p, c, RM_FB_LARGEST_FREE_REGION_BASE), 6 * KIB);
        ASSERT_INT(fb(&p, c, 0x0B), 0);
        ASSERT_INT(fb(&p, c, 0x7F), 12345);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_FB_INFO_V2, &none, sizeof none),
                   RM_ERR_INVALID_ARGUMENT);
        none.n = RM_FB_LIST_MAX + 1;
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_FB_INFO_V2, &none, sizeof none),
                   RM_ERR_INVALID_ARGUMENT);
        memcpy(program_bytes(&p, list.list), entries, sizeof entries);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_FB_INFO, &list, sizeof list), RM_OK);
        ASSERT_INT(((RmFbEntry *) program_bytes(&p, list.list))[0].data, 250 * KIB);
        list.list = MEMORY_END - 8;
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_FB_INFO, &list, sizeof list), RM_ERR_INVALID_ADDRESS);
        list = (RmFbInfo){.n = UINT32_MAX, .list = NESTED_AT};
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_FB_INFO, &list, sizeof list), RM_ERR_OUT_OF_RANGE);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_FB_REGION_INFO, &regions, sizeof regions), RM_OK);
        ASSERT_INT(regions.n, 1);
        ASSERT_INT(regions.regions[0].limit, 256 * MIB - 1);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static RmPidInfo usage(Program *p, uint32_t c, uint32_t pid) {
        static RmPidInfos infos;

        infos = (RmPidInfos){.n = 1, .list = {{.pid = pid}}};
        ASSERT_INT(program_control(p, c, 2, RM_CTRL_PID_INFO, &infos, sizeof infos), RM_OK);
        return infos.list[0];
}

static void lists_processes_with_their_memory(void) {
        RmDup dup = {.parent = 1, .source_object = 3};
        RmPids pids = {.id = RM_CLASS_SUBDEVICE};
        RmPidInfos none = {.n = RM_PID_INFO_MAX + 1};
        Program p, q;
        uint32_t c, d;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        q = program_open(&sim, 8, 0);
        c = program_start(&p, 0);
        d = program_start(&q, 0);
        (void) program_start(&q, 1); /* belongs to the other card */
        ASSERT_INT(program_memory(&p, c, 3, 2 * MIB), RM_OK);
        ASSERT_INT(program_memory(&p, c, 4, 6 * MIB), RM_OK);
        dup.client = d;
        dup.source_client = c;
        ASSERT_OK(program_call(&q, RM_ESC_DUP_OBJECT, &dup, sizeof dup));
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_PIDS, &pids, sizeof pids), RM_OK);
        ASSERT_INT(pids.n, 2);
        ASSERT_INT(pids.pids[0], 1007);
        ASSERT_INT(pids.pids[1], 1008);
        ASSERT_INT(usage(&p, c, 1007).exclusive, 6 * MIB);
        ASSERT_INT(usage(&p, c, 1007).shared_owned, 2 * MIB);
        ASSERT_INT(usage(&p, c, 1008).shared_duped, 2 * MIB);
        ASSERT_INT(usage(&p, c, 7).exclusive, 0); /* the pid in the server's namespace is not the caller's */
        ASSERT_INT(usage(&p, c, 0).result, RM_ERR_INVALID_ARGUMENT);
        p.memory.hidden = 8;
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_PIDS, &pids, sizeof pids), RM_OK);
        ASSERT_INT(pids.n, 1);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_PID_INFO, &none, sizeof none), RM_ERR_INVALID_ARGUMENT);
        none.n = 0;
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_PID_INFO, &none, sizeof none), RM_ERR_INVALID_ARGUMENT);
        sim_file_close(p.ctl);
        sim_file_close(q.ctl);
        sim_done(&sim);
}

static void returns_the_size_of_a_group(void) {
        RmCtxBufferSize size = {.channel = 3};
        Program p;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        c = program_start(&p, 0);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_CTX_BUFFER_SIZE, &size, sizeof size),
                   RM_ERR_INVALID_CHANNEL);
        ASSERT_INT(program_alloc(&p, c, 1, 3, RM_CLASS_CHANNEL_GROUP, NULL, 0), RM_OK);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_CTX_BUFFER_SIZE, &size, sizeof size), RM_OK);
        ASSERT_INT(size.bytes, sim.cards[0].used);
        ASSERT_INT(usage(&p, c, 1007).exclusive, 0);
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static void takes_what_is_asked_about_time(void) {
        RmTimeslice slice = {.usec = 1};
        RmGroupSchedule schedule = {.enable = 1};
        RmPreempt preempt = {.manual_timeout = 1, .timeout_usec = 1000001};
        RmPreemptionMode mode = {.flags = 1, .channel = 3, .compute = 2};
        RmDisableChannels list = {.disable = 1, .n = 1, .channels = {3}};
        _cleanup_buf_ Buf text = BUF_NULL;
        Program p;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        c = program_start(&p, 0);
        ASSERT_INT(program_alloc(&p, c, 1, 3, RM_CLASS_CHANNEL_GROUP, NULL, 0), RM_OK);
        ASSERT_INT(program_control(&p, c, 3, RM_CTRL_GET_TIMESLICE, &slice, sizeof slice), RM_OK);
        ASSERT_INT(slice.usec, 1024);
        slice.usec = 2048;
        ASSERT_INT(program_control(&p, c, 3, RM_CTRL_SET_TIMESLICE, &slice, sizeof slice), RM_OK);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_SET_TIMESLICE, &slice, sizeof slice),
                   RM_ERR_NOT_SUPPORTED);
        ASSERT_INT(program_control(&p, c, 3, RM_CTRL_PREEMPT, &preempt, sizeof preempt),
                   RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(program_control(&p, c, 3, RM_CTRL_GROUP_SCHEDULE, &schedule, sizeof schedule), RM_OK);
        preempt.timeout_usec--;
        ASSERT_INT(program_control(&p, c, 3, RM_CTRL_PREEMPT, &preempt, sizeof preempt), RM_OK);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_PREEMPTION_MODE, &mode, sizeof mode), RM_OK);
        mode.channel = 2;
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_PREEMPTION_MODE, &mode, sizeof mode),
                   RM_ERR_INVALID_CHANNEL);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_DISABLE_CHANNELS, &list, sizeof list),
                   RM_ERR_INVALID_CHANNEL);
        list.clients[0] = c;
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_DISABLE_CHANNELS, &list, sizeof list), RM_OK);
        list.event = 1;
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_DISABLE_CHANNELS, &list, sizeof list),
                   RM_ERR_INSUFFICIENT_PERMISSIONS);
        sim_status_write(&sim, &text);
        ASSERT_CONTAINS(text.data, "{\"handle\":3,\"class\":41068,\"timesliceUs\":2048,\"computeMode\":2,"
                                   "\"preempts\":1,\"scheduled\":true,\"disabled\":true}");
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static uint32_t control(Program *p, RmControl k) {
        ASSERT_OK(program_call(p, RM_ESC_CONTROL, &k, sizeof k));
        return k.status;
}

static void unknown_controls(void) {
        RmNameString name = {0};
        RmFbInfoV2 info = {.n = 1};
        Program p, q;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 0);
        q = program_open(&sim, 8, 0);
        c = program_start(&p, 0);
        ASSERT_INT(control(&p, (RmControl){.client = 5, .object = 2, .cmd = 0}),
                   RM_OK); /* the empty command */
        ASSERT_INT(control(&p, (RmControl){.client = 5, .object = 2, .cmd = RM_CTRL_FB_INFO}),
                   RM_ERR_INVALID_CLIENT);
        ASSERT_INT(control(&p, (RmControl){.client = c, .object = 2, .cmd = RM_CTRL_FB_INFO_V2}),
                   RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(control(&p, (RmControl){.client = c, .object = 2, .cmd = 0x20809999}),
                   RM_ERR_NOT_SUPPORTED);
        ASSERT_INT(control(&p, (RmControl){.client = c,
                                           .object = 2,
                                           .cmd = RM_CTRL_NAME_STRING,
                                           .params = MEMORY_END,
                                           .params_size = sizeof name}),
                   RM_ERR_INVALID_ADDRESS);
        ASSERT_INT(control(&p, (RmControl){.client = c,
                                           .object = 2,
                                           .cmd = RM_CTRL_NAME_STRING,
                                           .params = MEMORY_READ_ONLY,
                                           .params_size = sizeof name}),
                   RM_ERR_INVALID_ADDRESS);
        ASSERT_INT(program_control(&p, c, 2, RM_CTRL_FB_INFO_V2, &info, sizeof info - 8),
                   RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(program_control(&p, c, 99, RM_CTRL_NAME_STRING, &name, sizeof name),
                   RM_ERR_OBJECT_NOT_FOUND);
        ASSERT_INT(program_control(&p, c, 1, RM_CTRL_NAME_STRING, &name, sizeof name), RM_ERR_NOT_SUPPORTED);
        ASSERT_INT(program_control(&q, c, 2, RM_CTRL_NAME_STRING, &name, sizeof name), RM_ERR_INVALID_CLIENT);
        sim_file_close(p.ctl);
        sim_file_close(q.ctl);
        sim_done(&sim);
}

static void status_shows_all(void) {
        _cleanup_buf_ Buf text = BUF_NULL;
        Program p;
        uint32_t c;

        machine_init(&sim);
        p = program_open(&sim, 7, 1000);
        c = program_start(&p, 1);
        ASSERT_INT(program_memory(&p, c, 3, 2 * MIB), RM_OK);
        sim_status_write(&sim, &text);
        ASSERT_OK(buf_result(&text));
        ASSERT_CONTAINS(text.data, "\"used\":2097152");
        ASSERT_CONTAINS(text.data, "\"pid\":7,\"uid\":1000,\"objects\":4,\"cards\":[{\"index\":1,\"memory\":"
                                   "2097152,\"groups\":0}],\"schedules\":[]");
        sim_file_close(p.ctl);
        sim_done(&sim);
}

int main(void) {
        return TEST_MAIN(TEST(lists_cards), TEST(returns_names), TEST(returns_memory),
                         TEST(lists_processes_with_their_memory), TEST(returns_the_size_of_a_group),
                         TEST(takes_what_is_asked_about_time), TEST(unknown_controls),
                         TEST(status_shows_all));
}
