/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "gate/rows.h"
#include "gate/travel.h"
#include "slice/pin.h"

/* What open files have of this process's memory. */

bool filed_inode(int fd, uint64_t *ret_dev, uint64_t *ret_ino) {
        struct stat st;

        st.st_dev = st.st_ino = 0;
        if (sys_call(SYS_fstat, fd, &st) < 0)
                return false;
        *ret_dev = st.st_dev;
        *ret_ino = st.st_ino;
        return true;
}

int filed_hold(int fd) {
        long held = sys_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);

        return held >= 0 ? (int) held : held == -EBADF ? -1 : fd;
}

void filed_let_go(int held, int fd) {
        if (held >= 0 && held != fd)
                (void) sys_call(SYS_close, held); /* the program has its own */
}

/* From their own row to that of the files, and back. */
static bool move_apart(Gate *g, const Export *x, bool back) {
        SliceUser *own = gate_slice(g, x->card, x->row), *files = gate_slice(g, x->card, GATE_ROW_EXPORTS);

        return slice_move(back ? files : own, back ? own : files, (uint64_t) x->units * SLICE_UNIT) == 0;
}

bool filed_set_apart(Gate *g, Export *x) {
        bool moved = !shares_is_exported(&g->objects.shares, x->share);
        int first;

        if (moved && !move_apart(g, x, false))
                return false;
        first = shares_add_export(&g->objects.shares, x->share);
        if (moved && first != 1)
                (void) move_apart(g, x, true); /* else counted twice until the end */
        if (!moved && first == 1)
                (void) move_apart(g, x, false); /* else in the process's row */
        return first >= 0;
}

static void drop_apart(Gate *g, const Export *x) {
        ShareEnd end = x->share != 0 ? shares_drop_export(&g->objects.shares, x->share) : SHARE_FREED;

        if (end == SHARE_BACK)
                (void) move_apart(g, x, true); /* else they stay with the files */
        else if (end == SHARE_FREED)
                slice_release(gate_slice(g, x->card, GATE_ROW_EXPORTS), (uint64_t) x->units * SLICE_UNIT);
}

void filed_drop(Gate *g, const Export *x) {
        Object source = filed_source(x);

        if (x->apart)
                drop_apart(g, x);
        else
                gate_drop_share(g, x->share, &source);
}

typedef struct Batch { /* of those that are looked for at once */
        uint64_t keys[PIN_MANY];
        uint32_t places[PIN_MANY], n;
} Batch;

static void drop_unlocked(Gate *g, int fd, const Batch *batch) {
        bool locked[PIN_MANY];
        Export gone;

        pins_are_there(fd, batch->keys, locked, batch->n);
        for (uint32_t i = 0; i < batch->n; i++)
                if (!locked[i] && exports_take(&g->exports, batch->keys[i], batch->places[i], &gone))
                        filed_drop(g, &gone);
}

/* From the last to the first: what is taken out leaves its place to one of those that were looked at. */
void filed_drop_closed(Gate *g, int fd) {
        Batch batch;
        uint64_t dev, ino;
        Export x;

        batch.n = 0;
        if (exports_count(&g->exports) == 0 || !filed_inode(fd, &dev, &ino))
                return;
        for (uint32_t i = exports_count(&g->exports); i-- > 0;) {
                if (!exports_at(&g->exports, i, &x) || !export_is_there(&x) || x.dev != dev || x.ino != ino)
                        continue;
                batch.keys[batch.n] = x.key;
                batch.places[batch.n++] = x.place;
                if (batch.n == PIN_MANY) {
                        drop_unlocked(g, fd, &batch);
                        batch.n = 0;
                }
        }
        drop_unlocked(g, fd, &batch);
}

typedef struct Replaced {
        Gate *g;
        int fd;
        uint32_t first, n;
        uint64_t turn;
} Replaced;

static void drop_replaced(void *userdata, uint64_t key) {
        const Replaced *r = userdata;
        Export x, gone;
        bool any = false;

        for (uint32_t i = exports_count(&r->g->exports); i-- > 0;)
                if (exports_at(&r->g->exports, i, &x) && x.key == key && export_is_there(&x) &&
                    x.since < r->turn && x.place >= r->first && x.place - r->first < r->n &&
                    exports_take(&r->g->exports, key, x.place, &gone)) {
                        filed_drop(r->g, &gone);
                        any = true;
                }
        if (any && !exports_have(&r->g->exports, key))
                pin_release(r->fd, key);
}

void filed_drop_replaced(Gate *g, int fd, uint32_t first, uint32_t n, uint64_t turn) {
        Replaced replaced = {g, fd, first, n, turn};

        if (exports_count(&g->exports) > 0) /* cannot be told: they stay counted until the file is closed */
                (void) pin_each_export(fd, drop_replaced, &replaced);
}
