/* SPDX-License-Identifier: Apache-2.0 */
#include "node/arbiter.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "arbiter/respawn.h"
#include "base/log.h"

#define SHORT_LIFE (1 * USEC_PER_SEC)

enum { FAST_STARTS = 16 };

static void begin(NodeArbiter *a) {
        a->began = clock_monotonic_usec();
        a->pid = respawn_daemon(a->slicedir, a->tell, a->patience, &a->stop);
        if (a->pid < 0)
                log_warning("there is no arbiter of compute: %s", strerror(-a->pid));
}

void node_arbiter_start(NodeArbiter *a, const char *slicedir, uint64_t patience) {
        int ends[2] = {-1, -1};

        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
                log_warning("nobody will hear of kernels that do not end: %s", strerror(errno));
        *a = (NodeArbiter){
                .slicedir = slicedir, .patience = patience, .hear = ends[0], .tell = ends[1], .stop = -1};
        begin(a);
}

void node_arbiter_ended(NodeArbiter *a, pid_t pid) {
        if (a->pid < 1 || pid != a->pid)
                return;
        a->pid = 0;
        if (a->stop >= 0)
                (void) close(a->stop);
        a->stop = -1;
        a->short_lives = clock_monotonic_usec() - a->began >= SHORT_LIFE ? 0 : a->short_lives + 1;
        if (a->short_lives > FAST_STARTS) {
                log_error("the arbiter of compute has died %u times in a row: it is not begun again",
                          a->short_lives);
                return;
        }
        log_error("the arbiter of compute has died: it is begun again");
        begin(a);
}
