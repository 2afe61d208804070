/* SPDX-License-Identifier: Apache-2.0 */
#include "share/environment.h"

#include <errno.h>

#include "wire/annotation.h"
#include "wire/card_info.h"

static const CardInfo *card_of(const CardInfo *cards, size_t n, uint32_t index) {
        for (size_t i = 0; i < n; i++)
                if (cards[i].index == index)
                        return &cards[i];
        return NULL;
}

static void give_number(EnvironmentVariable variable, void *userdata, const char *name, uint64_t value) {
        char text[24];

        (void) snprintf(text, sizeof text, "%llu", (unsigned long long) value);
        variable(userdata, name, str_from(text));
}

/* Lists the cards of the slices, separated by commas: their indexes, and the UUIDs that are known,
 * both in the order of the slices. */
static void list_cards(const Slice *slices, size_t n_slices, const CardInfo *cards, size_t n_cards,
                       Buf *indexes, Buf *uuids) {
        for (size_t i = 0; i < n_slices; i++) {
                const CardInfo *card = card_of(cards, n_cards, slices[i].card);

                if (indexes->len > 0)
                        buf_append_char(indexes, ',');
                buf_append_u64(indexes, slices[i].card);
                if (!card || str_is_empty(card->uuid))
                        continue;
                if (uuids->len > 0)
                        buf_append_char(uuids, ',');
                buf_append_str(uuids, card->uuid);
        }
}

/* Units of the largest of these cards; 0 when the node describes none of them. */
static uint32_t largest_units(const Slice *slices, size_t n_slices, const CardInfo *cards, size_t n_cards) {
        uint32_t units = 0;

        for (size_t i = 0; i < n_slices; i++) {
                const CardInfo *card = card_of(cards, n_cards, slices[i].card);

                units = card && card->units > units ? card->units : units;
        }
        return units;
}

int environment_make_whole(const Slice *slices, size_t n_slices, const CardInfo *cards, size_t n_cards,
                           EnvironmentVariable variable, void *userdata) {
        _cleanup_buf_ Buf indexes = BUF_NULL, uuids = BUF_NULL;

        list_cards(slices, n_slices, cards, n_cards, &indexes, &uuids);
        if (buf_result(&indexes) < 0 || buf_result(&uuids) < 0)
                return -ENOMEM;
        variable(userdata, ENVIRONMENT_VISIBLE_DEVICES, buf_str(&uuids));
        return 0;
}

int environment_make(const Slice *slices, size_t n_slices, uint32_t pod_mem, MemoryUnit unit,
                     const CardInfo *cards, size_t n_cards, EnvironmentVariable variable, void *userdata) {
        _cleanup_buf_ Buf indexes = BUF_NULL, uuids = BUF_NULL, unit_name = BUF_NULL;
        list_cards(slices, n_slices, cards, n_cards, &indexes, &uuids);
        memory_unit_format(unit, &unit_name);
        if (buf_result(&indexes) < 0 || buf_result(&uuids) < 0 || buf_result(&unit_name) < 0)
                return -ENOMEM;
        give_number(variable, userdata, ENVIRONMENT_MEM_CONTAINER, slices[0].mem);
        give_number(variable, userdata, ENVIRONMENT_MEM_DEV, largest_units(slices, n_slices, cards, n_cards));
        give_number(variable, userdata, ENVIRONMENT_MEM_POD, pod_mem);
        variable(userdata, ENVIRONMENT_MEM_IDX, buf_str(&indexes));
        variable(userdata, ENVIRONMENT_MEM_UNIT, buf_str(&unit_name));
        variable(userdata, ENVIRONMENT_VISIBLE_DEVICES, buf_str(&uuids));
        return 0;
}
