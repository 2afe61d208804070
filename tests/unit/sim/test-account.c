/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/heap.h"
#include "program.h"

/* The account of memory by cgroup, called as a program's calls reach it. */

static Sim sim;
static bool ended;            /* the process that makes clients */
static uint64_t dmem[2][8];   /* what is told of each cgroup, and its limit, by the path's length */
static const char *gone = ""; /* the path of a removed cgroup */
static const char *here = "/pod/leaf";
static uint64_t here_id = 30;

static SimCgroup cgroup(const char *path, uint64_t leaf) {
        SimCgroup g = {.ids = {leaf, 20}, .n = strchr(path + 1, '/') ? 2 : 1};

        (void) snprintf(g.path, sizeof g.path, "%s", path);
        return g;
}

static uint64_t started(SimCaller *c) {
        return 1;
}

static bool own_cgroup(SimCaller *c, uint32_t pid, uint64_t when, SimCgroup *ret) {
        *ret = cgroup(here, here_id);
        return when == 1 && !(pid == 7 && ended);
}

/* Descriptor 5 is the pod's directory, 6 the leaf's, 8 the root's. */
static bool cgroup_at(SimCaller *c, int fd, SimCgroup *ret) {
        *ret = fd == 5 ? cgroup("/pod", 20) : cgroup(here, here_id);
        if (fd == 8)
                ret->n = 0;
        return fd == 5 || fd == 6 || fd == 8;
}

static uint64_t limit(void *data, uint32_t card, const char *path, size_t len) {
        return dmem[1][len];
}

static void tell(void *data, uint32_t card, const char *path, size_t len, uint64_t used) {
        dmem[0][len] = used;
}

static bool is_gone(void *data, const char *path, uint64_t id) {
        return strcmp(path, gone) == 0;
}

static Program begin(const char *driver, const SimAccountOptions *o) {
        Program p;

        machine_init(&sim);
        ASSERT_OK(sim_release_parse(driver, &sim.release, NULL));
        sim.account.o = *o;
        ended = false;
        gone = "";
        here = "/pod/leaf";
        here_id = 30;
        p = program_open(&sim, 7, 0);
        p.memory.caller.started = started;
        p.memory.caller.cgroup = own_cgroup;
        p.memory.caller.cgroup_at = cgroup_at;
        return p;
}

static void end(Program *p) {
        sim_file_close(p->ctl);
        sim_done(&sim);
}

static uint32_t set(Program *p, uint32_t c, int fd, uint64_t hard) {
        SimSetLimits s = {.cgroup = fd, .gpu = 0x100, .hard = hard};

        return program_control(p, c, c, SIM_CTRL_SET_LIMITS, &s, sizeof s);
}

static uint32_t get(Program *p, uint32_t c, int fd, SimLimit *ret) {
        SimGetLimits g = {.cgroup = fd};
        uint32_t status = program_control(p, c, c, SIM_CTRL_GET_LIMITS, &g, sizeof g);

        if (status == RM_OK) {
                ASSERT_INT(g.n, 1);
                ASSERT_INT(g.list[0].gpu, 0x100);
                *ret = g.list[0];
        }
        return status;
}

static const SimAccountOptions misc = {.kind = SIM_LIMITS_MISC};

static void charges_the_nearest_entry(void) {
        Program p = begin("615.71.09", &misc);
        uint32_t c = program_start(&p, 0);
        SimLimit l;

        ASSERT_INT(program_memory(&p, c, 10, MIB), RM_OK); /* before the first limit: never counted */
        ASSERT_INT(get(&p, c, 5, &l), RM_ERR_NOT_SUPPORTED);
        ASSERT_INT(set(&p, c, 5, 4 * MIB), RM_OK);
        ASSERT_INT(get(&p, c, SIM_LIMITS_CURRENT_PROCESS, &l), RM_OK);
        ASSERT_INT(l.hard, 4 * MIB);
        ASSERT_INT(l.used, 0);
        ASSERT_INT(program_memory(&p, c, 11, 4 * MIB - 1), RM_OK); /* the size asked for, not the pages */
        ASSERT_INT(program_memory(&p, c, 12, 2), RM_ERR_HARD_LIMIT_EXCEEDED);
        ASSERT_INT(program_memory(&p, c, 12, 1), RM_OK);
        ASSERT_INT(program_memory(&p, c, 13, 1), RM_ERR_HARD_LIMIT_EXCEEDED);
        ASSERT_INT(set(&p, c, 5, 4 * MIB - 1), RM_ERR_INVALID_LIMIT); /* less than is used */
        ASSERT_INT(set(&p, c, 6, UINT64_MAX), RM_OK);                 /* a leaf is not bound by its pod */
        ASSERT_INT(program_memory(&p, c, 13, 8 * MIB), RM_OK);
        ASSERT_INT(get(&p, c, 5, &l), RM_OK);
        ASSERT_INT(l.used, 4 * MIB);
        ASSERT_INT(program_free(&p, c, 11), RM_OK);
        ASSERT_INT(get(&p, c, 5, &l), RM_OK);
        ASSERT_INT(l.used, 1);
        ASSERT_INT(set(&p, c, 8, MIB), RM_ERR_NOT_SUPPORTED); /* the root */
        ASSERT_INT(set(&p, c, 9, MIB), RM_ERR_INVALID_ARGUMENT);
        end(&p);
}

static void shares_the_charge_of_a_duplicate(void) {
        Program p = begin("615.71.09", &misc);
        uint32_t c = program_start(&p, 0);
        SimClient *client = sim_client_find(&sim, c);
        SimObject *copy;
        SimLimit l;

        ASSERT_INT(set(&p, c, 5, 4 * MIB), RM_OK);
        ASSERT_INT(program_memory(&p, c, 10, 3 * MIB), RM_OK);
        ASSERT_INT(sim_object_dup(client, 1, 11, client, 10, &copy), RM_OK);
        ASSERT_INT(get(&p, c, 5, &l), RM_OK);
        ASSERT_INT(l.used, 3 * MIB);
        ASSERT_INT(program_free(&p, c, 10), RM_OK);
        ASSERT_INT(get(&p, c, 5, &l), RM_OK);
        ASSERT_INT(l.used, 3 * MIB);
        ASSERT_INT(program_free(&p, c, 11), RM_OK);
        ASSERT_INT(get(&p, c, 5, &l), RM_OK);
        ASSERT_INT(l.used, 0);
        end(&p);
}

/* memacctTryCharge() returns NV_OK where osClientGroupID() finds no cgroup. */
static void omits_clients_of_the_dead(void) {
        SimAccountOptions fixed = {.kind = SIM_LIMITS_MISC, .counts_orphans = true};
        Program p = begin("615.71.09", &misc);
        uint32_t c = program_start(&p, 0);
        SimLimit l;

        ASSERT_INT(set(&p, c, 5, MIB), RM_OK);
        ended = true;
        p.memory.process = 8; /* its child, which has the descriptor */
        ASSERT_INT(program_memory(&p, c, 10, 8 * MIB), RM_OK);
        ASSERT_INT(get(&p, c, 5, &l), RM_OK);
        ASSERT_INT(l.used, 0);
        end(&p);
        p = begin("615.71.09", &fixed);
        c = program_start(&p, 0);
        ASSERT_INT(set(&p, c, 5, MIB), RM_OK);
        ended = true;
        p.memory.process = 8;
        ASSERT_INT(program_memory(&p, c, 10, 8 * MIB), RM_ERR_HARD_LIMIT_EXCEEDED);
        end(&p);
}

static void counts_in_every_ancestor_with_dmem(void) {
        SimAccountOptions o = {.kind = SIM_LIMITS_DMEM, .limit = limit, .tell = tell};
        Program p = begin("615.71.09", &o);
        uint32_t c = program_start(&p, 0);
        SimLimit l;

        here = "/p/l";
        dmem[1][2] = 4 * MIB; /* /p */
        dmem[1][4] = UINT64_MAX;
        ASSERT_INT(program_memory(&p, c, 10, 3 * MIB), RM_OK);
        ASSERT_INT(dmem[0][2], 3 * MIB);
        ASSERT_INT(dmem[0][4], 3 * MIB);
        ASSERT_INT(program_memory(&p, c, 11, 2 * MIB), RM_ERR_HARD_LIMIT_EXCEEDED);
        dmem[1][4] = 3 * MIB;
        ASSERT_INT(program_memory(&p, c, 11, 1), RM_ERR_HARD_LIMIT_EXCEEDED);
        ASSERT_INT(program_free(&p, c, 10), RM_OK);
        ASSERT_INT(dmem[0][2], 0);
        ASSERT_INT(set(&p, c, 5, MIB), RM_ERR_NOT_SUPPORTED); /* libraries write the files */
        ASSERT_INT(get(&p, c, 5, &l), RM_ERR_NOT_SUPPORTED);
        end(&p);
}

static void inherits_by_address(void) {
        SimAccountOptions o = {.kind = SIM_LIMITS_MISC, .is_gone = is_gone};
        Program p = begin("615.71.09", &o);
        uint32_t c = program_start(&p, 0);
        SimLimit l;

        ASSERT_INT(set(&p, c, 6, 2 * MIB), RM_OK);
        ASSERT_INT(program_memory(&p, c, 10, MIB), RM_OK);
        gone = here;
        here = "/pod/next";
        here_id = 31;
        ASSERT_INT(get(&p, c, 6, &l), RM_OK);
        ASSERT_INT(l.hard, 2 * MIB);
        ASSERT_INT(l.used, MIB);
        end(&p);
}

static void forgets_at_the_last_close(void) {
        SimAccountOptions o = {.kind = SIM_LIMITS_MISC, .forgets = true};
        Program p = begin("615.71.09", &o);
        uint32_t c = program_start(&p, 0);
        SimFile *card;
        SimLimit l;

        ASSERT_INT(set(&p, c, 5, MIB), RM_ERR_OBJECT_NOT_FOUND); /* the card is not initialised */
        card = sim_file_open(&sim, SIM_FILE_CARD, 0);
        ASSERT_INT(set(&p, c, 5, MIB), RM_OK);
        ASSERT_INT(program_memory(&p, c, 10, MIB), RM_OK);
        sim_file_close(card);
        card = sim_file_open(&sim, SIM_FILE_CARD, 0);
        ASSERT_INT(get(&p, c, 5, &l), RM_ERR_NOT_SUPPORTED);
        ASSERT_INT(set(&p, c, 5, MIB), RM_OK);
        ASSERT_INT(program_free(&p, c, 10), RM_OK); /* its charge went with the card's account */
        ASSERT_INT(get(&p, c, 5, &l), RM_OK);
        ASSERT_INT(l.used, 0);
        sim_file_close(card);
        end(&p);
}

static void has_the_controls_from_615_on(void) {
        SimLimitsImpl impl = {.kind = 9};
        Program p = begin("610.57.04", &misc);
        uint32_t c = program_start(&p, 0);

        ASSERT_INT(set(&p, c, 5, MIB), RM_ERR_NOT_SUPPORTED);
        ASSERT_INT(program_control(&p, c, c, SIM_CTRL_LIMITS_IMPL, &impl, sizeof impl), RM_ERR_NOT_SUPPORTED);
        end(&p);
        p = begin("615.71.09", &misc);
        c = program_start(&p, 0);
        ASSERT_INT(program_control(&p, c, c, SIM_CTRL_LIMITS_IMPL, &impl, sizeof impl), RM_OK);
        ASSERT_INT(impl.kind, SIM_LIMITS_MISC);
        p.memory.caller.uid = 1000;
        ASSERT_INT(set(&p, c, 5, MIB), RM_ERR_INSUFFICIENT_PERMISSIONS);
        end(&p);
}

int main(void) {
        charges_the_nearest_entry();
        shares_the_charge_of_a_duplicate();
        omits_clients_of_the_dead();
        counts_in_every_ancestor_with_dmem();
        inherits_by_address();
        forgets_at_the_last_close();
        has_the_controls_from_615_on();
        return 0;
}
