/* SPDX-License-Identifier: Apache-2.0 */
#include "node/records/holders.h"

enum { HOLDERS_NAMED = 8 };

bool holders_is_on(const Grant *grant, const CardIndexes *cards) {
        const Slice *slices;
        size_t n = 0;

        slices = grant ? grant_slices(grant, &n) : NULL;
        for (size_t i = 0; i < n; i++)
                if (card_indexes_has(cards, slices[i].card))
                        return true;
        return false;
}

bool holders_record_is_on(const Record *record, const CardIndexes *cards) {
        for (size_t i = 0; i < record->n_containers; i++)
                for (int kind = 0; kind < DEVICE_KINDS_; kind++) {
                        const DeviceSet *given = &record->containers[i].given[kind];

                        for (size_t k = 0; k < given->n; k++)
                                if (card_indexes_has(cards, device_card(given->ids[k])))
                                        return true;
                }
        return false;
}

size_t holders_count_gone(const Records *records, const CardIndexes *cards) {
        size_t n = 0;

        for (const Record *r = records->by_uid; r; r = r->hh.next)
                n += r->orphan && holders_record_is_on(r, cards);
        return n;
}

static int compare_pods(const void *a, const void *b) {
        const RosterPod *const *x = a, *const *y = b;
        int order = strcmp((*x)->namespace_, (*y)->namespace_);

        return order != 0 ? order : strcmp((*x)->name, (*y)->name);
}

void holders_write(const Roster *roster, const CardIndexes *cards, size_t n_gone, Buf *out) {
        size_t n = 0;
        const RosterPod **holders = calloc(HASH_COUNT(roster->pods) + 1, sizeof *holders);

        if (!holders) {
                out->broken = true;
                return;
        }
        for (const RosterPod *pod = roster->pods; pod; pod = pod->hh.next)
                if (pod->grant && (!cards || holders_is_on(pod->grant, cards)))
                        holders[n++] = pod;
        qsort(holders, n, sizeof *holders, compare_pods);
        for (size_t i = 0; i < n && i < HOLDERS_NAMED; i++)
                buf_appendf(out, "%s%s/%s", i > 0 ? ", " : "", holders[i]->namespace_, holders[i]->name);
        if (n > HOLDERS_NAMED)
                buf_appendf(out, " and %zu more", n - HOLDERS_NAMED);
        if (n_gone > 0)
                buf_appendf(out, "%s%zu deleted pods whose processes still run", n > 0 ? ", and " : "",
                            n_gone);
        free(holders);
}
