/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/yaml_scalar.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/buf.h"

static const struct {
        Str word, json;
        YamlScalarType type;
} words[] = {
        {STR(""), STR("null"), YAML_SCALAR_NULL},       {STR("~"), STR("null"), YAML_SCALAR_NULL},
        {STR("null"), STR("null"), YAML_SCALAR_NULL},   {STR("Null"), STR("null"), YAML_SCALAR_NULL},
        {STR("NULL"), STR("null"), YAML_SCALAR_NULL},   {STR("true"), STR("true"), YAML_SCALAR_BOOL},
        {STR("True"), STR("true"), YAML_SCALAR_BOOL},   {STR("TRUE"), STR("true"), YAML_SCALAR_BOOL},
        {STR("y"), STR("true"), YAML_SCALAR_BOOL},      {STR("Y"), STR("true"), YAML_SCALAR_BOOL},
        {STR("yes"), STR("true"), YAML_SCALAR_BOOL},    {STR("Yes"), STR("true"), YAML_SCALAR_BOOL},
        {STR("YES"), STR("true"), YAML_SCALAR_BOOL},    {STR("on"), STR("true"), YAML_SCALAR_BOOL},
        {STR("On"), STR("true"), YAML_SCALAR_BOOL},     {STR("ON"), STR("true"), YAML_SCALAR_BOOL},
        {STR("false"), STR("false"), YAML_SCALAR_BOOL}, {STR("False"), STR("false"), YAML_SCALAR_BOOL},
        {STR("FALSE"), STR("false"), YAML_SCALAR_BOOL}, {STR("n"), STR("false"), YAML_SCALAR_BOOL},
        {STR("N"), STR("false"), YAML_SCALAR_BOOL},     {STR("no"), STR("false"), YAML_SCALAR_BOOL},
        {STR("No"), STR("false"), YAML_SCALAR_BOOL},    {STR("NO"), STR("false"), YAML_SCALAR_BOOL},
        {STR("off"), STR("false"), YAML_SCALAR_BOOL},   {STR("Off"), STR("false"), YAML_SCALAR_BOOL},
        {STR("OFF"), STR("false"), YAML_SCALAR_BOOL},
};

static const Str not_json[] = {
        STR(".nan"),  STR(".NaN"),  STR(".NAN"),  STR(".inf"),  STR(".Inf"),  STR(".INF"),
        STR("+.inf"), STR("+.Inf"), STR("+.INF"), STR("-.inf"), STR("-.Inf"), STR("-.INF"),
};

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

/* Leaves in *digits those behind 0x, 0o, 0b or a leading 0, and returns their base. All other texts
 * stay, with base 10. */
static unsigned split_base(Str *digits) {
        static const struct {
                char mark;
                unsigned base;
        } bases[] = {{'x', 16}, {'X', 16}, {'o', 8}, {'O', 8}, {'b', 2}, {'B', 2}};

        if (digits->len < 2 || digits->data[0] != '0')
                return 10;
        for (size_t i = 0; i < ELEMENTSOF(bases); i++)
                if (digits->data[1] == bases[i].mark) {
                        *digits = (Str){digits->data + 2, digits->len - 2};
                        return bases[i].base;
                }
        *digits = (Str){digits->data + 1, digits->len - 1};
        return 8;
}

/* Reads digits; false when a character is no digit of that base. *ret_fits: the value is under
 * 2^64. */
static bool parse_digits(Str digits, unsigned base, uint64_t *ret, bool *ret_fits) {
        uint64_t value = 0;
        bool fits = true;

        if (str_is_empty(digits))
                return false;
        for (size_t i = 0; i < digits.len; i++) {
                char c = digits.data[i];
                unsigned digit = is_digit(c)            ? (unsigned) (c - '0')
                                 : c >= 'a' && c <= 'f' ? (unsigned) (c - 'a') + 10
                                 : c >= 'A' && c <= 'F' ? (unsigned) (c - 'A') + 10
                                                        : base;

                if (digit >= base)
                        return false;
                if (fits && (__builtin_mul_overflow(value, base, &value) ||
                             __builtin_add_overflow(value, digit, &value)))
                        fits = false;
        }
        *ret = value;
        *ret_fits = fits;
        return true;
}

static int keep_json(Arena *arena, YamlScalarType type, const Buf *json, YamlScalar *ret) {
        Str text;

        if (buf_result(json) < 0)
                return -ENOMEM;
        text = arena_str(arena, buf_str(json));
        if (!text.data)
                return -ENOMEM;
        *ret = (YamlScalar){type, text};
        return 0;
}

/* Rewrites [-+]?(.digits|digits(.digits?)?)([eE][-+]?digits)? as JSON has it: no plus, no leading
 * zeros, digits on both sides of the point. The digits themselves stay, so that nothing is rounded.
 * False for other texts. */
static bool float_to_json(Str text, Buf *json) {
        size_t i = 0, whole, fraction, exponent;

        if (text.data[i] == '-')
                buf_append_char(json, '-');
        i += text.data[i] == '-' || text.data[i] == '+';

        while (i + 1 < text.len && text.data[i] == '0' && is_digit(text.data[i + 1]))
                i++;
        for (whole = i; i < text.len && is_digit(text.data[i]);)
                i++;
        buf_append_str(json, i > whole ? (Str){text.data + whole, i - whole} : STR("0"));
        whole = i - whole;

        fraction = i;
        if (i < text.len && text.data[i] == '.')
                for (i++; i < text.len && is_digit(text.data[i]);)
                        i++;
        if (i > fraction + 1)
                buf_append(json, text.data + fraction, i - fraction);
        else if (whole == 0)
                return false;

        if (i == text.len)
                return true;
        if (text.data[i] != 'e' && text.data[i] != 'E')
                return false;
        exponent = i++;
        i += i < text.len && (text.data[i] == '-' || text.data[i] == '+');
        if (i == text.len)
                return false;
        for (; i < text.len; i++)
                if (!is_digit(text.data[i]))
                        return false;
        buf_append(json, text.data + exponent, text.len - exponent);
        return true;
}

static int resolve_float(Str plain, Str original, Arena *arena, YamlScalar *ret) {
        _cleanup_buf_ Buf json = BUF_NULL;

        /* kubectl keeps a float that overflows a double as a string. */
        if (!float_to_json(plain, &json) || (buf_result(&json) == 0 && isinf(strtod(json.data, NULL)))) {
                *ret = (YamlScalar){YAML_SCALAR_STRING, original};
                return 0;
        }
        return keep_json(arena, YAML_SCALAR_FLOAT, &json, ret);
}

/* plain: `original` without its underscores. */
static int resolve_number(Str plain, Str original, Arena *arena, YamlScalar *ret) {
        bool minus = plain.data[0] == '-', sign = minus || plain.data[0] == '+', fits;
        Str digits = {plain.data + sign, plain.len - sign};
        _cleanup_buf_ Buf json = BUF_NULL;
        unsigned base = split_base(&digits);
        uint64_t value;

        /* 08 is not octal, but a float with a whole value */
        if (!parse_digits(digits, base, &value, &fits))
                return resolve_float(plain, original, arena, ret);
        if (!fits || (minus && value > (uint64_t) INT64_MAX + 1))
                return base == 10 ? resolve_float(plain, original, arena, ret) : YAML_SCALAR_E_RANGE;
        if (minus && value > 0)
                buf_append_char(&json, '-');
        buf_append_u64(&json, value);
        return keep_json(arena, YAML_SCALAR_INT, &json, ret);
}

static int resolve_digits(Str text, Arena *arena, YamlScalar *ret) {
        _cleanup_buf_ Buf plain = BUF_NULL;

        for (size_t i = 0; i < text.len; i++)
                if (text.data[i] != '_')
                        buf_append_char(&plain, text.data[i]);
        if (buf_result(&plain) < 0)
                return -ENOMEM;
        assert(plain.len > 0); /* a digit or a sign stands in front */
        return resolve_number(buf_str(&plain), text, arena, ret);
}

int yaml_scalar_resolve(Str plain, Arena *arena, YamlScalar *ret) {
        char first;

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (str_eq(plain, words[i].word)) {
                        *ret = (YamlScalar){words[i].type, words[i].json};
                        return 0;
                }
        for (size_t i = 0; i < ELEMENTSOF(not_json); i++)
                if (str_eq(plain, not_json[i]))
                        return YAML_SCALAR_E_NOT_JSON;
        first = plain.data[0];
        if (first == '.')
                return resolve_float(plain, plain, arena, ret);
        if (is_digit(first) || first == '-' || first == '+')
                return resolve_digits(plain, arena, ret);
        *ret = (YamlScalar){YAML_SCALAR_STRING, plain};
        return 0;
}
