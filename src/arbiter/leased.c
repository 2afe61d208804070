/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/leased.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "slicedir/file_lease.h"

static void let_wait(Leased *l, uint32_t at, int file) {
        pid_t pid = file_lease_wait(file, O_RDWR);

        if (pid < 0)
                l->files[at] = l->files[--l->n]; /* until it is asked for again */
        else
                l->files[at].pid = pid;
}

/* Killed, as when memory is short, or it could not open the file either. Reaped then: its pid is
 * nobody's any more. */
static bool is_gone(pid_t pid) {
        return waitpid(pid, NULL, WNOHANG) != 0;
}

void leased_ask(Leased *l, int directory, const char *name) {
        _cleanup_close_ int file = openat(directory, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;

        if (file < 0 || fstat(file, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        for (uint32_t i = 0; i < l->n; i++)
                if (l->files[i].dev == st.st_dev && l->files[i].ino == st.st_ino) {
                        l->files[i].asked = true;
                        if (is_gone(l->files[i].pid))
                                let_wait(l, i, file);
                        return;
                }
        if (l->n == LEASED_MOST)
                return;
        l->files[l->n].dev = st.st_dev;
        l->files[l->n].ino = st.st_ino;
        l->files[l->n].asked = true;
        let_wait(l, l->n++, file);
}

void leased_settle(Leased *l) {
        for (uint32_t i = l->n; i > 0; i--) {
                if (l->files[i - 1].asked) {
                        l->files[i - 1].asked = false;
                        continue;
                }
                file_lease_wait_end(l->files[i - 1].pid);
                l->files[i - 1] = l->files[--l->n];
        }
}

void leased_done(Leased *l) {
        for (uint32_t i = 0; i < l->n; i++)
                file_lease_wait_end(l->files[i].pid);
        l->n = 0;
}
