/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/leased.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "slicedir/file_lease.h"

static void start_child(Leased *l, uint32_t at, int file) {
        pid_t pid = file_lease_wait(file, O_RDWR);

        if (pid < 0)
                l->files[at] = l->files[--l->n]; /* no child: the next request tries again */
        else
                l->files[at].pid = pid;
}

/* Whether the child has ended: it was killed, or it could not open the file either. Reaps it, so
 * the pid may not be used any more. */
static bool has_ended(pid_t pid) {
        return waitpid(pid, NULL, WNOHANG) != 0;
}

void leased_request(Leased *l, int directory, const char *name) {
        _cleanup_close_ int file = openat(directory, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;

        if (file < 0 || fstat(file, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        for (uint32_t i = 0; i < l->n; i++)
                if (l->files[i].dev == st.st_dev && l->files[i].ino == st.st_ino) {
                        l->files[i].requested = true;
                        if (has_ended(l->files[i].pid))
                                start_child(l, i, file);
                        return;
                }
        if (l->n == LEASED_MOST)
                return;
        l->files[l->n].dev = st.st_dev;
        l->files[l->n].ino = st.st_ino;
        l->files[l->n].requested = true;
        start_child(l, l->n++, file);
}

void leased_end_unrequested(Leased *l) {
        for (uint32_t i = l->n; i > 0; i--) {
                if (l->files[i - 1].requested) {
                        l->files[i - 1].requested = false;
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
