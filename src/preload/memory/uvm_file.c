/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/uvm_file.h"

#include <fcntl.h>

#include "preload/memory/driver_fd.h"
#include "preload/memory/rows.h"
#include "slice/pin.h"

typedef enum Own { OWN_NO, OWN_YES, OWN_UNSURE } Own;

/* Whether this open file has the lock. An OFD lock does not keep its own open file from the byte,
 * but all others. Another open file may have a lock there, too, that hides this one's. */
static Own has_lock(int fd, uint64_t key) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};
        PinAnswer answer;

        if (sys_call(SYS_fcntl, fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK)
                return OWN_UNSURE;
        answer = pin_ask(fd, key, false);
        return answer == PIN_UNSURE ? OWN_UNSURE : answer == PIN_YES ? OWN_YES : OWN_NO;
}

typedef struct OwnKey {
        Gate *g;
        uint64_t key;
} OwnKey;

static void find_own(void *userdata, uint64_t key) {
        OwnKey *o = userdata;
        UvmFile file;

        for (uint32_t i = 0; i < UVM_MAPS_FILES; i++)
                if (uvm_maps_file_at(&o->g->maps, i, &file) && file.key == key)
                        o->key = key;
}

bool uvm_file_key(Gate *g, int fd, uint64_t *ret) {
        OwnKey own = {.g = g};
        bool sure = true;
        UvmFile file;

        for (uint32_t i = 0; i < UVM_MAPS_FILES && own.key == 0; i++) {
                Own answer = uvm_maps_file_at(&g->maps, i, &file) ? has_lock(fd, file.key) : OWN_NO;

                sure = sure && answer != OWN_UNSURE;
                if (answer == OWN_YES)
                        own.key = file.key;
        }
        if (own.key == 0 && !sure) /* pin_each_export() reads the locks of this open file alone */
                sure = pin_each_export(fd, find_own, &own) >= 0;
        *ret = own.key;
        return sure || own.key != 0;
}

/* Looks for a key of another process. One of this process is in the table before it is locked. */
static void find_other(void *userdata, uint64_t key) {
        OwnKey *o = userdata, own = {.g = o->g};

        find_own(&own, key);
        if (own.key == 0)
                o->key = key;
}

static UvmFileUse use_of(Gate *g, int fd) {
        OwnKey other = {.g = g};

        return pin_each_export(fd, find_other, &other) >= 0 && other.key == 0 ? UVM_FILE_SOLE
                                                                              : UVM_FILE_SHARED;
}

static bool add_file(Gate *g, const UvmFile *file, int fd) {
        if (uvm_maps_add_file(&g->maps, file) == 0)
                return true;
        uvm_file_drop_closed(g, fd); /* this may free an entry */
        return uvm_maps_add_file(&g->maps, file) == 0;
}

bool uvm_file_make_key(Gate *g, int fd, int number, uint64_t *ret) {
        bool known = uvm_file_key(g, fd, ret), alone;
        UvmFile made;

        if (!known || *ret != 0)
                return known;
        made = (UvmFile){.key = pin_key_new() | PIN_KEY_END, .inode = pin_inode(fd, PIN_UVM), .fd = number};
        if (!add_file(g, &made, fd))
                return true;
        if (pin_file_alone(fd, made.key, &alone) == 0) {
                uvm_maps_set_use(&g->maps, made.key, use_of(g, fd), alone);
                known = uvm_file_key(g, fd, ret);
        }
        if (*ret != made.key) {
                pin_release(fd, made.key);
                uvm_maps_drop_file(&g->maps, made.key);
        }
        return known;
}

bool uvm_file_pin(Gate *g, int fd, uint64_t key, uint32_t row) {
        UvmFile file;

        for (uint32_t i = 0; key != 0 && i < UVM_MAPS_FILES; i++)
                if (uvm_maps_file_at(&g->maps, i, &file) && file.key == key && (file.rows >> row & 1))
                        return true;
        if (!gate_pin(g, fd, (GateRow) row))
                return false;
        if (key != 0)
                uvm_maps_note_row(&g->maps, key, row);
        return true;
}

/* ---- ends ---- */

static void drop_holder(Gate *g, const UvmNote *note) {
        RmObject source = {.units = note->units, .card = note->card, .row = note->row};

        if (note->charge != 0)
                gate_drop_charge(g, note->charge, &source);
}

void uvm_file_end(Gate *g, const UvmEnd *what) {
        UvmNote gone[UVM_MAPS_BATCH];
        uint32_t n;

        while ((n = uvm_maps_take(&g->maps, &g->objects.charges, what, gone, UVM_MAPS_BATCH)) > 0)
                for (uint32_t i = 0; i < n; i++)
                        drop_holder(g, &gone[i]);
}

static void drop_file(Gate *g, uint64_t key) {
        uvm_file_end(g, &(UvmEnd){.key = key,
                                  .end = UINT64_MAX,
                                  .kinds = UINT32_MAX,
                                  .gpus = UINT32_MAX,
                                  .now = uvm_maps_now(&g->maps)});
        uvm_maps_drop_file(&g->maps, key);
}

/* In most cases the program's descriptor leads to the inode. If not, one is opened to ask for the
 * lock. */
void uvm_file_drop_closed(Gate *g, int fd) {
        PinFiles files = PIN_FILES(fd);
        UvmFile file;

        if (atomic_load_explicit(&g->maps.n_files, memory_order_relaxed) == 0)
                return;
        for (uint32_t i = 0; i < UVM_MAPS_FILES; i++) {
                if (!uvm_maps_file_at(&g->maps, i, &file) || file.use == UVM_FILE_NEW)
                        continue;
                files.file = gate_is_uvm(g, file.fd) ? file.fd : fd;
                if (pin_query(&files, PIN_UVM, file.inode, file.key, file.alone) == PIN_NO)
                        drop_file(g, file.key);
        }
        pin_files_close(&files);
}
