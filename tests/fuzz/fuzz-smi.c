/* SPDX-License-Identifier: Apache-2.0 */

/* Lists of fields for nvidia-smi. The first byte says of which query. */

#include <stdlib.h>
#include <string.h>

#include "sim/smi/smi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static NvmlReturn no_name(unsigned pid, char *ret, unsigned size) {
        return NVML_ERROR_NOT_FOUND;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static Smi s;
        FILE *out = fopen("/dev/null", "we");
        /* Not strndup(): sanitizers read beyond its limit. */
        char *text = size > 0 ? calloc(1, size) : NULL;
        SmiQuery q = {.noheader = text && data[0] & 1, .nounits = text && data[0] & 2};

        if (text)
                memcpy(text, data + 1, size - 1);
        s.process_name = no_name;
        s.n = 2;
        s.cards[1].n = 3;
        if (text && data[0] & 4)
                q.apps = text;
        else
                q.cards = text;
        if (out && text)
                (void) smi_print_query(&s, &q, out);
        if (out)
                (void) fclose(out);
        free(text);
        return 0;
}
