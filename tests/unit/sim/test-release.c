/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "gpu/rm/export.h"
#include "gpu/rm/uvm_ioctl.h"
#include "program.h"

/* What differs between releases, by the numbers of their headers: see layouts.txt. */

enum { ROOT = 0, DEVICE = 1, SUBDEVICE = 2, MEMORY = 3 }; /* handles; ROOT: the client's own */

static const struct {
        const char *version;
        uint32_t fb_info_v2, regions, probed, name, memory;
        uint32_t index_max;
        uint32_t wrong_size;
} releases[] = {
        {"535.154.05", 436, 776, 256, 132, 120, 0x35, RM_ERR_INVALID_PARAM_STRUCT},
        {"535.161.07", 436, 776, 256, 132, 120, 0x35, RM_ERR_INVALID_ARGUMENT},
        {"535.288.01", 436, 776, 256, 132, 120, 0x35, RM_ERR_INVALID_ARGUMENT},
        {"545.29.06", 444, 776, 256, 132, 128, 0x36, RM_ERR_INVALID_PARAM_STRUCT},
        {"550.40.07", 444, 776, 256, 132, 128, 0x36, RM_ERR_INVALID_PARAM_STRUCT},
        {"550.163.01", 444, 776, 256, 132, 128, 0x36, RM_ERR_INVALID_ARGUMENT},
        {"555.58.02", 444, 776, 256, 132, 128, 0x36, RM_ERR_INVALID_ARGUMENT},
        {"560.35.03", 460, 776, 256, 132, 128, 0x38, RM_ERR_INVALID_ARGUMENT},
        {"565.77", 460, 776, 256, 132, 128, 0x38, RM_ERR_INVALID_ARGUMENT},
        {"570.211.01", 460, 776, 256, 132, 128, 0x38, RM_ERR_INVALID_ARGUMENT},
        {"575.64.05", 460, 776, 256, 132, 128, 0x38, RM_ERR_INVALID_ARGUMENT},
        {"580.142", 1028, 904, 384, 132, 128, 0x3B, RM_ERR_INVALID_ARGUMENT},
        {"590.48.01", 1028, 904, 384, 132, 128, 0x3B, RM_ERR_INVALID_ARGUMENT},
        {"595.45.04", 1028, 904, 384, 68, 128, 0x3B, RM_ERR_INVALID_ARGUMENT},
};

enum { RELEASES = sizeof releases / sizeof *releases };

static Sim sim;
static Program p;
static uint32_t client;

static void begin(const char *version, uint64_t reserved) {
        CardList cards = {0};

        ASSERT_OK(cards_simulate(STR("2xT:256MiB"), STR("n"), &cards, NULL));
        ASSERT_OK(sim_init(&sim, &cards, reserved));
        card_list_done(&cards);
        ASSERT_OK(sim_release_parse(version, &sim.release, NULL));
        p = program_open(&sim, 7, 0);
        client = program_start(&p, 0);
}

static void end(void) {
        sim_file_close(p.ctl);
        sim_done(&sim);
}

static uint32_t ask(uint32_t object, uint32_t cmd, void *params, uint32_t n) {
        return program_control(&p, client, object == ROOT ? client : object, cmd, params, n);
}

/* Each control with the size of the release, and with sizes that are off by one and by one word. */
static void takes_parameters_of_the_releases_size(void) {
        static const uint32_t off[] = {(uint32_t) -4, (uint32_t) -1, 1, 4};

        for (size_t i = 0; i < RELEASES; i++) {
                const struct {
                        uint32_t object, cmd, size;
                } cases[] = {{SUBDEVICE, RM_CTRL_FB_INFO_V2, releases[i].fb_info_v2},
                             {SUBDEVICE, RM_CTRL_FB_REGION_INFO, releases[i].regions},
                             {ROOT, RM_CTRL_PROBED_IDS, releases[i].probed},
                             {SUBDEVICE, RM_CTRL_NAME_STRING, releases[i].name},
                             {ROOT, RM_CTRL_ATTACHED_IDS, 128},
                             {SUBDEVICE, RM_CTRL_GID_INFO, 268}};

                begin(releases[i].version, 0);
                for (size_t j = 0; j < sizeof cases / sizeof *cases; j++) {
                        uint32_t params[1032 / 4] = {cases[j].cmd == RM_CTRL_FB_INFO_V2};

                        ASSERT_INT(ask(cases[j].object, cases[j].cmd, params, cases[j].size), RM_OK);
                        for (size_t k = 0; k < sizeof off / sizeof *off; k++)
                                ASSERT_INT(ask(cases[j].object, cases[j].cmd, params, cases[j].size + off[k]),
                                           releases[i].wrong_size);
                }
                end();
        }
}

/* An unknown object is found out before the size or after it. Parameters with a list at a pointer
 * are refused first in all releases, and FB_GET_INFO from 550 on is taken with any size. */
static void looks_at_the_size_in_the_releases_order(void) {
        RmFbInfo list = {.n = 1, .list = NESTED_AT + 4096};
        uint8_t params[1032] = {0};

        for (size_t i = 0; i < RELEASES; i++) {
                bool late = releases[i].wrong_size == RM_ERR_INVALID_PARAM_STRUCT;
                bool converts = strcmp(releases[i].version, "550") > 0;

                begin(releases[i].version, 0);
                ASSERT_INT(program_memory(&p, client, MEMORY, MIB), RM_OK);
                ASSERT_INT(ask(99, RM_CTRL_GID_INFO, params, 267),
                           late ? RM_ERR_OBJECT_NOT_FOUND : RM_ERR_INVALID_ARGUMENT);
                ASSERT_INT(ask(DEVICE, RM_CTRL_GID_INFO, params, 267),
                           late ? RM_ERR_NOT_SUPPORTED : RM_ERR_INVALID_ARGUMENT);
                ASSERT_INT(ask(MEMORY, RM_CTRL_SURFACE_INFO, params, 15), RM_ERR_INVALID_ARGUMENT);
                ASSERT_INT(ask(ROOT, RM_CTRL_EXPORT_TO_FD, params, 23), releases[i].wrong_size);
                *(RmFbEntry *) program_bytes(&p, list.list) = (RmFbEntry){RM_FB_RAM_SIZE, 0};
                ASSERT_INT(ask(SUBDEVICE, RM_CTRL_FB_INFO, &list, 15),
                           converts ? RM_OK : RM_ERR_INVALID_ARGUMENT);
                ASSERT_INT(((RmFbEntry *) program_bytes(&p, list.list))->data, converts ? 256 * KIB : 0);
                ASSERT_INT(ask(SUBDEVICE, RM_CTRL_FB_INFO, &list, 16), RM_OK);
                end();
        }
}

static void ends_a_list_at_an_unknown_index(void) {
        for (size_t i = 0; i < RELEASES; i++) {
                bool converts = strcmp(releases[i].version, "550") > 0;
                RmFbInfoV2 info = {.n = 3,
                                   .list = {{releases[i].index_max, 12345},
                                            {releases[i].index_max + 1, 12345},
                                            {RM_FB_RAM_SIZE, 12345}}};

                begin(releases[i].version, 0);
                ASSERT_INT(ask(SUBDEVICE, RM_CTRL_FB_INFO_V2, &info, releases[i].fb_info_v2),
                           converts ? RM_OK : RM_ERR_INVALID_ARGUMENT);
                ASSERT_INT(info.list[0].data, converts ? 0 : 12345); /* nothing is copied out */
                ASSERT_INT(info.list[1].data, 12345);
                ASSERT_INT(info.list[2].data, converts ? 256 * KIB : 12345);
                info.n = (releases[i].fb_info_v2 - 4) / 8 + 1;
                ASSERT_INT(ask(SUBDEVICE, RM_CTRL_FB_INFO_V2, &info, releases[i].fb_info_v2),
                           RM_ERR_INVALID_ARGUMENT);
                end();
        }
}

/* The list at a pointer is as long as the inline one, or before 550 as the memory for a copy. */
static void bounds_the_list_at_a_pointer(void) {
        for (size_t i = 0; i < RELEASES; i++) {
                bool converts = strcmp(releases[i].version, "550") > 0;
                RmFbInfo list = {.n = (releases[i].fb_info_v2 - 4) / 8 + 1, .list = NESTED_AT + 1024};

                begin(releases[i].version, 0);
                memset(program_bytes(&p, list.list), 0, list.n * 8);
                ASSERT_INT(ask(SUBDEVICE, RM_CTRL_FB_INFO, &list, sizeof list),
                           converts ? RM_ERR_OUT_OF_RANGE : RM_OK);
                list.n = (1 << 17) + 1;
                ASSERT_INT(ask(SUBDEVICE, RM_CTRL_FB_INFO, &list, sizeof list),
                           converts ? RM_ERR_OUT_OF_RANGE : RM_ERR_INVALID_ARGUMENT);
                end();
        }
}

/* With a reserved part the card has two regions. */
static void tells_regions_of_the_releases_length(void) {
        for (size_t i = 0; i < RELEASES; i++) {
                size_t stride = (releases[i].regions - 8) / 16;
                uint8_t regions[904];
                uint64_t limit;

                begin(releases[i].version, 16 * MIB);
                memset(regions, 0xAA, sizeof regions);
                ASSERT_INT(ask(SUBDEVICE, RM_CTRL_FB_REGION_INFO, regions, releases[i].regions), RM_OK);
                ASSERT_INT(regions[0], 2);
                memcpy(&limit, regions + 8 + 8, sizeof limit);
                ASSERT_INT(limit, 256 * MIB - 1);
                memcpy(&limit, regions + 8 + stride + 8, sizeof limit);
                ASSERT_INT(limit, 16 * MIB - 1);
                ASSERT_INT(regions[8 + 2 * stride], 0);
                end();
        }
}

/* Parameters at the very end of what can be read and written; their size is the class's, whatever
 * the caller says. */
static void takes_the_class_size_of_memory(void) {
        RmMemoryParams m = {.owner = 1, .size = MIB};

        for (size_t i = 0; i < RELEASES; i++) {
                static const uint32_t said[] = {0, 1, 128, UINT32_MAX};

                for (uint32_t j = 0; j < sizeof said / sizeof *said; j++) {
                        RmAlloc a = {.parent = DEVICE,
                                     .new = 10 + j,
                                     .class_ = RM_CLASS_MEMORY_LOCAL,
                                     .params = MEMORY_END - releases[i].memory,
                                     .params_size = said[j]};

                        begin(releases[i].version, 0);
                        a.root = client;
                        memcpy(program_bytes(&p, a.params), &m, releases[i].memory);
                        ASSERT_OK(program_call(&p, RM_ESC_ALLOC, &a, sizeof a));
                        ASSERT_INT(a.status, RM_OK);
                        ASSERT_INT(sim.cards[0].used, MIB);
                        a.new ++;
                        a.params += 8;
                        ASSERT_OK(program_call(&p, RM_ESC_ALLOC, &a, sizeof a));
                        ASSERT_INT(a.status, RM_ERR_INVALID_ADDRESS);
                        end();
                }
        }
}

static uint32_t surface(uint32_t index, uint32_t *ret) {
        RmSurfaceInfo info = {.n = 1, .list = NESTED_AT + 4096};
        RmFbEntry *entry = program_bytes(&p, info.list);
        uint32_t status;

        *entry = (RmFbEntry){.index = index, .data = 12345};
        status = ask(MEMORY, RM_CTRL_SURFACE_INFO, &info, sizeof info);
        *ret = entry->data;
        return status;
}

/* Indices of ctrl0041.h: 2 and 3 exist from 580 on, and 4 never did. */
static void tells_sizes_of_memory(void) {
        uint32_t data;

        for (size_t i = 0; i < RELEASES; i++) {
                bool bytes = strcmp(releases[i].version, "580") > 0;

                begin(releases[i].version, 0);
                ASSERT_INT(program_memory(&p, client, MEMORY, 6 * MIB), RM_OK);
                ASSERT_INT(surface(7, &data), RM_OK);
                ASSERT_INT(data, 6 * MIB / 4096);
                ASSERT_INT(surface(9, &data), RM_OK);
                ASSERT_INT(data, 2);
                ASSERT_INT(surface(2, &data), bytes ? RM_OK : RM_ERR_INVALID_ARGUMENT);
                ASSERT_INT(data, bytes ? 6 * MIB : 12345);
                ASSERT_INT(surface(3, &data), bytes ? RM_OK : RM_ERR_INVALID_ARGUMENT);
                ASSERT_INT(surface(4, &data), RM_ERR_INVALID_ARGUMENT);
                end();
        }
}

/* UVM_INIT_FLAGS_DISABLE_PAGEABLE_ACCESS, 4, is of 610 and later. */
static void takes_the_releases_flags_of_uvm(void) {
        static const struct {
                const char *version;
                uint64_t flags;
                uint32_t status;
        } cases[] = {{"535.288.01", 3, RM_OK},
                     {"535.288.01", 4, RM_ERR_INVALID_ARGUMENT},
                     {"595.45.04", 4, RM_ERR_INVALID_ARGUMENT},
                     {"610.57.04", 4, RM_OK},
                     {"610.57.04", 8, RM_ERR_INVALID_ARGUMENT},
                     {"615.71.09", 7, RM_OK}};

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                UvmInitialize params = {.flags = cases[i].flags, .status = 99};
                MemoryCaller m;
                SimFile *f;

                begin(cases[i].version, 0);
                memory_caller_init(&m, 7, 0);
                f = sim_file_open(&sim, SIM_FILE_UVM, 0);
                ASSERT_OK(m.caller.write(&m.caller, PARAMS_AT, &params, sizeof params));
                ASSERT_OK(sim_call(f, &m.caller, UVM_INITIALIZE_CMD, PARAMS_AT));
                ASSERT_OK(m.caller.read(&m.caller, PARAMS_AT, &params, sizeof params));
                ASSERT_INT(params.status, cases[i].status);
                sim_file_close(f);
                end();
        }
}

/* 595 does not drive a V100: the pair does not exist. */
static void has_a_version_that_drives_the_cards(void) {
        static const struct {
                const char *cards, *version;
        } cases[] = {{"1xTesla-V100-SXM2-16GB:256MiB", "535.161.07"},
                     {"1xH200:256MiB,1xTesla-P4:256MiB", "535.161.07"},
                     {"1xTesla-P100-PCIE-16GB:256MiB", "535.161.07"},
                     {"1xTesla K80:256MiB", "535.161.07"},
                     {"1xNVIDIA TITAN V:256MiB", "535.161.07"},
                     {"1xNVIDIA-TITAN-Xp:256MiB", "535.161.07"},
                     {"1xGeForce GTX TITAN X:256MiB", "535.161.07"},
                     {"1xNVIDIA-GeForce-GTX-1080-Ti:256MiB", "535.161.07"},
                     {"1xNVIDIA GeForce GTX 980:256MiB", "535.161.07"},
                     {"1xQuadro P6000:256MiB", "535.161.07"},
                     {"1xQuadro-GV100:256MiB", "535.161.07"},
                     {"1xNVIDIA TITAN RTX:256MiB", "595.45.04"},
                     {"1xNVIDIA GeForce GTX 1660:256MiB", "595.45.04"},
                     {"1xQuadro RTX 6000:256MiB", "595.45.04"},
                     {"1xNVIDIA A100-SXM4-40GB:256MiB", "595.45.04"},
                     {"1xTesla-T4:256MiB,1xA10:256MiB", "595.45.04"},
                     {"1xH200:256MiB", "595.45.04"}};

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                CardList cards = {0};

                ASSERT_OK(cards_simulate(str_from(cases[i].cards), STR("n"), &cards, NULL));
                ASSERT_OK(sim_init(&sim, &cards, 0));
                ASSERT_TEXT(sim.release.version, cases[i].version);
                sim_done(&sim);
                card_list_done(&cards);
        }
}

/* 580 is the last branch for V100 and older. */
static void tells_a_card_that_the_version_cannot_drive(void) {
        static const struct {
                const char *cards, *version, *model;
        } cases[] = {{"1xTesla-V100-SXM2-16GB:256MiB", "595.45.04", "Tesla-V100-SXM2-16GB"},
                     {"1xH200:256MiB,1xTesla-P4:256MiB", "615.71.09", "Tesla-P4"},
                     {"1xTesla-V100-SXM2-16GB:256MiB", "580.95.05", NULL},
                     {"1xH200:256MiB", "595.45.04", NULL}};

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                CardList cards = {0};
                SimRelease release;
                const char *model;

                ASSERT_OK(cards_simulate(str_from(cases[i].cards), STR("n"), &cards, NULL));
                ASSERT_OK(sim_release_parse(cases[i].version, &release, NULL));
                model = sim_release_cannot_drive(&release, &cards);
                ASSERT_TRUE(!model == !cases[i].model);
                if (model)
                        ASSERT_TEXT(model, cases[i].model);
                card_list_done(&cards);
        }
}

static void refuses_what_is_no_version(void) {
        static const char *const wrong[] = {"",          ".",          "x",        "550a",
                                            "550",       "550.90.07 ", "595..4",   "595.",
                                            ".595",      "595.4.",     "595.4..1", "99999999999.1",
                                            "1.2.3.4.5", "-595.1",     "595.+45",  "0x595.1"};
        Fault fault;

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                ASSERT_INT(sim_release_parse(wrong[i], &sim.release, &fault), SIM_RELEASE_E_WRONG);
                ASSERT_CONTAINS(fault.text, ", must be two to four numbers such as 550.163.01");
        }
        ASSERT_INT(sim_release_parse("470.1", &sim.release, &fault), SIM_RELEASE_E_WRONG);
        ASSERT_TEXT(fault.text, "the driver's version is \"470.1\", must be 535 or later: the calls of older "
                                "drivers are others");
        ASSERT_INT(sim_release_parse("530.41.03", &sim.release, NULL), SIM_RELEASE_E_WRONG);
        ASSERT_OK(sim_release_parse("565.77", &sim.release, NULL));
        ASSERT_OK(sim_release_parse("550.54.15.1", &sim.release, NULL));
}

int main(void) {
        return TEST_MAIN(TEST(takes_parameters_of_the_releases_size),
                         TEST(looks_at_the_size_in_the_releases_order), TEST(ends_a_list_at_an_unknown_index),
                         TEST(bounds_the_list_at_a_pointer), TEST(tells_regions_of_the_releases_length),
                         TEST(takes_the_class_size_of_memory), TEST(tells_sizes_of_memory),
                         TEST(takes_the_releases_flags_of_uvm), TEST(has_a_version_that_drives_the_cards),
                         TEST(tells_a_card_that_the_version_cannot_drive), TEST(refuses_what_is_no_version));
}
