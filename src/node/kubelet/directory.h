/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Inside of the plugin: a directory that somebody else may remove, move away and make anew, and
 * what happens in it. Events only say that something did; whoever is woken up looks for himself. */

#include <stdbool.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"

/* Which file stands under a name. Inode numbers come again; times of creation do not. */
typedef struct FileId {
        dev_t device;
        ino_t inode; /* 0: none */
        struct timespec time;
} FileId;

int file_id(const char *path, FileId *ret); /* of a socket. 0 or negative errno */
bool file_id_eq(const FileId *a, const FileId *b);

typedef struct Directory {
        sd_event *event;
        char *path, *parent;
        sd_event_source *watch, *watch_above; /* of path, and of parent while there is no path */
        FileId watched;
        void (*wake)(void *userdata);
        void *userdata;
} Directory;

#define DIRECTORY_NULL ((Directory){0})

/* path: PARENT/NAME. event is kept by whoever owns this. 0 or -ENOMEM. */
int directory_init(Directory *d, sd_event *event, const char *parent, const char *name,
                   void (*wake)(void *userdata), void *userdata);
void directory_done(Directory *d);

/* Watches the directory that is there now: 0, and whatever changes in it from now on calls `wake`.
 * Otherwise negative errno; then its coming does. */
int directory_check(Directory *d);
