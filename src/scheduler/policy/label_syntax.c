/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/label_syntax.h"

enum { NAME_MAX_LEN = 63, DOMAIN_MAX_LEN = 253 };

static bool is_small(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alphanumeric(char c) {
        return is_small(c) || (c >= 'A' && c <= 'Z');
}

static bool is_name(Str s) {
        if (s.len == 0 || s.len > NAME_MAX_LEN || !is_alphanumeric(s.data[0]) ||
            !is_alphanumeric(s.data[s.len - 1]))
                return false;
        for (size_t i = 0; i < s.len; i++)
                if (!is_alphanumeric(s.data[i]) && s.data[i] != '-' && s.data[i] != '_' && s.data[i] != '.')
                        return false;
        return true;
}

/* Whether character i may stand in a DNS name: '-' and '.' neither at an end nor beside a '.', and
 * '.' not behind a '-'. any_case: capital letters may. */
static bool is_domain_character(Str s, size_t i, bool any_case) {
        bool inside = i > 0 && i + 1 < s.len;

        if (any_case ? is_alphanumeric(s.data[i]) : is_small(s.data[i]))
                return true;
        if (!inside || s.data[i - 1] == '.')
                return false;
        return s.data[i] == '.' ? s.data[i - 1] != '-' : s.data[i] == '-';
}

static bool is_domain(Str s, bool any_case) {
        if (s.len == 0 || s.len > DOMAIN_MAX_LEN)
                return false;
        for (size_t i = 0; i < s.len; i++)
                if (!is_domain_character(s, i, any_case))
                        return false;
        return true;
}

static bool is_key(Str key, bool any_case) {
        const char *slash = key.len > 0 ? memchr(key.data, '/', key.len) : NULL;
        size_t before = slash ? (size_t) (slash - key.data) : 0;

        if (!slash)
                return is_name(key);
        return is_domain((Str){key.data, before}, any_case) &&
               is_name((Str){slash + 1, key.len - before - 1});
}

bool label_syntax_is_key(Str key) {
        return is_key(key, false);
}

bool label_syntax_is_annotation_key(Str key) {
        return is_key(key, true);
}

bool label_syntax_is_value(Str value) {
        return value.len == 0 || is_name(value);
}
