/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as each of the requests that carry IDs. */

#include <assert.h>

#include "node/kubelet/plugin_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t check_ids(const Str *ids, size_t n, uint64_t sum) {
        assert(n <= PLUGIN_IDS_MAX);
        for (size_t i = 0; i < n; i++) {
                assert(ids[i].len > 0);
                sum = str_hash64(ids[i], sum); /* every byte can be read */
        }
        return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Str message = {(const char *) data, size};

        for (PluginRequestKind kind = PLUGIN_REQUEST_PREFERRED; kind <= PLUGIN_REQUEST_PRESTART; kind++) {
                _cleanup_(plugin_message_request_done) PluginRequest request = PLUGIN_REQUEST_NULL;
                Fault fault = FAULT_NULL;
                uint64_t sum;
                int r = plugin_message_decode_request(kind, message, &request, &fault);

                assert(r == 0 || (r == PLUGIN_REQUEST_E_REFUSED && fault.text[0] != '\0' && !request.ids));
                if (r != 0)
                        continue;
                assert(kind == PLUGIN_REQUEST_PREFERRED ? request.size > 0 : request.n_ids > 0);
                sum = check_ids(request.ids, request.n_ids, 0);
                sum = check_ids(request.must_include, request.n_must_include, sum);
                __asm__ volatile("" : : "r"(sum));
        }
        return 0;
}
