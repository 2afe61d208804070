/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/fact.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void fact_done(Fact *fact) {
        free(fact->text);
        json_decref(fact->json);
        *fact = (Fact){.state = FACT_UNASKED};
}

void fact_know(Fact *fact, char *text, bool json) {
        fact_done(fact);
        fact->text = text;
        fact->json = json && text ? json_loads(text, 0, NULL) : NULL;
        fact->state = text && (!json || json_is_object(fact->json)) ? FACT_KNOWN : FACT_SILENT;
        if (fact->state == FACT_SILENT)
                (void) fault_set(&fact->why, 0, text ? "the answer is no JSON object" : "out of memory");
}

void fact_fail(Fact *fact, int error, const char *path) {
        fact_done(fact);
        fact->state = error == ENOENT || error == ENOTDIR ? FACT_ABSENT
                      : error == EACCES || error == EPERM ? FACT_DENIED
                                                          : FACT_SILENT;
        (void) fault_set(&fact->why, 0, "%s: %s", path, strerror(error));
}

static json_t *walk(const json_t *object, va_list keys) {
        json_t *at = (json_t *) object; /* jansson's reading functions do not take const */
        const char *key;

        while (at && (key = va_arg(keys, const char *)))
                at = json_object_get(at, key);
        return at;
}

json_t *fact_at(const json_t *object, ...) {
        va_list keys;
        json_t *found;

        va_start(keys, object);
        found = walk(object, keys);
        va_end(keys);
        return found;
}

const char *fact_text(const json_t *object, ...) {
        va_list keys;
        const char *text;

        va_start(keys, object);
        text = json_string_value(walk(object, keys));
        va_end(keys);
        return text ? text : "";
}
