/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/resizable.h"

/* How many cards the container has: by its devices, because a placement may have other cards than
 * the pod asks for. */
static uint32_t cards_of(const Record *record, const RosterPod *pod, const RosterContainer *c) {
        const RecordContainer *given = record ? record_container(record, str_from(c->name)) : NULL;
        uint32_t n = given ? device_set_count_cards(&given->given[DEVICE_MEM]) : 0;

        return n > 0 ? n : pod->request.cards;
}

void resizable_find(const RosterPod *pod, const Record *record, bool grows, Resizable *ret) {
        ret->n = 0;
        for (size_t i = 0; i < pod->n_containers && ret->n < RESIZABLE_MAX; i++) {
                const RosterContainer *c = &pod->containers[i];

                if (c->kind != CONTAINER_MAIN)
                        continue;
                ret->containers[ret->n] = c;
                ret->limits[ret->n++] = (ResizeLimit){.name = str_from(c->name),
                                                      .index = c->index,
                                                      .mem = roster_asks(pod, c, DEVICE_MEM),
                                                      .core = roster_asks(pod, c, DEVICE_CORE),
                                                      .cards = cards_of(record, pod, c),
                                                      .grows = grows};
        }
}

ResizeSize resizable_in_force(const Record *record, const ResizeLimit *l) {
        const RecordContainer *given = record ? record_container(record, l->name) : NULL;

        return (ResizeSize){given && given->size_mem > 0 ? given->size_mem : l->mem,
                            given && given->size_core > 0 ? given->size_core : l->core};
}
