/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/memory_limits.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "sim/call.h"
#include "sim/process.h"
#include "sim/user/dmem.h"

enum { FILE_PATH = 4096, OPEN_FILES = 16 };

static bool is_gone(void *data, const char *path, uint64_t id) {
        const SimMemoryLimits *l = data;

        return sim_cgroup_is_gone(l->cgroups, path, id);
}

static void name_file(const SimMemoryLimits *l, const char *path, size_t len, const char *name,
                      char ret[static FILE_PATH]) {
        (void) snprintf(ret, FILE_PATH, "%s%.*s/%s", l->dmem, (int) len, path, name); /* it fits */
}

/* A cgroup without the files has no limit: its parent's subtree_control does not name dmem. */
static uint64_t limit(void *data, uint32_t card, const char *path, size_t len) {
        char file[FILE_PATH], region[DMEM_REGION];
        uint64_t value;

        name_file(data, path, len, "dmem.max", file);
        dmem_region(sim_gpu_id(card), region);
        return dmem_read(file, region, &value) ? value : UINT64_MAX;
}

static void tell(void *data, uint32_t card, const char *path, size_t len, uint64_t used) {
        char file[FILE_PATH], region[DMEM_REGION];

        name_file(data, path, len, "dmem.current", file);
        dmem_region(sim_gpu_id(card), region);
        (void) dmem_write(file, region, used); /* false: the cgroup has no such file, or is gone */
}

static char forgotten[DMEM_REGION]; /* nftw() passes nothing to its function */

static int forget_in(const char *path, const struct stat *st, int type, struct FTW *at) {
        if (type == FTW_F && strcmp(path + at->base, "dmem.max") == 0)
                (void) dmem_write(path, forgotten, UINT64_MAX); /* false: the cgroup is gone */
        return 0;
}

static void forget(void *data, uint32_t card) {
        const SimMemoryLimits *l = data;

        dmem_region(sim_gpu_id(card), forgotten);
        (void) nftw(l->dmem, forget_in, OPEN_FILES, FTW_PHYS); /* an error leaves limits */
}

static bool take_kind(Str word, SimLimitsKind *ret) {
        static const char *const kinds[] = {
                [SIM_LIMITS_NONE] = "none", [SIM_LIMITS_MISC] = "misc", [SIM_LIMITS_DMEM] = "dmem"};

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (str_eq(word, str_from(kinds[i]))) {
                        *ret = (SimLimitsKind) i;
                        return true;
                }
        return false;
}

int sim_memory_limits_parse(const char *text, const char *cgroups, const char *dmem, SimMemoryLimits *ret) {
        SimAccountOptions *o = &ret->account;
        Str rest = str_from(text ? text : "none");

        *ret = (SimMemoryLimits){.cgroups = cgroups ? cgroups : "/sys/fs/cgroup",
                                 .dmem = dmem ? dmem : "/sys/fs/cgroup"};
        if (!take_kind(str_split(&rest, ','), &o->kind))
                return -EINVAL;
        while (rest.len > 0) {
                Str word = str_split(&rest, ',');

                if (str_eq(word, STR("orphans")))
                        o->counts_orphans = true;
                else if (str_eq(word, STR("forget")))
                        o->forgets = true;
                else if (str_eq(word, STR("reuse")))
                        o->is_gone = is_gone;
                else
                        return -EINVAL;
        }
        o->data = ret;
        if (o->kind == SIM_LIMITS_DMEM) {
                o->limit = limit;
                o->tell = tell;
                o->forget = forget;
        }
        return 0;
}
