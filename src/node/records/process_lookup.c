/* SPDX-License-Identifier: Apache-2.0 */
#include "node/records/process_lookup.h"

#include <string.h>

const char *process_lookup_container(const RosterPod *pod, const ProcessOwner *owner) {
        const char *name = pod ? roster_container_name(pod, owner->container) : NULL;

        return name && name[0] != '\0' && strlen(name) < PROCESS_LOOKUP_NAME_SIZE ? name : NULL;
}

bool process_lookup_is_ours(const Roster *roster, const Records *records, const ProcessOwner *owner) {
        Str uid = str_from(owner->uid);

        return roster_find(roster, uid) || records_find(records, uid);
}
