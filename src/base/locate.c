/* SPDX-License-Identifier: Apache-2.0 */
#include "base/locate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const places[] = {"", "/../lib/aliquot", "/../lib/x86_64-linux-gnu/aliquot",
                                     "/../lib/aarch64-linux-gnu/aliquot", "/../lib64/aliquot"};

/* The link can lack the first part of the path after this process left its mount namespace. That is
 * so when it was the last one there, and the program is not on the root file system. */
static int read_own_directory(char *ret, size_t size, Fault *fault) {
        ssize_t n = readlink("/proc/self/exe", ret, size);
        char *slash;

        if (n < 0)
                return fault_set(fault, -errno, "cannot read /proc/self/exe: %s", strerror(errno));
        if ((size_t) n >= size)
                return fault_set(fault, -ENAMETOOLONG, "the path of this program is too long");
        ret[n] = '\0';
        slash = strrchr(ret, '/');
        if (!slash)
                return fault_set(fault, -ENOENT, "/proc/self/exe leads nowhere");
        *slash = '\0';
        return 0;
}

int locate_own_directory(char *ret, size_t size, Fault *fault) {
        static char own[LOCATE_PATH];
        static bool known; /* the link is read once */

        if (!known) {
                int r = read_own_directory(own, sizeof own, fault);

                if (r < 0)
                        return r;
                known = true;
        }
        if ((size_t) snprintf(ret, size, "%s", own) >= size)
                return fault_set(fault, -ENAMETOOLONG, "the path of this program is too long");
        return 0;
}

int locate_file(const char *name, char *ret, size_t size, Fault *fault) {
        char own[LOCATE_PATH];
        int r;

        r = locate_own_directory(own, sizeof own, fault);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                if ((size_t) snprintf(ret, size, "%s%s/%s", own, places[i], name) >= size)
                        return fault_set(fault, -ENAMETOOLONG, "the path of %s is too long", name);
                if (access(ret, R_OK) == 0)
                        return 0;
                if (errno != ENOENT && errno != ENOTDIR)
                        return fault_set(fault, -errno, "cannot read %s: %s", ret, strerror(errno));
        }
        return fault_set(fault, -ENOENT, "%s is neither beside %s nor in ../lib/aliquot", name, own);
}
