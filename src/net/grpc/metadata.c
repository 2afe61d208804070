/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/metadata.h"

#include <inttypes.h>

static bool is_plain(unsigned char c) {
        return c >= 0x20 && c <= 0x7e && c != '%';
}

static Str cut_text(Str text) {
        if (text.len <= METADATA_MAX_TEXT)
                return text;
        text.len = METADATA_MAX_TEXT;
        /* data[len] is the first byte left out. While it continues a character, that character is
         * cut. */
        while (text.len > 0 && ((unsigned char) text.data[text.len] & 0xc0) == 0x80)
                text.len--;
        return text;
}

void metadata_encode_text(Buf *b, Str text) {
        static const char hex[] = "0123456789ABCDEF";

        text = cut_text(text);
        for (size_t i = 0; i < text.len; i++) {
                unsigned char c = (unsigned char) text.data[i];

                if (is_plain(c)) {
                        buf_append_char(b, (char) c);
                        continue;
                }
                buf_append(b, (const char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
        }
}

static int hex_value(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return -1;
}

/* Decodes one byte of the text and moves *rest behind its encoding. */
static unsigned char next_byte(Str *rest) {
        unsigned char c = (unsigned char) rest->data[0];
        size_t n = 1;

        if (c == '%' && rest->len >= 3) {
                int high = hex_value(rest->data[1]), low = hex_value(rest->data[2]);

                if (high >= 0 && low >= 0) {
                        c = (unsigned char) (high * 16 + low);
                        n = 3;
                }
        }
        *rest = (Str){rest->data + n, rest->len - n};
        return c;
}

void metadata_decode_text(Str value, char *line, size_t size) {
        size_t n = 0;

        while (value.len > 0 && n + 1 < size) {
                unsigned char c = next_byte(&value);

                line[n++] = (char) (c < 0x20 || c == 0x7f ? ' ' : c);
        }
        line[n] = '\0';
}

bool metadata_parse_timeout(Str value, usec_t *ret) {
        uint64_t n;
        char unit;

        if (value.len < 2 || value.len > 9 || !str_to_u64((Str){value.data, value.len - 1}, &n))
                return false;
        unit = value.data[value.len - 1];
        switch (unit) { /* eight digits of hours are 3.6e17 microseconds: no overflow */
        case 'H':
                *ret = n * 3600 * USEC_PER_SEC;
                return true;
        case 'M':
                *ret = n * 60 * USEC_PER_SEC;
                return true;
        case 'S':
                *ret = n * USEC_PER_SEC;
                return true;
        case 'm':
                *ret = n * USEC_PER_MSEC;
                return true;
        case 'u':
                *ret = n;
                return true;
        case 'n':
                *ret = (n + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
                return true;
        default:
                return false;
        }
}

void metadata_format_timeout(usec_t timeout, char text[static METADATA_TIMEOUT_SIZE]) {
        static const struct {
                usec_t usec;
                char unit;
        } units[] = {{1, 'u'}, {USEC_PER_MSEC, 'm'}, {USEC_PER_SEC, 'S'}, {3600 * USEC_PER_SEC, 'H'}};
        const uint64_t most = 99999999;

        for (size_t i = 0;; i++) {
                uint64_t n = timeout / units[i].usec + (timeout % units[i].usec > 0);

                if (n > most && i + 1 < ELEMENTSOF(units))
                        continue;
                (void) snprintf(text, METADATA_TIMEOUT_SIZE, "%" PRIu64 "%c", n < most ? n : most,
                                units[i].unit);
                return;
        }
}

bool metadata_is_grpc(Str content_type) {
        const Str grpc = STR("application/grpc");

        if (!str_has_prefix(content_type, grpc))
                return false;
        return content_type.len == grpc.len || content_type.data[grpc.len] == '+' ||
               content_type.data[grpc.len] == ';';
}
