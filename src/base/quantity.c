/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quantity.h"

#include <stdint.h>

/* <number><suffix>: digits with at most one point; then a decimal SI letter, a binary one, or an
 * exponent. The value is kept as mantissa x 10^decimal x 2^binary so that no step rounds. */
typedef struct Scaled {
        uint64_t mantissa;
        int decimal; /* power of ten */
        int binary;  /* power of two */
} Scaled;

static const struct {
        Str suffix;
        int decimal, binary;
} suffixes[] = {
        {STR(""), 0, 0},    {STR("n"), -9, 0},  {STR("u"), -6, 0},  {STR("m"), -3, 0},
        {STR("k"), 3, 0},   {STR("M"), 6, 0},   {STR("G"), 9, 0},   {STR("T"), 12, 0},
        {STR("P"), 15, 0},  {STR("E"), 18, 0},  {STR("Ki"), 0, 10}, {STR("Mi"), 0, 20},
        {STR("Gi"), 0, 30}, {STR("Ti"), 0, 40}, {STR("Pi"), 0, 50}, {STR("Ei"), 0, 60},
};

/* Parses digits and one point from the front of *text. Trailing zeros behind the point do not count
 * as a fraction. */
static int parse_number(Str *text, Scaled *ret) {
        uint64_t mantissa = 0;
        int zeros = 0, decimal = 0;
        bool point = false, digits = false;

        for (; text->len > 0; text->data++, text->len--) {
                char c = text->data[0];

                if (c == '.' && !point) {
                        point = true;
                        continue;
                }
                if (c < '0' || c > '9')
                        break;
                digits = true;
                if (point && c == '0') {
                        zeros++;
                        continue;
                }
                for (int i = point ? zeros + 1 : 1; i > 0; i--, decimal -= point)
                        if (__builtin_mul_overflow(mantissa, 10, &mantissa))
                                return QUANTITY_E_RANGE;
                if (__builtin_add_overflow(mantissa, (uint64_t) (c - '0'), &mantissa))
                        return QUANTITY_E_RANGE;
                zeros = 0;
        }
        if (!digits)
                return QUANTITY_E_MALFORMED;
        *ret = (Scaled){.mantissa = mantissa, .decimal = decimal};
        return 0;
}

static int parse_suffix(Str text, Scaled *value) {
        for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
                if (str_eq(text, suffixes[i].suffix)) {
                        value->decimal += suffixes[i].decimal;
                        value->binary = suffixes[i].binary;
                        return 0;
                }

        /* e3, E+3, e-3 */
        if (text.len >= 2 && (text.data[0] == 'e' || text.data[0] == 'E')) {
                bool minus = text.data[1] == '-', sign = minus || text.data[1] == '+';
                Str digits = {text.data + 1 + sign, text.len - 1 - sign};
                uint32_t exponent;

                if (!str_to_u32(digits, &exponent))
                        return QUANTITY_E_MALFORMED;
                if (exponent > 1000)
                        return QUANTITY_E_RANGE;
                value->decimal += minus ? -(int) exponent : (int) exponent;
                return 0;
        }
        return QUANTITY_E_MALFORMED;
}

/* Multiplies by the suffix's twos until ten divides the mantissa, because 0.5Gi is whole. Only then
 * does parse() divide by ten. */
static void take_twos(Scaled *v) {
        while (v->mantissa % 10 != 0 && v->binary > 0 && v->mantissa <= UINT64_MAX / 2) {
                v->mantissa *= 2;
                v->binary--;
        }
}

/* Parses the amount in units of 10^-places. Without round_up it must be whole. */
static int parse(Str text, int places, bool round_up, uint64_t *ret) {
        bool minus = text.len > 0 && text.data[0] == '-';
        bool sign = minus || (text.len > 0 && text.data[0] == '+');
        Str rest = text;
        Scaled v;
        int r;

        if (sign) {
                rest.data++;
                rest.len--;
        }
        r = parse_number(&rest, &v);
        if (r != 0)
                return r;
        r = parse_suffix(rest, &v);
        if (r != 0)
                return r;
        if (v.mantissa == 0) {
                *ret = 0;
                return 0;
        }
        if (minus)
                return QUANTITY_E_RANGE;
        for (v.decimal += places; v.decimal < 0; v.decimal++) {
                take_twos(&v);
                if (v.mantissa % 10 != 0 && !round_up)
                        return QUANTITY_E_FRACTION;
                v.mantissa = v.mantissa / 10 + (v.mantissa % 10 != 0);
        }
        for (; v.decimal > 0; v.decimal--)
                if (__builtin_mul_overflow(v.mantissa, 10, &v.mantissa))
                        return QUANTITY_E_RANGE;
        for (; v.binary > 0; v.binary--)
                if (__builtin_mul_overflow(v.mantissa, 2, &v.mantissa))
                        return QUANTITY_E_RANGE;
        if (v.mantissa > INT64_MAX)
                return QUANTITY_E_RANGE;
        *ret = v.mantissa;
        return 0;
}

int quantity_parse(Str text, uint64_t *ret) {
        return parse(text, 0, false, ret);
}

bool quantity_parse_milli(Str text, int64_t *ret) {
        uint64_t value;

        if (parse(text, 3, true, &value) != 0)
                return false;
        *ret = (int64_t) value;
        return true;
}
