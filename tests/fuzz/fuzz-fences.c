/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as the data of a ConfigMap that fences cards. It is understood or named, never both. A
 * fenced card stays fenced when the text is not understood and names no card. An empty list
 * unfences all. */

#include <assert.h>

#include "../unit/share/ledger_check.h"
#include "scheduler/view/fences.h"
#include "wire/json_write.h"
#include "wire/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char told[1024];

static void on_judged(void *userdata, Str node, const char *text) {
        assert(str_eq(node, STR("n")));
        (void) snprintf(told, sizeof told, "%s", text);
}

static int set(Fences *f, Ledger *l, const char *key, Str text, Fault *fault) {
        _cleanup_buf_ Buf json = BUF_NULL;
        int r;

        buf_appendf(&json, "{\"metadata\":{\"name\":\"n-device-status\"},\"data\":{\"%s\":", key);
        json_write_quoted(&json, text);
        buf_append_str(&json, STR("}}"));
        r = fences_set(f, l, buf_str(&json), false, 1, fault);
        assert(ledger_check(l));
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const Node node = {.meta.name = STR("n"),
                                  .mode = STR("share"),
                                  .allocatable_mem = STR("30"),
                                  .allocatable_count = STR("2")};
        static const char *const keys[] = {"devices", "gpus"};
        Str text = {(const char *) data, size};
        Fences f = {.on_judged = on_judged};
        Fault fault = FAULT_NULL;
        Ledger *l;
        int r;

        assert(ledger_new(&l) == 0 && ledger_node_set(l, &node, NULL) == 0);
        for (size_t i = 0; i < 2; i++) {
                assert(set(&f, l, "gpus", STR("1"), &fault) == 0 && told[0] == '\0');
                assert(!ledger_node_cards(ledger_node_find(l, STR("n")))[1].healthy);
                r = set(&f, l, keys[i], text, &fault);
                assert(r == 0 || (r == FENCE_E_MALFORMED && fault.text[0] != '\0'));
                assert((r == 0) == (told[0] == '\0'));
                if (r != 0 && i == 1)
                        assert(!ledger_node_cards(ledger_node_find(l, STR("n")))[1].healthy);
                assert(set(&f, l, "devices", STR("[]"), &fault) == 0 && told[0] == '\0');
                assert(ledger_node_cards(ledger_node_find(l, STR("n")))[1].healthy);
        }
        fences_done(&f, l);
        (void) ledger_free(l);
        return 0;
}
