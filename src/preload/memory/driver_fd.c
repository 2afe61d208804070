/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/driver_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { MEMORY_MAJOR = 1 }; /* major number of /dev/zero, /dev/null and others */

/* libc's major() is a function; the encoding is the kernel's. */
static uint32_t major_of(uint64_t rdev) {
        return (uint32_t) (rdev >> 8 & 0xFFF) | (uint32_t) (rdev >> 32 & 0xFFFFF000u);
}

static bool same(const SliceFile *file, const struct stat *st) {
        if (file->rdev != 0)
                return S_ISCHR(st->st_mode) && file->rdev == st->st_rdev;
        return file->ino != 0 && file->ino == st->st_ino && file->dev == st->st_dev;
}

static bool get_status(int fd, struct stat *st) {
        st->st_mode = 0; /* the kernel sets these fields, which the analyzer cannot know */
        st->st_rdev = st->st_dev = st->st_ino = 0;
        return sys_call(SYS_fstat, fd, st) == 0;
}

/* All cards of the machine have the driver's major. A card that this container has no slice of is
 * metered, too, and refused. */
static GateFile which(const Gate *g, const struct stat *st) {
        if (S_ISCHR(st->st_mode) && major_of(st->st_rdev) == RM_MAJOR)
                return GATE_FILE_RM;
        if (atomic_load_explicit(&g->uvm_file_state, memory_order_acquire) == 2 && same(&g->uvm_file, st))
                return GATE_FILE_UVM;
        for (uint32_t i = 0; i < GATE_CARDS && i < g->n_cards; i++) {
                const GateCard *card = &g->cards[i];

                if (same(&card->ctl, st) || same(&card->device, st))
                        return GATE_FILE_RM;
                if (same(&card->uvm, st))
                        return GATE_FILE_UVM;
        }
        return GATE_FILE_OTHER;
}

GateFile gate_file(const Gate *g, int fd) {
        struct stat st;
        GateFile file;

        if (!get_status(fd, &st))
                return GATE_FILE_OTHER;
        file = which(g, &st);
        if (file == GATE_FILE_OTHER && g->files_unknown && (S_ISCHR(st.st_mode) || S_ISREG(st.st_mode)))
                return GATE_FILE_RM;
        return file;
}

bool gate_is_driver(const Gate *g, int fd) {
        struct stat st;

        return get_status(fd, &st) && which(g, &st) == GATE_FILE_RM;
}

bool gate_is_uvm(const Gate *g, int fd) {
        struct stat st;
        GateFile file;

        if (!get_status(fd, &st))
                return false;
        file = which(g, &st);
        return file == GATE_FILE_UVM || (file == GATE_FILE_OTHER && g->files_unknown && S_ISCHR(st.st_mode) &&
                                         major_of(st.st_rdev) != MEMORY_MAJOR);
}

void gate_set_uvm_file(Gate *g, int fd) {
        struct stat st;
        int met = 0;

        if (!get_status(fd, &st) || !atomic_compare_exchange_strong(&g->uvm_file_state, &met, 1))
                return;
        g->uvm_file = (SliceFile){.dev = st.st_dev, .ino = st.st_ino};
        if (S_ISCHR(st.st_mode))
                g->uvm_file = (SliceFile){.rdev = st.st_rdev};
        atomic_store_explicit(&g->uvm_file_state, 2, memory_order_release);
}

/* ---- descriptors of the gate's own ---- */

bool gate_hold_fd(int *fd) {
        long held = sys_call(SYS_fcntl, *fd, F_DUPFD_CLOEXEC, 3);

        *fd = held >= 0 ? (int) held : -1;
        return held >= 0 || held == -EBADF;
}

void gate_release_fd(int fd) {
        if (fd >= 0)
                (void) sys_call(SYS_close, fd); /* the program has its own descriptor */
}
