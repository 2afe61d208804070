/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/list_items.h"

#include "test.h"

typedef struct Seen {
        char text[256];
        int stop_at, n;
} Seen;

static int visit(void *userdata, Str item) {
        Seen *seen = userdata;
        size_t length = strlen(seen->text);

        (void) snprintf(seen->text + length, sizeof seen->text - length, "<" STR_FMT ">", STR_ARG(item));
        return ++seen->n == seen->stop_at ? 7 : 0;
}

static int each(const char *list, Seen *seen) {
        Fault fault = FAULT_NULL;

        return list_items_each(str_from(list), visit, seen, &fault);
}

static void visits_the_items(void) {
        Seen seen = {.text = ""};

        ASSERT_OK(each("{\"kind\":\"List\",\"items\":[{\"a\":1}, 2],\"metadata\":{\"items\":[3]}}", &seen));
        ASSERT_TEXT(seen.text, "<{\"a\":1}><2>");
}

static void stops_when_told(void) {
        Seen seen = {.stop_at = 1};

        ASSERT_INT(each("{\"items\":[1,2]}", &seen), 7);
        ASSERT_TEXT(seen.text, "<1>");
}

static void has_no_items(void) {
        Seen seen = {.text = ""};

        ASSERT_OK(each("{}", &seen));
        ASSERT_OK(each("{\"items\":null}", &seen));
        ASSERT_TEXT(seen.text, "");
}

static void refuses_what_is_no_list(void) {
        static const char *const texts[] = {"", "[1]", "{\"items\":{}}", "{\"items\":[1,",
                                            "{\"items\":[1]}x"};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                Seen seen = {.text = ""};

                ASSERT_INT(each(texts[i], &seen), LIST_ITEMS_E_MALFORMED);
        }
}

int main(void) {
        return TEST_MAIN(TEST(visits_the_items), TEST(stops_when_told), TEST(has_no_items),
                         TEST(refuses_what_is_no_list));
}
