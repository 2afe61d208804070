/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/list_items.h"

#include "wire/json.h"

int list_items_each(Str list, int (*visit)(void *userdata, Str item), void *userdata, Fault *fault) {
        JsonReader reader;
        Str key, item;
        int r = 0;

        json_init(&reader, list);
        if (json_object_begin(&reader))
                while (r == 0 && json_object_next(&reader, &key)) {
                        if (!json_key_is(key, "items")) {
                                json_skip(&reader);
                                continue;
                        }
                        if (json_array_begin(&reader))
                                while (r == 0 && json_array_next(&reader)) {
                                        json_raw(&reader, &item);
                                        if (!json_failed(&reader))
                                                r = visit(userdata, item);
                                }
                }
        if (r != 0)
                return r;
        r = json_finish(&reader, fault);
        return r > 0 ? LIST_ITEMS_E_MALFORMED : r;
}
