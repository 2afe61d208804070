/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json-internal.h"
#include "wire/utf8.h"

void json_string(JsonReader *r, Arena *arena, Str *ret) {
        const char *start, *end;
        bool escaped;
        char *out;
        Str raw;

        if (!json_expect(r, JSON_STRING, "not a string"))
                return;
        start = r->at + 1;
        end = json_lex_string(r, start, &escaped);
        if (!end)
                return;
        raw = (Str){start, (size_t) (end - start)};
        if (escaped || !utf8_is_valid(raw)) {
                out = arena_alloc(arena, raw.len + 1, utf8_is_valid(raw) ? 1 : 3);
                if (!out) {
                        json_no_memory(r);
                        return;
                }
                raw = (Str){out, json_unescape(raw, out)};
        }
        r->at = end + 1;
        *ret = raw;
}

void json_bool(JsonReader *r, bool *ret) {
        const char *p;

        if (!json_expect(r, JSON_BOOL, "neither true nor false"))
                return;
        p = json_lex_scalar(r, r->at);
        if (!p)
                return;
        *ret = *r->at == 't';
        r->at = p;
}

/* A whole number as sign and magnitude. The decimal point is moved, never divided by: the value is
 * mantissa x 10^exponent, and zeros are kept back until a digit follows them. So 1.0, 10e-1 and
 * 0.1e1 are all exactly 1. */
typedef struct Whole {
        bool negative;
        uint64_t magnitude;
} Whole;

enum { EXPONENT_MAX = 1 << 30 }; /* large enough: no text has so many digits that they could balance it */

/* Reads the digits before an exponent as mantissa x 10^exponent. False when the mantissa
 * overflows. */
static bool whole_mantissa(const char **p, const char *end, uint64_t *mantissa, int64_t *exponent) {
        bool point = false;
        int64_t zeros = 0;

        for (; *p < end && **p != 'e' && **p != 'E'; (*p)++) {
                if (**p == '.') {
                        point = true;
                        continue;
                }
                *exponent -= point;
                if (**p == '0') {
                        zeros++;
                        continue;
                }
                for (; *mantissa > 0 && zeros >= 0; zeros--)
                        if (__builtin_mul_overflow(*mantissa, 10, mantissa))
                                return false;
                if (__builtin_add_overflow(*mantissa, (uint64_t) (**p - '0'), mantissa))
                        return false;
                zeros = 0;
        }
        *exponent += zeros;
        return true;
}

static int64_t whole_exponent(const char *p, const char *end) {
        int64_t exponent = 0;
        bool negative = false;

        if (p == end)
                return 0;
        p++;
        if (*p == '+' || *p == '-')
                negative = *p++ == '-';
        for (; p < end && exponent < EXPONENT_MAX; p++)
                exponent = 10 * exponent + (*p - '0');
        return negative ? -exponent : exponent;
}

/* Reads a whole number from -min to max, the bounds of its type. */
static bool whole(JsonReader *r, uint64_t min, uint64_t max, Whole *ret) {
        const char *p, *end;
        int64_t exponent = 0;
        uint64_t mantissa = 0;
        bool negative;

        if (!json_expect(r, JSON_NUMBER, "not a number"))
                return false;
        end = json_lex_scalar(r, r->at);
        if (!end)
                return false;
        p = r->at;
        negative = *p == '-';
        p += negative;
        if (!whole_mantissa(&p, end, &mantissa, &exponent))
                goto out_of_range;
        exponent += whole_exponent(p, end);
        if (mantissa > 0 && exponent < 0) {
                json_fault(r, "not a whole number");
                return false;
        }
        for (; mantissa > 0 && exponent > 0; exponent--)
                if (__builtin_mul_overflow(mantissa, 10, &mantissa))
                        goto out_of_range;
        if (mantissa > (negative ? min : max))
                goto out_of_range;
        *ret = (Whole){negative, mantissa};
        r->at = end;
        return true;
out_of_range:
        json_fault(r, "out of range");
        return false;
}

void json_i64(JsonReader *r, int64_t *ret) {
        Whole w;

        if (whole(r, (uint64_t) INT64_MAX + 1, INT64_MAX, &w))
                *ret = (int64_t) (w.negative ? 0 - w.magnitude : w.magnitude);
}

void json_u64(JsonReader *r, uint64_t *ret) {
        Whole w;

        if (whole(r, 0, UINT64_MAX, &w))
                *ret = w.magnitude;
}
