/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as YAML: no crash, no unbounded memory, and each document of the result is JSON. */

#include <assert.h>

#include "wire/json.h"
#include "wire/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_document(void *userdata, Str json, unsigned line, Fault *fault) {
        size_t *n = userdata;
        Fault why = FAULT_NULL;
        JsonReader r;

        json_init(&r, json);
        json_skip(&r);
        assert(json_finish(&r, &why) == 0);
        assert(line > 0);
        *n += json.len;
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Fault fault = FAULT_NULL;
        size_t n = 0;
        int r;

        r = yaml_documents((Str){(const char *) data, size}, on_document, &n, &fault);
        assert(r == 0 || r == YAML_E_MALFORMED);
        assert(r == 0 || fault.text[0] != '\0');
        return 0;
}
