/* SPDX-License-Identifier: Apache-2.0 */
#include "node/records/given.h"

#include <string.h>

const MachineCard *given_card(const Inventory *v, const char *uuid) {
        for (size_t i = 0; i < v->cards.n; i++)
                if (strcmp(v->cards.cards[i].uuid, uuid) == 0)
                        return &v->cards.cards[i];
        return NULL;
}

const MachineCard *given_card_at(const Inventory *v, uint32_t index) {
        for (size_t i = 0; i < v->cards.n; i++)
                if (v->cards.cards[i].index == index)
                        return &v->cards.cards[i];
        return NULL;
}

const char *given_container(const RosterPod *pod, const ProcessOwner *owner) {
        const char *name = pod ? roster_container_name(pod, owner->container) : NULL;

        return name && name[0] != '\0' && strlen(name) < GIVEN_NAME_SIZE ? name : NULL;
}

bool given_is_ours(const Roster *roster, const Records *records, const ProcessOwner *owner) {
        Str uid = str_from(owner->uid);

        return roster_find(roster, uid) || records_find(records, uid);
}

bool given_is_open(const RosterPod *pod, const char *container) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (strcmp(pod->containers[i].name, container) == 0)
                        return pod->containers[i].not_isolated;
        return false;
}

uint32_t given_units(const DeviceSet *set, uint32_t card) {
        uint32_t at_card, count;
        size_t at = 0;

        while (device_set_next_card(set, &at, &at_card, &count))
                if (at_card == card)
                        return count;
        return 0;
}
