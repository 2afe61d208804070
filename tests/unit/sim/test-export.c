/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/export.h"
#include "program.h"

/* Exports and imports of objects. Descriptors 4 and 5 of every program are two files that the test
 * opened: an export lives as long as its file, even if its exporter ends. */

static Sim sim;
static SimFile *files[MEMORY_FILES];

static void start(void) {
        machine_init(&sim);
        for (size_t i = 0; i < MEMORY_FILES; i++)
                files[i] = machine_open(&sim);
}

static Program open_program(uint32_t pid) {
        Program p = program_open(&sim, pid, pid); /* different users: an import does not check the user */

        for (size_t i = 0; i < MEMORY_FILES; i++)
                p.memory.files[i] = files[i];
        return p;
}

static void end(void) {
        ASSERT_INT(sim.n_objects, 0);
        ASSERT_INT(sim.n_files, 0);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_done(&sim);
}

static uint32_t export_(Program *p, uint32_t c, uint32_t object, int fd) {
        RmExport e = {.type = RM_EXPORT_TYPE_RM, .device = 1, .parent = 1, .object = object, .fd = fd};

        return program_control(p, c, c, RM_CTRL_EXPORT_TO_FD, &e, sizeof e);
}

static uint32_t import_(Program *p, uint32_t c, uint32_t wanted, int fd, uint32_t *ret) {
        RmImport i = {.fd = fd, .type = RM_EXPORT_TYPE_RM, .device = 1, .parent = 1, .object = wanted};
        uint32_t status = program_control(p, c, c, RM_CTRL_IMPORT_FROM_FD, &i, sizeof i);

        *ret = i.object;
        return status;
}

static void outlives_its_exporter(void) {
        Program a, b;
        uint32_t c, d, object;

        start();
        a = open_program(7);
        b = open_program(8);
        c = program_start(&a, 0);
        d = program_start(&b, 0);
        ASSERT_INT(program_memory(&a, c, 10, MIB), RM_OK);
        ASSERT_INT(export_(&a, c, 10, 4), RM_OK);
        ASSERT_INT(program_free(&a, c, 10), RM_OK);
        ASSERT_INT(sim.cards[0].used, MIB);
        sim_file_close(a.ctl);
        ASSERT_INT(sim.cards[0].used, MIB);
        ASSERT_INT(import_(&b, d, 0, 4, &object), RM_OK);
        ASSERT_TRUE(object != 0);
        ASSERT_INT(import_(&b, d, 10, 4, &object), RM_OK);
        ASSERT_INT(object, 10);
        ASSERT_INT(sim.cards[0].used, MIB);
        sim_file_close(files[0]);
        ASSERT_INT(sim.cards[0].used, MIB); /* b has it */
        sim_file_close(b.ctl);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_file_close(files[1]);
        end();
}

static void refuses_like_the_driver(void) {
        RmExport flagged = {.type = RM_EXPORT_TYPE_RM, .object = 10, .fd = 4, .flags = RM_EXPORT_FLAG_EMPTY};
        RmExportInfo info = {.fd = 4};
        uint32_t c, object;
        Program a;

        start();
        a = open_program(7);
        c = program_start(&a, 1);
        ASSERT_INT(program_memory(&a, c, 10, MIB), RM_OK);
        ASSERT_INT(export_(&a, c, 11, 4), RM_ERR_OBJECT_NOT_FOUND);
        ASSERT_INT(export_(&a, c, 1, 4), RM_ERR_INVALID_ARGUMENT); /* a device is not duplicated */
        ASSERT_INT(export_(&a, c, 10, -1), RM_ERR_INVALID_PARAMETER);
        ASSERT_INT(export_(&a, c, 10, 77), RM_ERR_INVALID_PARAMETER);
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_EXPORT_TO_FD, &flagged, sizeof flagged),
                   RM_ERR_INVALID_PARAMETER);
        flagged.flags = 0;
        flagged.device = 10;
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_EXPORT_TO_FD, &flagged, sizeof flagged),
                   RM_ERR_INVALID_PARAMETER);
        ASSERT_INT(program_control(&a, c, 2, RM_CTRL_EXPORT_TO_FD, &flagged, sizeof flagged),
                   RM_ERR_NOT_SUPPORTED);
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_EXPORT_TO_FD, &flagged, sizeof flagged - 4),
                   RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(import_(&a, c, 0, 4, &object), RM_ERR_INVALID_PARAMETER); /* the index is empty */
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_EXPORT_INFO, &info, sizeof info),
                   RM_ERR_INVALID_PARAMETER);
        ASSERT_TRUE(!sim.exporter);
        ASSERT_INT(export_(&a, c, 10, 4), RM_OK);
        ASSERT_INT(export_(&a, c, 10, 4), RM_ERR_STATE_IN_USE);
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_EXPORT_INFO, &info, sizeof info), RM_OK);
        ASSERT_INT(info.device, 1);
        ASSERT_INT(info.max_objects, 1);
        ASSERT_INT(sim.cards[1].used, MIB);
        sim_file_close(files[0]);
        sim_file_close(files[1]);
        ASSERT_TRUE(!sim.exporter);
        sim_file_close(a.ctl);
        end();
}

static uint32_t export_many(Program *p, uint32_t c, uint16_t index, const uint32_t *objects, uint16_t n) {
        RmExportMany m = {.fd = 5, .device = 1, .max = 4, .metadata = "key", .n = n, .index = index};

        for (size_t i = 0; i < n && i < RM_EXPORTS_MAX; i++)
                m.objects[i] = objects[i];
        return program_control(p, c, c, RM_CTRL_EXPORT_MANY, &m, sizeof m);
}

static void exports_and_imports_many(void) {
        RmImportMany m = {.fd = 5, .parent = 1, .objects = {30, 31, 32, 33}, .n = 4};
        RmExportInfo info = {.fd = 5};
        RmExportEmpty empty = {.device = 1, .max = 3, .fd = 4};
        uint32_t c;
        Program a;

        start();
        a = open_program(7);
        c = program_start(&a, 0);
        ASSERT_INT(program_memory(&a, c, 10, MIB), RM_OK);
        ASSERT_INT(program_memory(&a, c, 11, 2 * MIB), RM_OK);
        ASSERT_INT(export_many(&a, c, 3, (uint32_t[]){10, 11}, 2), RM_ERR_OUT_OF_RANGE);
        ASSERT_TRUE(!files[1]->exports.handles); /* the server owns one export */
        ASSERT_INT(export_many(&a, c, 0, (uint32_t[]){10, 77}, 2), RM_ERR_OBJECT_NOT_FOUND);
        ASSERT_TRUE(!sim.exporter);
        ASSERT_INT(export_many(&a, c, 0, (uint32_t[]){10, 0, 11}, 3), RM_OK);
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_EXPORT_INFO, &info, sizeof info), RM_OK);
        ASSERT_INT(info.max_objects, 4);
        ASSERT_TEXT((char *) info.metadata, "key");
        ASSERT_INT(program_free(&a, c, 10), RM_OK);
        ASSERT_INT(program_free(&a, c, 11), RM_OK);
        ASSERT_INT(sim.cards[0].used, 3 * MIB);
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_IMPORT_MANY, &m, sizeof m), RM_OK);
        ASSERT_INT(m.types[0], RM_IMPORT_VIDMEM);
        ASSERT_INT(m.types[1], RM_IMPORT_NONE);
        ASSERT_INT(m.types[2], RM_IMPORT_VIDMEM);
        ASSERT_INT(m.types[3], RM_IMPORT_NONE);
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_IMPORT_MANY, &m, sizeof m),
                   RM_ERR_INSERT_DUPLICATE_NAME);
        m.n = 5;
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_IMPORT_MANY, &m, sizeof m), RM_ERR_OUT_OF_RANGE);
        m.n = RM_IMPORTS_MAX + 1;
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_IMPORT_MANY, &m, sizeof m), RM_ERR_INVALID_PARAMETER);
        ASSERT_INT(program_free(&a, c, 30), RM_OK);
        ASSERT_INT(sim.cards[0].used, 3 * MIB);
        ASSERT_INT(export_many(&a, c, 0, (uint32_t[]){0}, 1), RM_OK); /* the index is empty again */
        ASSERT_INT(sim.cards[0].used, 2 * MIB);
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_EXPORT_EMPTY, &empty, sizeof empty), RM_OK);
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_EXPORT_EMPTY, &empty, sizeof empty),
                   RM_ERR_STATE_IN_USE);
        empty.max = 0;
        ASSERT_INT(program_control(&a, c, c, RM_CTRL_EXPORT_EMPTY, &empty, sizeof empty),
                   RM_ERR_INVALID_PARAMETER);
        sim_file_close(files[1]);
        ASSERT_INT(sim.cards[0].used, 2 * MIB); /* the imported objects */
        sim_file_close(a.ctl);
        sim_file_close(files[0]);
        end();
}

static void tells_the_descriptor(void) {
        RmExport e = {.fd = 5};
        RmControl k = {.cmd = RM_CTRL_EXPORT_TO_FD, .params = NESTED_AT, .params_size = sizeof e};
        RmXfer x = {.cmd = RM_ESC_CONTROL, .size = sizeof k, .ptr = PARAMS_AT};
        uint32_t request = RM_IOCTL(RM_ESC_CONTROL, sizeof k);
        Program p;

        start();
        p = open_program(7);
        memcpy(program_bytes(&p, NESTED_AT), &e, sizeof e);
        memcpy(program_bytes(&p, PARAMS_AT), &k, sizeof k);
        memcpy(program_bytes(&p, PARAMS_AT + 512), &x, sizeof x);
        ASSERT_INT(sim_call_descriptor(&p.memory.caller, request, PARAMS_AT), 5);
        ASSERT_INT(
                sim_call_descriptor(&p.memory.caller, RM_IOCTL(RM_ESC_XFER_CMD, sizeof x), PARAMS_AT + 512),
                5);
        ASSERT_INT(sim_call_descriptor(&p.memory.caller, RM_IOCTL(RM_ESC_FREE, 16), PARAMS_AT), -1);
        ASSERT_INT(sim_call_descriptor(&p.memory.caller, request, 0), -1);
        k.params = 0;
        memcpy(program_bytes(&p, PARAMS_AT), &k, sizeof k);
        ASSERT_INT(sim_call_descriptor(&p.memory.caller, request, PARAMS_AT), -1);
        sim_file_close(p.ctl);
        sim_file_close(files[0]);
        sim_file_close(files[1]);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(outlives_its_exporter), TEST(refuses_like_the_driver),
                         TEST(exports_and_imports_many), TEST(tells_the_descriptor));
}
