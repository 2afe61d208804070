/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watches the kubelet's directory of plugin sockets, which other programs may remove, rename and
 * make again. A notification only says that something changed; the receiver checks what. */

#include <stdbool.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "base/cleanup.h"

/* Identifies the file behind a name. The kernel uses inode numbers again, so the time tells a
 * socket from an older one with the same number. */
typedef struct PluginFileId {
        dev_t device;
        ino_t inode; /* 0: no file */
        struct timespec time;
} PluginFileId;

/* Reads the identity of a socket. Returns 0 or negative errno. */
int plugin_dir_file_id(const char *path, PluginFileId *ret);
bool plugin_dir_file_id_eq(const PluginFileId *a, const PluginFileId *b);

typedef struct PluginDir {
        sd_event *event;
        char *path, *parent;
        sd_event_source *watch;       /* inotify watch of `path` */
        sd_event_source *watch_above; /* inotify watch of `parent`, while `path` does not exist */
        PluginFileId watched;
        void (*wake)(void *userdata);
        void *userdata;
} PluginDir;

#define PLUGIN_DIR_NULL ((PluginDir){0})

/* The path is PARENT/NAME. event must outlive the object. Returns 0 or -ENOMEM. */
int plugin_dir_init(PluginDir *d, sd_event *event, const char *parent, const char *name,
                    void (*wake)(void *userdata), void *userdata);
void plugin_dir_done(PluginDir *d);

/* Watches the directory that stands at path now. Returns 0, and each later change in it calls
 * `wake`. Returns negative errno when there is none, and its creation calls `wake`. */
int plugin_dir_check(PluginDir *d);
