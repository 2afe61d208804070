/* SPDX-License-Identifier: Apache-2.0 */
#include "local/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { NOBODY = 65534 };

int isolation_clone_flags(void) {
        return CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
}

static int write_once(pid_t child, const char *file, const char *text) {
        _cleanup_close_ int fd = -1;
        char path[64];
        ssize_t n;

        (void) snprintf(path, sizeof path, "/proc/%d/%s", (int) child, file);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = write(fd, text, strlen(text)); /* the kernel takes a map in one write or not at all */
        return n < 0 ? -errno : 0;
}

int isolation_map_ids(pid_t child) {
        bool root = geteuid() == 0;
        char map[64];
        int r = 0;

        /* Without privileges a group map needs setgroups to be off (user_namespaces(7)). */
        if (!root)
                r = write_once(child, "setgroups", "deny");
        (void) snprintf(map, sizeof map, "0 %u 1", root ? NOBODY : (unsigned) geteuid());
        if (r == 0)
                r = write_once(child, "uid_map", map);
        (void) snprintf(map, sizeof map, "0 %u 1", root ? NOBODY : (unsigned) getegid());
        return r < 0 ? r : write_once(child, "gid_map", map);
}

/* --- files ------------------------------------------------------------------------------------------------------ */

static int make_private_tmpfs(const char *where, const char *options) {
        return mount("tmpfs", where, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0 ? -errno : 0;
}

/* The whole tree, with everything that is mounted in it: what a plain remount does for the top only. */
static int seal_files(void) {
        struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};

        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return -errno;
        return mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr) < 0 ? -errno : 0;
}

/* A /dev of five harmless devices, put together aside and then moved over the machine's. In a user namespace device nodes
 * cannot be made, but bound. */
static int replace_dev(void) {
        static const char *const devices[][2] = {{"/dev/null", "/tmp/dev/null"},
                                                 {"/dev/zero", "/tmp/dev/zero"},
                                                 {"/dev/full", "/tmp/dev/full"},
                                                 {"/dev/random", "/tmp/dev/random"},
                                                 {"/dev/urandom", "/tmp/dev/urandom"}};
        int r;

        if (mkdir("/tmp/dev", 0755) < 0)
                return -errno;
        r = make_private_tmpfs("/tmp/dev", "size=64k,mode=755");
        for (size_t i = 0; i < ELEMENTSOF(devices) && r == 0; i++) {
                int fd = open(devices[i][1], O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

                if (fd < 0)
                        return -errno;
                (void) close(fd);
                if (mount(devices[i][0], devices[i][1], NULL, MS_BIND, NULL) < 0)
                        return -errno;
        }
        if (r == 0 && mount("/tmp/dev", "/dev", NULL, MS_MOVE, NULL) < 0)
                return -errno;
        return r < 0 ? r : (rmdir("/tmp/dev") < 0 ? -errno : 0);
}

/* The container's own processes. Where parts of the machine's /proc are covered, as within another container, the kernel
 * refuses a fresh one (mount_too_revealing): then an empty directory, so that the machine's is out of sight anyhow. */
static int replace_proc(void) {
        if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) == 0)
                return 0;
        return make_private_tmpfs("/proc", "size=0,nr_inodes=1,mode=555");
}

/* Sockets of the machine's services stay reachable through a read-only mount, so /run is hidden. */
static int replace_directories(void) {
        int r;

        r = make_private_tmpfs("/tmp", "size=16m,nr_inodes=4096,mode=1777");
        if (r == 0)
                r = make_private_tmpfs("/run", "size=64k,mode=755");
        if (r == 0)
                r = replace_dev();
        return r < 0 ? r : replace_proc();
}

/* --- ids and privileges ----------------------------------------------------------------------------------------- */

static int become_root_inside(void) {
        /* setgroups is forbidden where the map was written without privileges; the groups are then our own. */
        if (setgroups(0, NULL) < 0 && errno != EPERM)
                return -errno;
        if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
                return -errno;
        return 0;
}

static int drop_privileges(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

        /* The bounding set goes first: emptying it needs a capability. It is what exec by uid 0 would fill the others
         * from. The loop ends at the first number this kernel does not know. */
        for (unsigned long cap = 0; cap < 64; cap++)
                if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
                        return -errno;
        if (syscall(SYS_capset, &header, none) < 0)
                return -errno;
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int set_hostname(const char *hostname) {
        size_t n = strlen(hostname);

        /* A pod's host name is its name, cut to what the kernel takes. */
        return sethostname(hostname, n < 63 ? n : 63) < 0 ? -errno : 0;
}

int isolation_enter(const char *hostname, const char **ret_step) {
        const char *step = "taking on its ids";
        int r;

        r = become_root_inside();
        if (r == 0) {
                step = "setting its host name";
                r = set_hostname(hostname);
        }
        if (r == 0) {
                step = "making the file system read-only";
                r = seal_files();
        }
        if (r == 0) {
                step = "mounting its own /tmp, /run, /dev and /proc";
                r = replace_directories();
        }
        if (r == 0) {
                step = "dropping privileges";
                r = drop_privileges();
        }
        *ret_step = step;
        return r;
}

int isolation_limit(void) {
        static const struct {
                __rlimit_resource_t resource;
                rlim_t limit;
        } limits[] = {
                {RLIMIT_CORE, 0},
                {RLIMIT_NOFILE, 256},
                {RLIMIT_NPROC, 4096}, /* counted per user of the machine, over all containers */
                {RLIMIT_FSIZE, 16 * 1024 * 1024},
                {RLIMIT_DATA, 1024 * 1024 * 1024},
        };

        for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
                struct rlimit limit = {limits[i].limit, limits[i].limit};

                if (setrlimit(limits[i].resource, &limit) < 0 &&
                    errno != EPERM) /* a lower hard limit may stand */
                        return -errno;
        }
        return 0;
}
