/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/export_fd.h"

#include <errno.h>
#include <sys/stat.h>

#include "preload/memory/rows.h"
#include "slice/pin.h"

static bool inode_of(int fd, uint64_t *ret_dev, uint64_t *ret_ino) {
        struct stat st;

        st.st_dev = st.st_ino = 0;
        if (sys_call(SYS_fstat, fd, &st) < 0)
                return false;
        *ret_dev = st.st_dev;
        *ret_ino = st.st_ino;
        return true;
}

typedef struct OwnKey {
        Gate *g;
        uint64_t key;
} OwnKey;

static void find_own(void *userdata, uint64_t key) {
        OwnKey *o = userdata;

        if (export_table_has_file(&o->g->exports, key))
                o->key = key;
}

/* Makes a lock that lasts until the file is closed. */
static int lock_file(Gate *g, int fd, uint64_t *ret) {
        ExportFile file = {.key = pin_key_new() | PIN_KEY_END};
        int r;

        if (!inode_of(fd, &file.dev, &file.ino))
                return -EBADF;
        r = pin_file_alone(fd, file.key, &file.alone);
        if (r < 0)
                return r;
        if (export_table_add_file(&g->exports, &file) < 0) {
                pin_release(fd, file.key);
                return -ENOMEM;
        }
        *ret = file.key;
        return 0;
}

bool export_fd_key(Gate *g, int fd, uint64_t *ret) {
        OwnKey own = {.g = g};
        int r = pin_each_export(fd, find_own, &own);

        *ret = own.key;
        if (r < 0 && fd >= 0) /* there may be such a lock, and others */
                return false;
        if (own.key == 0)
                r = lock_file(g, fd, ret);
        return r == 0 || r == -EAGAIN || r == -EACCES || r == -EBADF;
}

/* Moves the bytes from their row to that of the files, or back to it. */
static bool move_row(Gate *g, const ExportedObject *x, bool back) {
        SliceUser *own = gate_slice(g, x->card, x->row), *files = gate_slice(g, x->card, GATE_ROW_EXPORTS);

        return slice_move(back ? files : own, back ? own : files, (uint64_t) x->units * SLICE_UNIT) == 0;
}

bool export_fd_move_to_file_row(Gate *g, ExportedObject *x) {
        bool moved = !charges_is_exported(&g->objects.charges, x->charge);
        int first;

        if (moved && !move_row(g, x, false))
                return false;
        first = charges_add_export(&g->objects.charges, x->charge);
        if (moved && first != 1)
                (void) move_row(g, x, true); /* if not: counted twice until the process ends */
        if (!moved && first == 1)
                (void) move_row(g, x, false); /* on failure they stay in the process's row */
        return first >= 0;
}

static void drop_from_file_row(Gate *g, const ExportedObject *x) {
        ChargeEnd end = x->charge != 0 ? charges_drop_export(&g->objects.charges, x->charge) : CHARGE_FREED;

        if (end == CHARGE_MOVES_BACK)
                (void) move_row(g, x, true); /* on failure they stay in the files' row */
        else if (end == CHARGE_FREED)
                slice_release(gate_slice(g, x->card, GATE_ROW_EXPORTS), (uint64_t) x->units * SLICE_UNIT);
}

void export_fd_drop(Gate *g, const ExportedObject *x) {
        RmObject source = export_fd_source(x);

        if (x->in_file_row)
                drop_from_file_row(g, x);
        else
                gate_drop_charge(g, x->charge, &source);
}

static void drop_matching(Gate *g, const ExportFilter *filter) {
        ExportedObject gone;

        while (export_table_take(&g->exports, filter, &gone))
                export_fd_drop(g, &gone);
}

static void drop_file(Gate *g, uint64_t key) {
        drop_matching(g, &(ExportFilter){.key = key});
        export_table_drop_file(&g->exports, key);
}

/* Goes from the last file to the first: a file that is taken out is replaced by one that was looked
 * at already. What a larger lock hides stays charged. */
static void drop_of_inode(Gate *g, int fd, uint64_t dev, uint64_t ino) {
        ExportFile file;

        for (uint32_t i = export_table_files(&g->exports); i-- > 0;)
                if (export_table_file_at(&g->exports, i, &file) && file.dev == dev && file.ino == ino &&
                    pin_ask(fd, file.key, file.alone) == PIN_NO)
                        drop_file(g, file.key);
}

/* Keys of locks that are looked up at once. */
typedef struct KeyBatch {
        uint64_t keys[PIN_BATCH_MAX];
        uint32_t n;
} KeyBatch;

static void drop_unlisted(Gate *g, KeyBatch *batch) {
        bool listed[PIN_BATCH_MAX];

        if (batch->n > 0)
                pin_find_listed(batch->keys, listed, batch->n);
        for (uint32_t i = 0; i < batch->n; i++)
                if (!listed[i])
                        drop_file(g, batch->keys[i]);
        batch->n = 0;
}

/* Drops closed dma-bufs by the list of locks: a dma-buf's inode is gone with it, and no path leads
 * there. */
static void drop_dma_bufs(Gate *g) {
        KeyBatch batch;
        ExportFile file;

        batch.n = 0;
        for (uint32_t i = export_table_files(&g->exports); i-- > 0;) {
                if (!export_table_file_at(&g->exports, i, &file) || file.ino != 0)
                        continue;
                batch.keys[batch.n++] = file.key;
                if (batch.n == PIN_BATCH_MAX)
                        drop_unlisted(g, &batch);
        }
        drop_unlisted(g, &batch);
}

void export_fd_drop_closed(Gate *g, int fd) {
        uint64_t dev, ino;

        if (export_table_files(&g->exports) == 0)
                return;
        drop_dma_bufs(g);
        if (inode_of(fd, &dev, &ino))
                drop_of_inode(g, fd, dev, ino);
}

void export_fd_drop_call(Gate *g, uint64_t call) {
        drop_matching(g, &(ExportFilter){.call = call});
}

typedef struct Replaced {
        Gate *g;
        ExportFilter filter;
} Replaced;

static void drop_replaced(void *userdata, uint64_t key) {
        Replaced *r = userdata;

        r->filter.key = key;
        drop_matching(r->g, &r->filter);
}

void export_fd_drop_replaced(Gate *g, int fd, uint32_t first, uint32_t n, uint64_t sequence) {
        Replaced replaced = {.g = g, .filter = {.first = first, .n = n, .before = sequence}};

        /* If the locks cannot be read, the bytes stay charged until the file is closed. */
        if (n > 0 && export_table_count(&g->exports) > 0)
                (void) pin_each_export(fd, drop_replaced, &replaced);
}
