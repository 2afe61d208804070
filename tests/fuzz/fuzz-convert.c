/* SPDX-License-Identifier: Apache-2.0 */
/* Any manifest is converted without a crash, the printed YAML says the same as the tree, and what
 * was converted is not converted again. */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/convert/convert.h"
#include "cli/convert/yaml_write.h"
#include "wire/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_note(void *userdata, const char *pod, const char *text) {
        (void) userdata;
        assert(pod && text[0]);
}

static int expect_same(void *userdata, Str json, unsigned line, Fault *fault) {
        json_t *read = json_loadb(json.data, json.len, JSON_DECODE_ANY, NULL);

        (void) line;
        (void) fault;
        assert(json_equal(read, userdata));
        json_decref(read);
        return 0;
}

static int on_document(void *userdata, Str json, unsigned line, Fault *fault) {
        static const ConvertOptions options = {.unit_mib = 1024, .card_mib = 16160};
        json_t *tree = json_loadb(json.data, json.len, JSON_DECODE_ANY, NULL), *copy;
        _cleanup_buf_ Buf yaml = BUF_NULL, mixed = BUF_NULL;
        ConvertMix mix = CONVERT_MIX_NULL;
        Fault said = FAULT_NULL;
        int r, again;

        (void) userdata;
        (void) line;
        (void) fault;
        if (!tree)
                return 0;
        r = convert_document(tree, &options, &mix, on_note, NULL);
        assert(r == 0 || r == CONVERT_E_LEFT);
        copy = json_deep_copy(tree);
        again = convert_document(copy, &options, NULL, on_note, NULL);
        assert((again == 0 || again == r) && json_equal(copy, tree));
        assert(convert_mix_check(&mix, 16160, 15, &mixed) == 0);
        convert_mix_done(&mix);
        yaml_write(tree, &yaml);
        assert(buf_result(&yaml) == 0);
        assert(yaml_documents(buf_str(&yaml), expect_same, tree, &said) == 0);
        json_decref(copy);
        json_decref(tree);
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Fault fault = FAULT_NULL;

        (void) yaml_documents((Str){(const char *) data, size}, on_document, NULL, &fault);
        return 0;
}
