/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/processes.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

static bool is_file(const struct stat *st, dev_t dev, ino_t ino) {
        return st->st_dev == dev && st->st_ino == ino;
}

/* Whether the process maps the slice's files. Lines of maps are (proc(5)): "address perms offset
 * dev:dev inode path". */
static bool maps(const char *pid, const struct stat *counters, const struct stat *limits) {
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *line = NULL;
        unsigned major_, minor_;
        unsigned long inode;
        size_t size = 0;
        char path[64], perms[8];

        (void) snprintf(path, sizeof path, "/proc/%.20s/maps", pid);
        file = fopen(path, "re");
        while (file && getline(&line, &size, file) > 0)
                if (sscanf(line, "%*s %7s %*s %x:%x %lu", perms, &major_, &minor_, &inode) == 4 &&
                    (is_file(counters, makedev(major_, minor_), inode) ||
                     (is_file(limits, makedev(major_, minor_), inode) && strcmp(perms, "r--s") == 0)))
                        return true;
        return false;
}

void processes_find(const struct stat *counters, const struct stat *limits, Processes *ret) {
        DIR *proc = opendir("/proc");
        const struct dirent *entry;

        ret->n = 0;
        while (proc && (entry = readdir(proc))) {
                if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
                    !maps(entry->d_name, counters, limits))
                        continue;
                if (ret->n < PROCESSES_MAX)
                        ret->pids[ret->n] = (pid_t) strtol(entry->d_name, NULL, 10);
                ret->n++;
        }
        if (proc)
                (void) closedir(proc);
}
