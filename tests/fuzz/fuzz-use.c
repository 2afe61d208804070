/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as what a driver says of its processes, question after question. The result has
 * processes, each once, with percentages of no more time than has passed. */

#include <assert.h>
#include <string.h>

#include "gpu/cards/process_utilization.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 16 };

typedef struct Question {
        uint32_t passed; /* us since the one before */
        uint32_t wall;
        uint32_t n;
} Question;

static void ask(ProcessUtilization *m, const Question *q, NvmlUse *samples, usec_t *now) {
        uint64_t nsec = 0, newest = 0;
        unsigned n = q->n % (ROOM + 1), counted;

        for (unsigned i = 0; i < n; i++)
                newest = samples[i].time > newest ? samples[i].time : newest;
        *now += q->passed;
        counted = process_utilization_update(m, samples, n, *now, q->wall, &nsec);
        assert(counted <= n && nsec <= q->passed * UINT64_C(1000));
        assert(m->asked == *now && (newest == 0 || m->since == newest));
        for (unsigned i = 0; i < counted; i++) {
                assert(samples[i].pid > 0 && samples[i].sm > 0 && samples[i].sm <= 100);
                assert(i == 0 || samples[i].pid > samples[i - 1].pid);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        ProcessUtilization m = {0};
        usec_t now = 1;

        while (size >= sizeof(Question)) {
                NvmlUse samples[ROOM];
                Question q;
                size_t n;

                memcpy(&q, data, sizeof q);
                data += sizeof q;
                size -= sizeof q;
                memset(samples, 0, sizeof samples);
                n = size < sizeof samples ? size : sizeof samples;
                if (n > 0)
                        memcpy(samples, data, n);
                data += n;
                size -= n;
                ask(&m, &q, samples, &now);
        }
        return 0;
}
