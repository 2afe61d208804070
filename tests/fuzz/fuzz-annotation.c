/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as an allocation and as a list of cards. Accepted entries are in order and within their
 * limits, and are the same after being written and read again. */

#include <assert.h>

#include "wire/allocation.h"
#include "wire/annotation.h"
#include "wire/card_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_allocation(const Allocation *a, Arena *arena) {
        _cleanup_buf_ Buf out = BUF_NULL;
        Allocation again;

        for (size_t i = 0; i < a->n_entries; i++) {
                const AllocationEntry *e = &a->entries[i];

                assert(e->amount > 0 && e->card <= CARD_INDEX_MAX && e->container <= CONTAINER_INDEX_MAX);
                if (i > 0)
                        assert(e[-1].container < e->container ||
                               (e[-1].container == e->container && e[-1].card < e->card));
        }
        allocation_format(a->entries, a->n_entries, &out);
        assert(allocation_parse(buf_str(&out), arena, &again, NULL) == 0);
        assert(again.n_entries == a->n_entries);
        assert(a->n_entries == 0 ||
               memcmp(again.entries, a->entries, a->n_entries * sizeof *a->entries) == 0);
}

static void check_cards(const CardInfo *cards, size_t n, Arena *arena) {
        _cleanup_buf_ Buf out = BUF_NULL, twice = BUF_NULL;
        CardInfo *again;
        size_t n_again;

        for (size_t i = 0; i < n; i++)
                assert(cards[i].index <= CARD_INDEX_MAX && (i == 0 || cards[i - 1].index < cards[i].index));
        card_info_format(cards, n, &out);
        assert(card_info_parse(buf_str(&out), arena, &again, &n_again, NULL) == 0);
        assert(n_again == n);
        card_info_format(again, n, &twice);
        assert(str_eq(buf_str(&out), buf_str(&twice)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str text = {(const char *) data, size};
        Fault fault = FAULT_NULL;
        Allocation a;
        CardInfo *cards;
        size_t n;
        int r;

        r = allocation_parse(text, &arena, &a, &fault);
        assert(r == 0 || (r == ALLOCATION_E_MALFORMED && fault.text[0] != '\0'));
        if (r == 0)
                check_allocation(&a, &arena);
        fault = FAULT_NULL;
        r = card_info_parse(text, &arena, &cards, &n, &fault);
        assert(r == 0 || (r == CARD_INFO_E_MALFORMED && fault.text[0] != '\0'));
        if (r == 0)
                check_cards(cards, n, &arena);
        return 0;
}
