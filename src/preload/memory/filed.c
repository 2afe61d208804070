/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "preload/memory/rows.h"
#include "preload/memory/travel.h"
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

bool filed_hold(int *fd) {
        long held = sys_call(SYS_fcntl, *fd, F_DUPFD_CLOEXEC, 3);

        *fd = held >= 0 ? (int) held : -1;
        return held >= 0 || held == -EBADF;
}

void filed_let_go(int fd) {
        if (fd >= 0)
                (void) sys_call(SYS_close, fd); /* the program has its own */
}

typedef struct Own {
        Gate *g;
        uint64_t key;
} Own;

static void find_own(void *userdata, uint64_t key) {
        Own *o = userdata;

        if (exports_have_file(&o->g->exports, key))
                o->key = key;
}

/* A new lock, which stays as long as the file is open. */
static int lock_file(Gate *g, int fd, uint64_t *ret) {
        ExportFile file = {.key = pin_key_new() | PIN_KEY_END};
        int r;

        if (!filed_inode(fd, &file.dev, &file.ino))
                return -EBADF;
        r = pin_file(fd, file.key);
        if (r < 0)
                return r;
        if (exports_add_file(&g->exports, &file) < 0) {
                pin_release(fd, file.key);
                return -ENOMEM;
        }
        *ret = file.key;
        return 0;
}

bool filed_key(Gate *g, int fd, uint64_t *ret) {
        Own own = {.g = g};
        int r = pin_each_export(fd, find_own, &own);

        *ret = own.key;
        if (r < 0 && fd >= 0) /* there may be one, and others */
                return false;
        if (own.key == 0)
                r = lock_file(g, fd, ret);
        return r == 0 || r == -EAGAIN || r == -EACCES || r == -EBADF;
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

static void drop_all(Gate *g, const ExportsWanted *wanted) {
        Export gone;

        while (exports_take(&g->exports, wanted, &gone))
                filed_drop(g, &gone);
}

typedef struct Batch { /* of those that are looked for at once */
        uint64_t keys[PIN_BATCH_MAX];
        uint32_t n;
} Batch;

static void drop_unlocked(Gate *g, int fd, const Batch *batch) {
        bool locked[PIN_BATCH_MAX];

        pin_exist(fd, batch->keys, locked, batch->n);
        for (uint32_t i = 0; i < batch->n; i++)
                if (!locked[i]) {
                        drop_all(g, &(ExportsWanted){.key = batch->keys[i]});
                        exports_drop_file(&g->exports, batch->keys[i]);
                }
}

/* From the last to the first: what is taken out leaves its place to one of those that were looked
 * at. */
void filed_drop_closed(Gate *g, int fd) {
        Batch batch;
        uint64_t dev, ino;
        ExportFile file;

        batch.n = 0;
        if (exports_files(&g->exports) == 0 || !filed_inode(fd, &dev, &ino))
                return;
        for (uint32_t i = exports_files(&g->exports); i-- > 0;) {
                if (!exports_file_at(&g->exports, i, &file) || file.dev != dev || file.ino != ino)
                        continue;
                batch.keys[batch.n++] = file.key;
                if (batch.n == PIN_BATCH_MAX) {
                        drop_unlocked(g, fd, &batch);
                        batch.n = 0;
                }
        }
        drop_unlocked(g, fd, &batch);
}

void filed_drop_call(Gate *g, uint64_t call) {
        drop_all(g, &(ExportsWanted){.call = call});
}

typedef struct Replaced {
        Gate *g;
        ExportsWanted wanted;
} Replaced;

static void drop_replaced(void *userdata, uint64_t key) {
        Replaced *r = userdata;

        r->wanted.key = key;
        drop_all(r->g, &r->wanted);
}

void filed_drop_replaced(Gate *g, int fd, uint32_t first, uint32_t n, uint64_t turn) {
        Replaced replaced = {.g = g, .wanted = {.first = first, .n = n, .before = turn}};

        if (n > 0 &&
            exports_count(&g->exports) > 0) /* cannot be told: they stay counted until the file is closed */
                (void) pin_each_export(fd, drop_replaced, &replaced);
}
