/* SPDX-License-Identifier: Apache-2.0 */
#include "local/tree.h"

#include <errno.h>
#include <stdarg.h>

static json_t *walk(const json_t *from, va_list path) {
        const char *key = va_arg(path, const char *);
        json_t *at;

        if (!key)
                return (json_t *) from;
        at = json_object_get(from, key);
        while (at && (key = va_arg(path, const char *)))
                at = json_object_get(at, key);
        return at;
}

json_t *tree_at(const json_t *from, ...) {
        va_list path;
        json_t *at;

        va_start(path, from);
        at = walk(from, path);
        va_end(path);
        return at;
}

const char *tree_text(const json_t *from, ...) {
        va_list path;
        const char *text;

        va_start(path, from);
        text = json_string_value(walk(from, path));
        va_end(path);
        return text;
}

static json_t *step(json_t *from, const char *key) {
        json_t *at = json_object_get(from, key);

        if (json_is_object(at))
                return at;
        if (at && !json_is_null(at))
                return NULL;
        if (json_object_set_new(from, key, json_object()) < 0)
                return NULL;
        return json_object_get(from, key);
}

json_t *tree_make(json_t *from, ...) {
        json_t *at = from;
        const char *key;
        va_list path;

        va_start(path, from);
        while (at && (key = va_arg(path, const char *)))
                at = step(at, key);
        va_end(path);
        return at;
}

void tree_pod_name(const json_t *object, char buffer[static TREE_NAME_MAX]) {
        const char *namespace_ = tree_text(object, "metadata", "namespace", NULL);
        const char *name = tree_text(object, "metadata", "name", NULL);

        (void) snprintf(buffer, TREE_NAME_MAX, "%s/%s", namespace_ ? namespace_ : "default",
                        name ? name : "");
}

int tree_set_text(json_t *object, const char *key, const char *value) {
        return json_object_set_new(object, key, json_string(value)) < 0 ? -ENOMEM : 0;
}

int tree_default_text(json_t *object, const char *key, const char *value) {
        return json_object_get(object, key) ? 0 : tree_set_text(object, key, value);
}
