/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/container_processes.h"

#include <dirent.h>

#include "node/records/process_lookup.h"

bool container_processes_is_of(const ContainerProcesses *c, const ProcessOwner *owner) {
        const char *name = process_lookup_container(c->pod, owner);

        return strcmp(owner->uid, c->pod->uid) == 0 &&
               (!c->container || (name && strcmp(name, c->container) == 0));
}

bool container_processes_has(const ContainerProcesses *c, uint32_t pid) {
        ProcessOwner owner;

        return process_owner_of(c->proc, pid, &owner) && container_processes_is_of(c, &owner);
}

void container_processes_each(const ContainerProcesses *c, void (*visit)(void *userdata, uint32_t pid),
                              void *userdata) {
        DIR *processes = opendir(c->proc);
        const struct dirent *entry;
        uint64_t pid;

        while (processes && (entry = readdir(processes)))
                if (str_to_u64(str_from(entry->d_name), &pid) && pid <= UINT32_MAX &&
                    container_processes_has(c, (uint32_t) pid))
                        visit(userdata, (uint32_t) pid);
        if (processes)
                (void) closedir(processes);
}
