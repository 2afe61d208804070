/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/base64.h"

static int digit(char c) {
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four digits at a time; a group of two or three, filled up with '=', may only be the last. */
static bool decode(Str text, Buf *out) {
        uint32_t group = 0;
        unsigned digits = 0, padding = 0;

        for (size_t i = 0; i < text.len; i++) {
                char c = text.data[i];
                int value = c == '=' ? 0 : digit(c);

                if (c == '\n' || c == '\r')
                        continue;
                if (value < 0 || (padding > 0 && c != '=') || (c == '=' && digits < 2))
                        return false;
                padding += c == '=';
                group = group << 6 | (uint32_t) value;
                if (++digits < 4)
                        continue;
                for (unsigned k = 0; k < 3 - padding; k++)
                        buf_append_char(out, (char) (group >> (16 - 8 * k)));
                digits = 0;
                group = 0;
        }
        return digits == 0 && padding <= 2;
}

bool base64_decode(Str text, Buf *out) {
        size_t before = out->len;

        if (decode(text, out))
                return true;
        out->len = before;
        return false;
}
