/* SPDX-License-Identifier: Apache-2.0 */
#include "local/machine_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/locate.h"
#include "base/simulator.h"
#include "slice/container_paths.h"

#define PART_LIMIT ((size_t) 256 << 20)
#define CACHE_CONF MACHINE_PARTS "/library/ld.so.conf"

typedef struct Part {
        const char *name; /* beside the executable */
        const char *to;
        bool optional;
} Part;

static const Part parts[] = {
        {"libaliquot.so", MACHINE_LIBRARY, false},
        {"sim/libcuda.so.1", MACHINE_PROGRAMS "/libcuda.so.1", false},
        {SIMULATOR_NVML, MACHINE_PROGRAMS "/libnvidia-ml.so.1", false},
        {"sim/nvidia-smi", MACHINE_PROGRAMS "/nvidia-smi", false},
        {"aliquot-sample", MACHINE_PROGRAMS "/aliquot-sample", true},
};

enum { PARTS = ELEMENTSOF(parts) };

/* Reads the files before our /run hides the machine's. */
static int read_parts(Buf contents[static PARTS], Fault *fault) {
        char path[LOCATE_PATH];

        for (size_t i = 0; i < PARTS; i++) {
                int r = locate_file(parts[i].name, path, sizeof path, fault);

                if (r == -ENOENT && parts[i].optional)
                        continue;
                if (r < 0)
                        return r;
                r = file_read(path, PART_LIMIT, &contents[i]);
                if (r < 0)
                        return fault_set(fault, r, "cannot read %s: %s", path, strerror(-r));
        }
        return 0;
}

static int write_part(const char *path, Str text, Fault *fault) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

        while (fd >= 0 && text.len > 0) {
                ssize_t n = write(fd, text.data, text.len);

                if (n < 0)
                        break;
                text = (Str){text.data + n, text.len - (size_t) n};
        }
        return text.len > 0 || fd < 0 ? fault_set(fault, -errno, "cannot write %s: %s", path, strerror(errno))
                                      : 0;
}

static int make_directory(const char *path, Fault *fault) {
        return mkdir(path, 0755) < 0 ? fault_set(fault, -errno, "cannot make %s: %s", path, strerror(errno))
                                     : 0;
}

/* Writes copies that an unprivileged user of this machine, which containers are, can read wherever
 * the originals lie. The loader skips a library that it cannot read with only a warning. */
static int write_parts(const Buf contents[static PARTS], Fault *fault) {
        static const char *const directories[] = {MACHINE_PARTS, MACHINE_PARTS "/library", MACHINE_PROGRAMS};
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(directories) && r == 0; i++)
                r = make_directory(directories[i], fault);
        for (size_t i = 0; i < PARTS && r == 0; i++)
                if (contents[i].len > 0)
                        r = write_part(parts[i].to, buf_str(&contents[i]), fault);
        return r == 0 ? write_part(MACHINE_PRELOAD, STR(SLICE_RUN_GATE "\n"), fault) : r;
}

/* ldconfig writes an auxiliary cache, whatever its options. It gets an empty folder for that, and
 * the machine's stays as it was. */
static bool hide_caches(void) {
        return unshare(CLONE_NEWNS) == 0 &&
               (mount("tmpfs", "/var/cache", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m") == 0 ||
                errno == ENOENT);
}

/* Makes the cache that an installation of the driver's libraries would make; only ldconfig knows
 * its format. Without ldconfig, LD_LIBRARY_PATH remains. */
static void write_cache(void) {
        Fault ignored = FAULT_NULL;
        pid_t pid;

        if (write_part(CACHE_CONF, STR(MACHINE_PROGRAMS "\ninclude /etc/ld.so.conf\n"), &ignored) < 0)
                return;
        pid = fork();
        if (pid == 0) {
                int null = open("/dev/null", O_RDWR | O_CLOEXEC);

                if (dup2(null, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0 && hide_caches())
                        (void) execl("/sbin/ldconfig", "ldconfig", "-X", "-f", CACHE_CONF, "-C",
                                     MACHINE_CACHE, (char *) NULL);
                _exit(127);
        }
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

/* Mounts a small tmpfs for slices, so that a container that writes without end to its counters
 * fills only that. */
static int mount_slices(Fault *fault) {
        int r = make_directory(MACHINE_SLICES, fault);

        if (r == 0 && mount("tmpfs", MACHINE_SLICES, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                            "size=64m,nr_inodes=32k,mode=755") < 0)
                r = fault_set(fault, -errno, "cannot mount %s: %s", MACHINE_SLICES, strerror(errno));
        return r;
}

static int enter_simulator(const Buf contents[static PARTS], Fault *fault) {
        int r;

        r = simulator_enter(fault);
        if (r < 0)
                return r;
        if (mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "size=1g,mode=755") < 0)
                return fault_set(fault, -errno, "cannot mount a /run of our own: %s", strerror(errno));
        (void) umask(022); /* the files are for containers, which are another user */
        r = write_parts(contents, fault);
        if (r == 0)
                r = mount_slices(fault);
        if (r == 0)
                write_cache();
        return r;
}

int machine_parts_enter(Fault *fault) {
        Buf contents[PARTS] = {BUF_NULL};
        char path[LOCATE_PATH];
        int r;

        r = simulator_check(fault);
        if (r == 0)
                r = locate_file("aliquot-sim", path, sizeof path, fault);
        if (r == 0)
                r = read_parts(contents, fault);
        if (r == 0)
                r = enter_simulator(contents, fault);
        for (size_t i = 0; i < PARTS; i++)
                buf_done(&contents[i]);
        return r;
}
