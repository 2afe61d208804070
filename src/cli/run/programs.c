/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/programs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/simulator.h"
#include "cli/run/gate_probe.h"

#define FOLDER       "/tmp/aliquot-sim-"
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* Puts `directory` first in a path variable. otherwise: the paths to search after it when the
 * variable is not set; NULL: none. */
static int prepend_path(const char *variable, const char *directory, const char *otherwise) {
        const char *old = getenv(variable) ? getenv(variable) : otherwise;
        _cleanup_free_ char *text = NULL;

        if (asprintf(&text, "%s%s%s", directory, old && old[0] ? ":" : "", old ? old : "") < 0)
                return -1;
        return setenv(variable, text, 1);
}

/* Joins or starts a simulator. Each one has a node name of its own. Two of one name would have the
 * same UUIDs, and the slice directory would mistake the cards of one for those of the other. */
static int start(const char *cards, const Slicedir *slices, Programs *p, Fault *fault) {
        char name[32];
        int r;

        if (joined_simulator_find(&p->joined, slices, cards, p->devices) > 0)
                return 0;
        r = simulator_enter(fault);
        if (r < 0)
                return r;
        (void) snprintf(p->devices, sizeof p->devices, FOLDER "XXXXXX"); /* it fits */
        if (!mkdtemp(p->devices)) {
                p->devices[0] = '\0';
                return fault_set(fault, -errno, "no directory for the simulated driver: %s", strerror(errno));
        }
        p->own_devices = true;
        r = reaper_start(p->devices, &p->reaper, fault);
        if (r < 0)
                return r;
        (void) snprintf(name, sizeof name, "run-%s", p->devices + strlen(FOLDER));
        r = simulator_start(&(SimulatorSpec){.cards = cards, .name = name, .devices = p->devices},
                            &p->simulator, fault);
        if (r == 0)
                joined_simulator_publish(&p->joined, cards, p->devices);
        return r;
}

/* Prepares simulated cards. cards NULL: those of ALIQUOT_SIM_DIR; the command finds their
 * libraries anyway. */
static int simulate(const char *cards, const Slicedir *slices, Programs *p, Fault *fault) {
        char folder[LOCATE_PATH];
        int r;

        r = locate_file(SIMULATOR_NVML, p->simulated, sizeof p->simulated, fault);
        if (r == 0 && cards)
                r = start(cards, slices, p, fault);
        if (r < 0)
                return r;
        p->nvml = p->simulated;
        (void) snprintf(folder, sizeof folder, "%.*s", (int) (strrchr(p->simulated, '/') - p->simulated),
                        p->simulated); /* the program's path is shorter */
        if (prepend_path("LD_LIBRARY_PATH", folder, NULL) < 0 ||
            prepend_path("PATH", folder, DEFAULT_PATH) < 0 || setenv("ALIQUOT_SIM_DIR", p->devices, 1) < 0)
                return fault_set(fault, -ENOMEM, "out of memory");
        return 0;
}

const char *programs_find_simulated(const char *dir, char ret[LOCATE_PATH]) {
        return dir && dir[0] && locate_file(SIMULATOR_NVML, ret, LOCATE_PATH, NULL) == 0 ? ret : NULL;
}

int programs_find(const char *cards, const Slicedir *slices, Programs *ret, Fault *fault) {
        /* the simulator's libraries use the same variable */
        const char *dir = secure_getenv("ALIQUOT_SIM_DIR");
        int r;

        *ret = PROGRAMS_NULL;
        if ((size_t) snprintf(ret->devices, sizeof ret->devices, "%s",
                              dir && dir[0] != '\0' ? dir : "/dev") >= sizeof ret->devices)
                return fault_set(fault, -ENAMETOOLONG, "ALIQUOT_SIM_DIR is too long");
        r = locate_file("libaliquot.so", ret->gate, sizeof ret->gate, fault);
        if (r == 0)
                r = gate_probe_check_path(ret->gate, fault);
        if (r < 0 || cards)
                return r < 0 ? r : simulate(cards, slices, ret, fault);
        return programs_find_simulated(dir, ret->simulated) ? simulate(NULL, slices, ret, fault) : 0;
}

void programs_done(Programs *p) {
        joined_simulator_leave(&p->joined);
        reaper_end(&p->reaper);
        simulator_stop(&p->simulator);
        if (p->own_devices) {
                /* does nothing where the reaper has done it */
                (void) umount2(p->devices, MNT_DETACH);
                (void) rmdir(p->devices);
        }
        *p = PROGRAMS_NULL;
}
