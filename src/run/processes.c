/* SPDX-License-Identifier: Apache-2.0 */
#include "run/processes.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

/* proc(5): "address perms offset dev:dev inode path" */
static bool maps(const char *pid, dev_t dev, ino_t ino) {
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *line = NULL;
        unsigned major_, minor_;
        unsigned long inode;
        size_t size = 0;
        char path[64];

        (void) snprintf(path, sizeof path, "/proc/%.20s/maps", pid);
        file = fopen(path, "re");
        while (file && getline(&line, &size, file) > 0)
                if (sscanf(line, "%*s %*s %*s %x:%x %lu", &major_, &minor_, &inode) == 3 && inode == ino &&
                    makedev(major_, minor_) == dev)
                        return true;
        return false;
}

void processes_find(dev_t dev, ino_t ino, Processes *ret) {
        DIR *proc = opendir("/proc");
        const struct dirent *entry;

        ret->n = 0;
        while (proc && (entry = readdir(proc))) {
                if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !maps(entry->d_name, dev, ino))
                        continue;
                if (ret->n < PROCESSES_MAX)
                        ret->pids[ret->n] = (pid_t) strtol(entry->d_name, NULL, 10);
                ret->n++;
        }
        if (proc)
                (void) closedir(proc);
}
