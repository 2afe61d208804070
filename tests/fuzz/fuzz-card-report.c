/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as the records of an NVML child. Accepted records become a list that keeps its rules,
 * whatever the child wrote. */

#include <assert.h>
#include <string.h>

#include "gpu/cards/card_table.h"
#include "gpu/cards/probe_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static CardTable known;
static CardScan scan;

static void check(void) {
        _cleanup_(card_list_done) CardList l = {0}, back = {0};
        _cleanup_buf_ Buf text = BUF_NULL;

        assert(card_table_list(&known, &l) == 0);
        card_list_write(&l, &text);
        assert(buf_result(&text) == 0);
        assert(card_list_read(buf_str(&text), &back, NULL) == 0);
        memcpy(back.unnamed, l.unnamed, sizeof back.unnamed); /* no part of the text */
        assert(card_list_eq(&l, &back));
}

static void take(const ProbeReport *r, usec_t now) {
        if (r->kind == REPORT_XID)
                card_table_xid(&known, r->uuid, r->value, r->session, now);
        if (r->kind == REPORT_CARD && scan.n < CARDS_MAX)
                probe_report_card(r, &scan.seen[scan.n++]);
        for (size_t i = 0; r->kind == REPORT_LINKS && i < scan.n; i++)
                if (scan.seen[i].index == r->position)
                        probe_report_links(r, &scan.seen[i]);
        if (r->kind == REPORT_END) {
                scan.session = r->session;
                card_table_scan(&known, &scan, now);
                scan.n = 0;
                check();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        usec_t now = 0;

        card_table_init(&known, 600 * USEC_PER_SEC, NULL);
        scan.n = 0;
        while (size > 0) {
                size_t n = size < sizeof(ProbeReport) ? size : sizeof(ProbeReport);
                ProbeReport r;

                if (probe_report_read(data, n, &r) == 0)
                        take(&r, now += (usec_t) r.number * USEC_PER_SEC);
                data += n;
                size -= n;
        }
        card_table_scan(&known, &scan, now);
        check();
        return 0;
}
