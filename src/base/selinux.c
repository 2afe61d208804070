/* SPDX-License-Identifier: Apache-2.0 */
#include "base/selinux.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/file.h"

#define ATTRIBUTE "security.selinux"

enum { TEXT_MAX = 64 << 10 };

static bool contains(const char *proc, const char *name, const char *text) {
        _cleanup_buf_ Buf there = BUF_NULL;
        char path[512];

        return (size_t) snprintf(path, sizeof path, "%s/%s", proc, name) < sizeof path &&
               file_read(path, TEXT_MAX, &there) == 0 && there.len > 0 && strstr(there.data, text);
}

/* The kernel has that file system only where SELinux was not switched off at boot. Before a policy
 * is loaded, the label of a process is the word "kernel". */
bool selinux_is_on(const char *proc) {
        return contains(proc, "filesystems", "\tselinuxfs\n") && contains(proc, "self/attr/current", ":");
}

int selinux_label(int fd, const char *path, Fault *fault) {
        /* with its final zero, as the kernel returns it */
        if (fsetxattr(fd, ATTRIBUTE, SELINUX_CONTAINER_FILE, sizeof SELINUX_CONTAINER_FILE, 0) < 0)
                return fault_set(fault, -errno,
                                 "SELinux is on, and %s cannot get the label " SELINUX_CONTAINER_FILE ": %s",
                                 path, strerror(errno));
        return 0;
}

bool selinux_is_labelled(const char *path) {
        char label[256];
        ssize_t n = getxattr(path, ATTRIBUTE, label, sizeof label - 1);

        label[n > 0 ? n : 0] = '\0';
        return strstr(label, ":container_file_t:") != NULL;
}
