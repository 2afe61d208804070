/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json-internal.h"

#include "wire/json_scan.h"
#include "wire/utf8.h"

const char *json_lex_fault(JsonReader *r, const char *at, const char *text) {
        if (!r->fault) {
                r->fault = text;
                r->fault_at = at;
        }
        r->at = r->end;
        return NULL;
}

/* The digit's value, -1 when it is no hexadecimal digit. */
static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

/* Checks an escape; p is at its backslash. */
static const char *lex_escape(JsonReader *r, const char *p) {
        if (r->end - p < 2)
                return json_lex_fault(r, r->end, "the text ends within a string");
        if (p[1] != 'u') {
                if (p[1] == '\0' || !strchr("\"\\/bfnrt", p[1]))
                        return json_lex_fault(r, p, "no such escape");
                return p + 2;
        }
        for (int i = 2; i < 6; i++) {
                if (p + i >= r->end)
                        return json_lex_fault(r, r->end, "the text ends within a string");
                if (hex_digit(p[i]) < 0)
                        return json_lex_fault(r, p, "\\u needs four hexadecimal digits");
        }
        return p + 6;
}

const char *json_lex_string(JsonReader *r, const char *p, bool *ret_escaped) {
        bool escaped = false;

        for (;;) {
                p = scan_plain(p, r->end);
                if (p == r->end)
                        return json_lex_fault(r, p, "the text ends within a string");
                if (*p == '"')
                        break;
                if (*p != '\\')
                        return json_lex_fault(r, p, "control character in a string");
                escaped = true;
                p = lex_escape(r, p);
                if (!p)
                        return NULL;
        }
        *ret_escaped = escaped;
        return p;
}

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

/* Checks one digit or more. */
static const char *lex_digits(JsonReader *r, const char *p) {
        if (p == r->end || !is_digit(*p))
                return json_lex_fault(r, p, "a digit is missing");
        while (p < r->end && is_digit(*p))
                p++;
        return p;
}

static const char *lex_number(JsonReader *r, const char *p) {
        const char *digits;

        if (*p == '-')
                p++;
        digits = p;
        p = lex_digits(r, p);
        if (!p)
                return NULL;
        if (*digits == '0' && p - digits > 1)
                return json_lex_fault(r, digits, "a number with a leading zero");
        if (p < r->end && *p == '.') {
                p = lex_digits(r, p + 1);
                if (!p)
                        return NULL;
        }
        if (p < r->end && (*p == 'e' || *p == 'E')) {
                p++;
                if (p < r->end && (*p == '+' || *p == '-'))
                        p++;
                p = lex_digits(r, p);
        }
        return p;
}

static const char *lex_word(JsonReader *r, const char *p, Str word) {
        if ((size_t) (r->end - p) < word.len || memcmp(p, word.data, word.len) != 0)
                return json_lex_fault(r, p, "no value starts here");
        return p + word.len;
}

const char *json_lex_scalar(JsonReader *r, const char *p) {
        bool escaped;

        switch (*p) {
        case '"':
                p = json_lex_string(r, p + 1, &escaped);
                return p ? p + 1 : NULL;
        case '-':
        case '0' ... '9':
                return lex_number(r, p);
        case 't':
                return lex_word(r, p, STR("true"));
        case 'f':
                return lex_word(r, p, STR("false"));
        case 'n':
                return lex_word(r, p, STR("null"));
        default:
                return json_lex_fault(r, p, "no value starts here");
        }
}

/* Reads the four digits behind \u, which are checked already. */
static uint32_t unescape_unit(const char *p) {
        uint32_t unit = 0;

        for (int i = 2; i < 6; i++)
                unit = unit << 4 | (uint32_t) hex_digit(p[i]);
        return unit;
}

/* Reads \uXXXX, or two of them that make up one code point. Half of such a pair becomes U+FFFD. */
static uint32_t unescape_code(const char **p, const char *end) {
        uint32_t high = unescape_unit(*p), low;

        *p += 6;
        if (high < 0xd800 || high > 0xdfff)
                return high;
        if (high >= 0xdc00 || end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u')
                return 0xfffd;
        low = unescape_unit(*p);
        if (low < 0xdc00 || low > 0xdfff)
                return 0xfffd;
        *p += 6;
        return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static char unescape_letter(char c) {
        switch (c) {
        case 'b':
                return '\b';
        case 'f':
                return '\f';
        case 'n':
                return '\n';
        case 'r':
                return '\r';
        case 't':
                return '\t';
        default:
                return c; /* quote, backslash, slash */
        }
}

size_t json_unescape(Str raw, char *out) {
        const char *p = raw.data, *end = p + raw.len;
        char *o = out;

        while (p < end) {
                size_t n;

                if (*p == '\\' && p[1] == 'u') {
                        o += utf8_encode(unescape_code(&p, end), o);
                        continue;
                }
                if (*p == '\\') {
                        *o++ = unescape_letter(p[1]);
                        p += 2;
                        continue;
                }
                n = utf8_length(p, end);
                memcpy(o, n > 0 ? p : UTF8_REPLACEMENT, n > 0 ? n : 3);
                o += n > 0 ? n : 3;
                p += n > 0 ? n : 1;
        }
        return (size_t) (o - out);
}
