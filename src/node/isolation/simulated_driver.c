/* SPDX-License-Identifier: Apache-2.0 */
#include "node/isolation/simulated_driver.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/isolation/install.h"

#if defined __aarch64__
#define DEBIAN_FOLDER "/usr/lib/aarch64-linux-gnu"
#else
#define DEBIAN_FOLDER "/usr/lib/x86_64-linux-gnu"
#endif

/* Mounted where the loaders of Debian's and Red Hat's families look without a cache, as
 * gpu/cards/cdi.c mounts the real ones. */
static const struct {
        const char *name;
        const char *inside[2];
} files[SIMULATED_DRIVER_FILES] = {
        {"libcuda.so.1", {DEBIAN_FOLDER, "/usr/lib64"}},
        {"libnvidia-ml.so.1", {DEBIAN_FOLDER, "/usr/lib64"}},
        {"nvidia-smi", {"/usr/bin", NULL}},
};

static const char *const devices[] = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"};

static int install(SimulatedDriver *s, Fault *fault) {
        int r = install_folder(s->libraries, fault);

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(files); i++) {
                _cleanup_buf_ Buf text = BUF_NULL, path = BUF_NULL;
                char name[64];

                (void) snprintf(name, sizeof name, "sim/%s", files[i].name);
                r = install_read(NULL, name, "the simulated driver", &text, fault);
                buf_appendf(&path, "%s/%s", s->libraries, files[i].name);
                if (r == 0)
                        r = buf_result(&path);
                if (r == 0)
                        r = install_write(path.data, &text, &s->held[i], fault);
        }
        return r;
}

int simulated_driver_init(SimulatedDriver *s, const char *dir, const char *state_dir, Fault *fault) {
        Buf libraries = BUF_NULL;
        Str path = str_from(dir);

        *s = SIMULATED_DRIVER_NULL;
        if (!dir)
                return 0;
        while (path.len > 1 && path.data[path.len - 1] == '/')
                path.len--;
        s->dir = str_dup(path);
        buf_appendf(&libraries, "%s/sim", state_dir);
        s->libraries = buf_take(&libraries);
        if (!s->dir || !s->libraries)
                return fault_set(fault, -ENOMEM, "out of memory");
        return install(s, fault);
}

void simulated_driver_done(SimulatedDriver *s) {
        for (size_t i = 0; i < ELEMENTSOF(s->held); i++)
                if (s->held[i] >= 0)
                        (void) close(s->held[i]);
        free(s->dir);
        free(s->libraries);
        *s = SIMULATED_DRIVER_NULL;
}

int simulated_driver_nvml(const SimulatedDriver *s, Buf *out) {
        if (s->libraries)
                buf_appendf(out, "%s/libnvidia-ml.so.1", s->libraries);
        return buf_result(out);
}

/* ---- mounts ---- */

typedef struct Mounts {
        PluginMount *mounts;
        int n;
        Arena *arena;
        bool broken;
} Mounts;

static const char *keep(Mounts *m, const char *folder, const char *name) {
        char text[4400];
        Str kept;

        (void) snprintf(text, sizeof text, "%s/%s", folder, name);
        kept = arena_str(m->arena, str_from(text));
        m->broken |= !kept.data;
        return kept.data;
}

static void add(Mounts *m, const char *from, const char *to, const char *name, bool read_only) {
        const char *host = keep(m, from, name), *inside = keep(m, to, name);

        if (!m->broken)
                m->mounts[m->n++] =
                        (PluginMount){.container_path = inside, .host_path = host, .read_only = read_only};
}

static void add_card(Mounts *m, const SimulatedDriver *s, const Inventory *v, uint32_t index) {
        char name[32];

        for (size_t i = 0; i < v->cards.n; i++) {
                if (v->cards.cards[i].index != index)
                        continue;
                (void) snprintf(name, sizeof name, "nvidia%u", v->cards.cards[i].minor);
                add(m, s->dir, "/dev", name, false);
                return;
        }
}

int simulated_driver_mounts(const SimulatedDriver *s, const Inventory *v, const DeviceSet *mem, Arena *arena,
                            PluginMount ret[static SIMULATED_DRIVER_MOUNTS]) {
        Mounts m = {.mounts = ret, .arena = arena};
        uint32_t card, count, cards = 0;
        size_t at = 0;

        if (!s->dir)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(devices); i++)
                add(&m, s->dir, "/dev", devices[i], false);
        while (cards++ < SIMULATED_DRIVER_CARDS && device_set_next_card(mem, &at, &card, &count))
                add_card(&m, s, v, card);
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                for (size_t k = 0; k < ELEMENTSOF(files[i].inside) && files[i].inside[k]; k++)
                        add(&m, s->libraries, files[i].inside[k], files[i].name, true);
        return m.broken ? -ENOMEM : m.n;
}

/* ---- identification ---- */

int simulated_driver_file(const SimulatedDriver *s, const char *name, SliceFile *ret, Fault *fault) {
        char path[4400];
        struct stat st;

        (void) snprintf(path, sizeof path, "%s/%s", s->dir, name);
        if (stat(path, &st) < 0)
                return fault_set(fault, SIMULATED_DRIVER_E_MISSING,
                                 "the simulated driver's %s is not there: %s", path, strerror(errno));
        *ret = (SliceFile){.dev = st.st_dev, .ino = st.st_ino};
        return 0;
}
