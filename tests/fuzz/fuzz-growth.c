/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as the annotation of what slices may hold above limits. What is accepted is the same
 * after being written and read again, and a ledger that takes it has the sums of its entries. */

#include <assert.h>

#include "../unit/share/ledger_check.h"
#include "share/ledger-internal.h"
#include "share/ledger_growth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const Growth *g, Arena *arena) {
        _cleanup_buf_ Buf out = BUF_NULL, twice = BUF_NULL;
        Growth again;

        growth_write(g, &out);
        assert(growth_read(buf_str(&out), arena, &again, NULL) == 0);
        assert(again.serial == g->serial && again.n <= g->n);
        growth_write(&again, &twice);
        assert(str_eq(buf_str(&out), buf_str(&twice)));
}

static void check_ledger(Str text) {
        static const Str object = STR("{\"metadata\":{\"name\":\"n\"},\"status\":{}}");
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Node node;

        assert(ledger_new(&l) == 0 && node_decode(object, &arena, &node, NULL) == 0);
        node.annotations.growth = text;
        (void) ledger_node_set(l, &node, NULL);
        assert(ledger_check(l));
        node.annotations.growth = STR("");
        assert(ledger_node_set(l, &node, NULL) == 0);
        for (size_t i = 0; i < ledger_node_n_cards(ledger_node_at(l, 0)); i++)
                assert(ledger_node_cards(ledger_node_at(l, 0))[i].used == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str text = {(const char *) data, size};
        Fault fault = FAULT_NULL;
        Growth g;
        int r = growth_read(text, &arena, &g, &fault);

        assert(r == 0 || (r == GROWTH_E_MALFORMED && fault.text[0] != '\0' && g.n == 0));
        if (r == 0 && g.serial > 0)
                check_again(&g, &arena);
        check_ledger(text);
        return 0;
}
