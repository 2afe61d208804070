/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For tests that mount: namespaces in which that is allowed and nobody else sees it. */

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static inline bool mounts_write(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text);

        if (fd >= 0)
                (void) close(fd);
        return done;
}

/* Of a process that ends after it: root in a mount namespace of its own, also where it was not
 * root. False: not on this machine. */
static inline bool mounts_enter(void) {
        unsigned uid = geteuid(), gid = getegid();
        char users[32], groups[32];

        if (uid == 0 && unshare(CLONE_NEWNS) == 0)
                return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
        (void) snprintf(users, sizeof users, "0 %u 1", uid);
        (void) snprintf(groups, sizeof groups, "0 %u 1", gid); /* without one nothing can be made there */
        return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && mounts_write("/proc/self/uid_map", users) &&
               mounts_write("/proc/self/setgroups", "deny") && mounts_write("/proc/self/gid_map", groups) &&
               mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}
