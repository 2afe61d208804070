/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a file of the node's state directory: what is accepted is the same after being written and read again. */

#include <assert.h>

#include "node/records.h"
#include "node/terms.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(record_freep) Record *record = NULL;
        Str text = {(const char *) data, size};
        Fault fault = FAULT_NULL;
        Terms terms;
        int r;

        r = record_read(text, &record, &fault);
        assert(r == 0 || (r == RECORD_E_MALFORMED && fault.text[0] != '\0'));
        if (r == 0)
                check_record(record);
        fault = FAULT_NULL;
        r = terms_read(text, &terms, &fault);
        assert(r == 0 ? terms.unit.mib > 0 : r == TERMS_E_MALFORMED && fault.text[0] != '\0');
        return 0;
}
