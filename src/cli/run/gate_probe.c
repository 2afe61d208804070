/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/gate_probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/rm/rm.h"
#include "slicedir/slicedir.h"

#define PROBE_ARGUMENT "--probe-gate"

enum {
        ARGUMENTS = 5, /* its name, PROBE_ARGUMENT, the gate, the slices, the driver's files */
        /* paths for which the library has room (DISCOVER_PATH in preload/memory/discover.h), less a
         * margin */
        SLICES_PATH = 200,
        PROBE_OK = 0,
        PROBE_NO_GATE = 10,
        PROBE_NO_DRIVER,
        PROBE_NO_SLICE,
};

int gate_probe_check_path(const char *gate, Fault *fault) {
        return strpbrk(gate, " :$\n") ? fault_set(fault, -EINVAL,
                                                  "%s cannot be loaded into programs: its path has a blank, "
                                                  "a colon or a dollar sign",
                                                  gate)
                                      : 0;
}

/* ---- in the probe's process ---- */

/* Whether the library is loaded. Compares the path under which it was loaded, because device and
 * inode numbers are not reliable on overlay file systems. */
static bool is_loaded(const char *gate) {
        void *function = dlsym(RTLD_DEFAULT, "ioctl");
        Dl_info info;

        return function && dladdr(function, &info) != 0 && info.dli_fname &&
               strcmp(info.dli_fname, gate) == 0;
}

/* Sends the driver an RM control without a client. The driver refuses it; before that, the library
 * looks for its slices. */
static bool call_driver(const char *devices) {
        RmControl control = {.client = 0};
        _cleanup_close_ int fd = -1;
        char path[SLICEDIR_PATH_SIZE];

        if ((size_t) snprintf(path, sizeof path, "%s/nvidiactl", devices) >= sizeof path)
                return false;
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd >= 0)
                /* the driver's answer does not matter */
                (void) ioctl(fd, RM_IOCTL(RM_ESC_CONTROL, sizeof control), &control);
        return fd >= 0;
}

/* Whether this process has a row in the slice. The slice is new, so no other process has one: a
 * live row was taken by the library in this process. */
static bool is_held(int slices, uint32_t number) {
        _cleanup_close_ int fd = -1;
        SliceReport report = {.n_alive = 0};
        char name[16];

        (void) snprintf(name, sizeof name, "%u", number);
        fd = openat(slices, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return (fd < 0 && errno == ENOENT) ||
               (fd >= 0 && slice_files_read_report(fd, &report) == 0 && report.n_alive > 0);
}

static int run_checks(const char *gate, const char *slices, const char *devices) {
        _cleanup_close_ int fd = -1;

        if (!is_loaded(gate))
                return PROBE_NO_GATE;
        if (!call_driver(devices))
                return PROBE_NO_DRIVER;
        fd = open(slices, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || faccessat(fd, "0", F_OK, 0) < 0)
                return PROBE_NO_SLICE;
        for (uint32_t i = 0; i < SLICEDIR_CARDS_MAX; i++)
                if (!is_held(fd, i))
                        return PROBE_NO_SLICE;
        return PROBE_OK;
}

bool gate_probe_main(int argc, char **argv, int *ret) {
        if (argc != ARGUMENTS || strcmp(argv[1], PROBE_ARGUMENT) != 0)
                return false;
        *ret = run_checks(argv[2], argv[3], argv[4]);
        return true;
}

/* ---- in the caller's process ---- */

static int explain_status(int status, const char *gate, const char *slices, const char *devices,
                          Fault *fault) {
        switch (WIFEXITED(status) ? WEXITSTATUS(status) : -1) {
        case PROBE_OK:
                return 0;
        case PROBE_NO_GATE:
                return fault_set(fault, -EPERM, "%s is not loaded into programs that start here", gate);
        case PROBE_NO_DRIVER:
                return fault_set(fault, -EPERM, "%s/nvidiactl cannot be opened", devices);
        case PROBE_NO_SLICE:
                return fault_set(fault, -EPERM, "%s does not find the slice in %s", gate, slices);
        default:
                return fault_set(fault, -EPERM, "whether %s holds a program could not be tried", gate);
        }
}

int gate_probe_run(const char *gate, const char *slices, const char *devices, Fault *fault) {
        char *argv[] = {(char *) "aliquot-run", (char *) PROBE_ARGUMENT, (char *) gate,
                        (char *) slices,        (char *) devices,        NULL};
        int status = -1;
        pid_t pid;

        if (strlen(slices) > SLICES_PATH)
                return fault_set(fault, -ENAMETOOLONG, "the path of the slice directory is too long: %s",
                                 slices);
        pid = fork();
        if (pid < 0)
                return fault_set(fault, -errno, "cannot fork: %s", strerror(errno));
        if (pid == 0) {
                (void) execv("/proc/self/exe", argv);
                _exit(1);
        }
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return fault_set(fault, -errno, "cannot wait: %s", strerror(errno));
        return explain_status(status, gate, slices, devices, fault);
}
