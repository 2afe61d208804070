/* SPDX-License-Identifier: Apache-2.0 */
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
                if (!exports_at(&g->exports, i, &x) || x.pending || x.dev != dev || x.ino != ino)
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

void filed_drop_replaced(Gate *g, int fd, uint32_t first, uint32_t n) {
        Export x, gone;

        for (uint32_t i = exports_count(&g->exports); i-- > 0;)
                if (exports_at(&g->exports, i, &x) && !x.pending && x.place >= first && x.place - first < n &&
                    pin_is_here(fd, x.key) && exports_take(&g->exports, x.key, x.place, &gone))
                        filed_drop(g, &gone);
}
