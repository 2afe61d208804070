/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as the kernel's list of locks: whatever pieces it comes in, the same is found, and a line of exactly the byte always is. */

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "slice/pin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool found(const char *text, size_t size, size_t piece, uint64_t key, bool others) {
        PinScan scan = PIN_SCAN(&key, 1, others);

        for (size_t at = 0; at < size; at += piece)
                pin_scan(&scan, text + at, size - at < piece ? size - at : piece);
        return scan.found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *text = (const char *) data;
        static const uint64_t keys[3] = {5, 77, UINT64_C(1) << 61};
        PinScan scan = PIN_SCAN(keys, 3, false);
        bool each[3] = {false, false, false};
        char line[64];
        int n;

        for (size_t piece = 1; piece < 8; piece++) {
                assert(found(text, size, piece, 77, false) == found(text, size, size + 1, 77, false));
                assert(found(text, size, piece, 77, true) == found(text, size, size + 1, 77, true));
        }
        n = snprintf(line, sizeof line, "\n1: OFDLCK ADVISORY  READ -1 00:1f:1 77 77\n");
        scan.each = each;
        pin_scan(&scan, text, size);
        for (size_t i = 0; i < 3; i++)
                assert(each[i] == found(text, size, size + 1, keys[i], false));
        pin_scan(&scan, line, (size_t) n);
        assert(scan.found && each[1]);
        return 0;
}
