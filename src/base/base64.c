/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

static int value_of(char c) {
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(Str text, Buf *out) {
        size_t begin = out->len, digits = 0, padding = 0;
        uint32_t bits = 0;

        for (size_t i = 0; i < text.len; i++) {
                char c = text.data[i];
                int v = value_of(c);

                if (c == '\n' || c == '\r')
                        continue;
                if (c == '=' && digits % 4 >= 2)
                        padding++;
                if (padding > 2 || (v < 0 && c != '=') || (v >= 0 && padding > 0) ||
                    (c == '=' && padding == 0))
                        goto malformed;
                if (v < 0)
                        continue;
                bits = bits << 6 | (uint32_t) v;
                if (digits++ % 4 != 0)
                        buf_append_char(out, (char) (bits >> (6 - 2 * ((digits - 1) % 4)) & 0xff));
        }
        if (digits % 4 == 1 || (padding > 0 && (digits + padding) % 4 != 0))
                goto malformed;
        return true;

malformed:
        out->len = begin;
        return false;
}

void base64_encode(Buf *out, Str bytes) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

        for (size_t i = 0; i < bytes.len; i += 3) {
                size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
                uint32_t bits = 0;
                char four[4];

                for (size_t k = 0; k < 3; k++)
                        bits = bits << 8 | (k < n ? (uint8_t) bytes.data[i + k] : 0);
                for (size_t k = 0; k < 4; k++)
                        four[k] = k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=';
                buf_append(out, four, sizeof four);
        }
}
