/* SPDX-License-Identifier: Apache-2.0 */
#include "run/programs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "beside/simulator.h"

static int put_first(const char *variable, const char *directory) {
        const char *old = getenv(variable);
        _cleanup_free_ char *text = NULL;

        if (asprintf(&text, "%s%s%s", directory, old && old[0] ? ":" : "", old ? old : "") < 0)
                return -1;
        return setenv(variable, text, 1);
}

static int start(const char *cards, Programs *p, Fault *fault) {
        int r;

        r = simulator_enter(fault);
        if (r < 0)
                return r;
        (void) snprintf(p->devices, sizeof p->devices, "/tmp/aliquot-sim-XXXXXX"); /* it fits */
        if (!mkdtemp(p->devices)) {
                p->devices[0] = '\0';
                return fault_set(fault, -errno, "no directory for the simulated driver: %s", strerror(errno));
        }
        p->nvml = p->simulated;
        return simulator_start(&(SimulatorSpec){.cards = cards, .devices = p->devices}, &p->simulator, fault);
}

static int simulate(const char *cards, Programs *p, Fault *fault) {
        char folder[BESIDE_PATH];
        int r;

        r = beside_find(SIMULATOR_NVML, p->simulated, sizeof p->simulated, fault);
        if (r == 0)
                r = start(cards, p, fault);
        if (r < 0)
                return r;
        (void) snprintf(folder, sizeof folder, "%.*s", (int) (strrchr(p->simulated, '/') - p->simulated),
                        p->simulated); /* it is shorter */
        if (put_first("LD_LIBRARY_PATH", folder) < 0 || put_first("PATH", folder) < 0 ||
            setenv("ALIQUOT_SIM_DIR", p->devices, 1) < 0)
                return fault_set(fault, -ENOMEM, "out of memory");
        return 0;
}

int programs_find(const char *cards, Programs *ret, Fault *fault) {
        const char *dir = secure_getenv("ALIQUOT_SIM_DIR"); /* as the simulator's libraries have it */
        int r;

        *ret = PROGRAMS_NULL;
        (void) snprintf(ret->devices, sizeof ret->devices, "%s", dir && dir[0] != '\0' ? dir : "/dev");
        r = beside_find("libaliquot.so", ret->gate, sizeof ret->gate, fault);
        return r < 0 || !cards ? r : simulate(cards, ret, fault);
}

void programs_done(Programs *p) {
        simulator_stop(&p->simulator);
        if (p->nvml && p->devices[0]) {
                (void) umount2(p->devices, MNT_DETACH); /* a server that was killed does not do it */
                (void) rmdir(p->devices);
        }
        *p = PROGRAMS_NULL;
}
