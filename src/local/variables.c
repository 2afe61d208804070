/* SPDX-License-Identifier: Apache-2.0 */
#include "local/variables.h"

#include <errno.h>

static bool is_named(const char *item, Str name) {
        return strncmp(item, name.data, name.len) == 0 && item[name.len] == '=';
}

static char *join(Str name, Str value) {
        _cleanup_buf_ Buf item = BUF_NULL;

        buf_append_str(&item, name);
        buf_append_char(&item, '=');
        buf_append_str(&item, value);
        return buf_take(&item);
}

static bool make_room(Variables *v) {
        size_t capacity = v->capacity ? v->capacity * 2 : 16;
        char **items;

        if (v->n + 1 < v->capacity)
                return true;
        items = reallocarray(v->items, capacity, sizeof *items);
        if (!items)
                return false;
        v->items = items;
        v->capacity = capacity;
        return true;
}

bool variables_push(Variables *v, char *item) {
        if (!make_room(v)) {
                free(item);
                return false;
        }
        v->items[v->n++] = item;
        v->items[v->n] = NULL;
        return true;
}

int variables_set(Variables *v, Str name, Str value) {
        char *item = join(name, value);

        if (!item)
                return -ENOMEM;
        for (size_t i = 0; i < v->n; i++) {
                if (is_named(v->items[i], name)) {
                        free(v->items[i]);
                        v->items[i] = item;
                        return 0;
                }
        }
        return variables_push(v, item) ? 0 : -ENOMEM;
}

const char *variables_get(const Variables *v, Str name) {
        for (size_t i = 0; i < v->n; i++)
                if (is_named(v->items[i], name))
                        return v->items[i] + name.len + 1;
        return NULL;
}

void variables_done(Variables *v) {
        for (size_t i = 0; i < v->n; i++)
                free(v->items[i]);
        free(v->items);
        *v = VARIABLES_NULL;
}

void variables_expand(const Variables *v, Str text, Buf *out) {
        for (size_t i = 0; i < text.len; i++) {
                Str rest = {text.data + i + 1, text.len - i - 1}, name;
                const char *value;

                if (text.data[i] != '$' || rest.len == 0) {
                        buf_append_char(out, text.data[i]);
                        continue;
                }
                if (rest.data[0] == '$') {
                        buf_append_char(out, '$');
                        i++;
                        continue;
                }
                if (rest.data[0] != '(' || !memchr(rest.data, ')', rest.len)) {
                        buf_append_char(out, '$');
                        continue;
                }
                rest = (Str){rest.data + 1, rest.len - 1};
                name = str_split(&rest, ')');
                value = variables_get(v, name);
                if (value)
                        buf_append_str(out, str_from(value));
                else
                        buf_appendf(out, "$(" STR_FMT ")", STR_ARG(name));
                i += name.len + 2;
        }
}
