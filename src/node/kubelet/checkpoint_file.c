/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/checkpoint.h"

static bool is_same(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
               a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

void checkpoint_file_done(CheckpointFile *f) {
        arena_done(&f->arena);
        f->arena = ARENA_NULL;
        f->seen = (Checkpoint){0};
        f->is_seen = false;
}

int checkpoint_file_look(CheckpointFile *f, const Checkpoint **ret, Fault *fault) {
        struct stat
                /* from before the read: a file that replaces this one meanwhile is seen next
                 * time */
                now;
        bool known = f->path && stat(f->path, &now) == 0;
        int r;

        if (!f->is_seen || !known || !is_same(&now, &f->of)) {
                checkpoint_file_done(f);
                r = checkpoint_load(f->path, f->prefix, &f->arena, &f->seen, fault);
                if (r != 0) {
                        checkpoint_file_done(f);
                        return r;
                }
                f->is_seen = known;
                if (known)
                        f->of = now;
        }
        *ret = &f->seen;
        return 0;
}
