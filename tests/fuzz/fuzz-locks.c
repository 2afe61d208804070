/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as the kernel's list of locks: the result is the same for all pieces, and a line of
 * exactly the byte is always found. */

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "slice/pin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t keys[3] = {5, 77, UINT64_C(1) << 61};

typedef struct Found {
        size_t n;
        uint64_t sum;
        bool each[3];
} Found;

static bool note(void *userdata, uint64_t key) {
        Found *f = userdata;

        assert(key != 0 && key != PIN_NO_NUMBER);
        f->n++;
        f->sum = f->sum * 31 + key;
        for (size_t i = 0; i < 3; i++)
                f->each[i] |= keys[i] == key;
        return false;
}

static bool enough(void *userdata, uint64_t key) {
        (void) note(userdata, key);
        return true;
}

static Found find(const char *text, size_t size, size_t piece, bool (*each)(void *userdata, uint64_t key)) {
        Found f = {0};
        PinScan scan = PIN_SCAN(each, &f);

        for (size_t at = 0; at < size; at += piece)
                pin_scan(&scan, text + at, size - at < piece ? size - at : piece);
        assert(scan.done == (f.n > 0 && each == enough));
        return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *text = (const char *) data;
        const Found whole = find(text, size, size + 1, note);
        Found f = {0};
        PinScan scan = PIN_SCAN(note, &f);
        char line[64];
        int n;

        for (size_t piece = 1; piece < 8; piece++) {
                Found pieces = find(text, size, piece, note);

                assert(pieces.n == whole.n && pieces.sum == whole.sum);
        }
        assert(find(text, size, size + 1, enough).n == (whole.n > 0));
        n = snprintf(line, sizeof line, "\n1: OFDLCK ADVISORY  READ -1 00:1f:1 77 77\n");
        pin_scan(&scan, text, size);
        pin_scan(&scan, line, (size_t) n);
        assert(f.each[1]);
        return 0;
}
