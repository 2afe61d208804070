/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a file of the node's state directory: an accepted one is the same after being written
 * and read again. */

#include <assert.h>

#include "gpu/cards/card_table.h"
#include "node/publish/node_config.h"
#include "node/records/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const Record *record) {
        _cleanup_buf_ Buf text = BUF_NULL, twice = BUF_NULL;
        _cleanup_(record_freep) Record *again = NULL;

        assert(record->uid[0] != '\0' && !strchr(record->uid, '/'));
        record_write(record, &text);
        assert(record_read(buf_str(&text), &again, NULL) == 0);
        record_write(again, &twice);
        assert(str_eq(buf_str(&text), buf_str(&twice)));
}

/* Whatever it says, a card is fenced for at most a day. */
static void check_fences(Str text) {
        static CardFences fences, again;
        static CardTable known;
        _cleanup_buf_ Buf written = BUF_NULL;
        MachineCard card = {.uuid = "GPU-a", .pci = "00000000:01:00.0", .mib = 1, .healthy = true};
        Fault fault = FAULT_NULL;
        const usec_t now = 1000;
        int r = card_fences_read(text, &fences, &fault);

        assert(r == 0 || (r == CARDS_E_MALFORMED && fault.text[0] != '\0' && fences.n == 0));
        card_fences_write(&fences, &written);
        assert(card_fences_read(buf_str(&written), &again, NULL) == 0 && card_fences_near(&fences, &again));
        card_table_init(&known, 600 * USEC_PER_SEC, &(CardList){&card, 1});
        card_table_restore(&known, &fences, now, 1700000000000);
        assert(known.cards[0].fenced_until <= now + 24 * 3600 * USEC_PER_SEC);
        assert((known.cards[0].xid == 0) == known.cards[0].card.healthy);
        card_table_fences(&known, now, 1700000000000, &again);
        assert(again.n <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(record_freep) Record *record = NULL;
        Str text = {(const char *) data, size};
        Fault fault = FAULT_NULL;
        NodeConfig terms;
        int r;

        r = record_read(text, &record, &fault);
        assert(r == 0 || (r == RECORD_E_MALFORMED && fault.text[0] != '\0'));
        if (r == 0)
                check_record(record);
        fault = FAULT_NULL;
        r = node_config_read(text, &terms, &fault);
        assert(r == 0 ? terms.unit.mib > 0 : r == NODE_CONFIG_E_MALFORMED && fault.text[0] != '\0');
        check_fences(text);
        return 0;
}
