/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a line of the log: the result is one line of one JSON object. No key stands there
 * twice. The message decodes to the text itself if that is UTF-8. */

#include <assert.h>
#include <stdlib.h>

#include "base/log_json.h"
#include "wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_object(Str line, Str text) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str keys[64], message = STR("");
        Fault fault = FAULT_NULL;
        JsonReader r;
        size_t n = 0;

        json_init(&r, line);
        for (bool more = json_object_begin(&r); more && json_object_next(&r, &keys[n]); n++) {
                assert(n + 1 < ELEMENTSOF(keys));
                for (size_t i = 0; i < n; i++)
                        assert(!str_eq(keys[i], keys[n]));
                if (json_key_is(keys[n], "message"))
                        json_string(&r, &arena, &message);
                else
                        json_skip(&r);
        }
        assert(json_finish(&r, &fault) == 0);
        assert(n >= 3);
        assert(memmem(message.data, message.len, "\xef\xbf\xbd", 3) || str_eq(message, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *text = str_dup((Str){(const char *) data, size});
        size_t room = LOG_JSON_SIZE(size) + 5, n;
        char *line = malloc(room);

        if (text && line) {
                n = log_json_format(line, room, "T", "info", text);
                assert(n > 0 && n <= room && memchr(line, '\n', n) == line + n - 1);
                check_object((Str){line, n}, str_from(text));
        }
        free(text);
        free(line);
        return 0;
}
