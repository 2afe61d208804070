/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/leased.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "slice/lease.h"

void leased_ask(Leased *l, int directory, const char *name) {
        _cleanup_close_ int file = openat(directory, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;
        pid_t pid;

        if (file < 0 || fstat(file, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        for (uint32_t i = 0; i < l->n; i++)
                if (l->files[i].dev == st.st_dev && l->files[i].ino == st.st_ino) {
                        l->files[i].asked = true;
                        return;
                }
        if (l->n == LEASED_MOST)
                return;
        pid = lease_wait(file, O_RDWR);
        if (pid < 0)
                return;
        l->files[l->n].dev = st.st_dev;
        l->files[l->n].ino = st.st_ino;
        l->files[l->n].pid = pid;
        l->files[l->n++].asked = true;
}

void leased_settle(Leased *l) {
        for (uint32_t i = l->n; i > 0; i--) {
                if (l->files[i - 1].asked) {
                        l->files[i - 1].asked = false;
                        continue;
                }
                lease_wait_end(l->files[i - 1].pid);
                l->files[i - 1] = l->files[--l->n];
        }
}

void leased_done(Leased *l) {
        for (uint32_t i = 0; i < l->n; i++)
                lease_wait_end(l->files[i].pid);
        l->n = 0;
}
