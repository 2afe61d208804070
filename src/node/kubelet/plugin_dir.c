/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/plugin_dir.h"

#include <errno.h>
#include <sys/inotify.h>

#define MASK                                                                                                 \
        (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

int plugin_dir_file_id(const char *path, PluginFileId *ret) {
        struct stat st;

        if (lstat(path, &st) < 0)
                return -errno;
        *ret = (PluginFileId){st.st_dev, st.st_ino, st.st_mtim}; /* using a socket does not change its time */
        return 0;
}

/* Identifies a directory. Follows links, and leaves the time out, because it changes with each file
 * in it. */
static int directory_id(const char *path, PluginFileId *ret) {
        struct stat st;

        if (stat(path, &st) < 0)
                return -errno;
        *ret = (PluginFileId){.device = st.st_dev, .inode = st.st_ino};
        return 0;
}

bool plugin_dir_file_id_eq(const PluginFileId *a, const PluginFileId *b) {
        return a->device == b->device && a->inode == b->inode && a->time.tv_sec == b->time.tv_sec &&
               a->time.tv_nsec == b->time.tv_nsec;
}

static int on_inotify(sd_event_source *source, const struct inotify_event *event, void *userdata) {
        PluginDir *d = userdata;

        if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT))
                d->watched = (PluginFileId){0};
        d->wake(d->userdata);
        return 0;
}

/* Watches the directory, again if another one is at the path. While a socket in it is open, no
 * IN_DELETE_SELF comes for a removed directory, so its inode is compared. */
static int watch_path(PluginDir *d) {
        PluginFileId id = {0};
        int r = directory_id(d->path, &id);

        if (d->watch && (r < 0 || !plugin_dir_file_id_eq(&id, &d->watched)))
                d->watch = sd_event_source_disable_unref(d->watch);
        if (r < 0 || d->watch)
                return r;
        r = sd_event_add_inotify(d->event, &d->watch, d->path, MASK, on_inotify, d);
        d->watched = id;
        return r < 0 ? r : 0;
}

int plugin_dir_check(PluginDir *d) {
        int r = watch_path(d);

        if (r < 0 && !d->watch_above) {
                /* If this fails, the parent is missing as well: the caller tries again later. */
                (void) sd_event_add_inotify(d->event, &d->watch_above, d->parent,
                                            IN_CREATE | IN_MOVED_TO | IN_ONLYDIR, on_inotify, d);
                r = watch_path(d); /* the directory may exist by now */
        }
        if (r >= 0)
                d->watch_above = sd_event_source_disable_unref(d->watch_above);
        return r;
}

int plugin_dir_init(PluginDir *d, sd_event *event, const char *parent, const char *name,
                    void (*wake)(void *userdata), void *userdata) {
        *d = (PluginDir){.event = event, .wake = wake, .userdata = userdata};
        if (asprintf(&d->path, "%s/%s", parent, name) < 0)
                d->path = NULL; /* undefined otherwise */
        if (asprintf(&d->parent, "%s", parent) < 0)
                d->parent = NULL;
        return d->path && d->parent ? 0 : -ENOMEM;
}

void plugin_dir_done(PluginDir *d) {
        sd_event_source_disable_unref(d->watch);
        sd_event_source_disable_unref(d->watch_above);
        free(d->path);
        free(d->parent);
        *d = PLUGIN_DIR_NULL;
}
