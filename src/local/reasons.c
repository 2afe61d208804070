/* SPDX-License-Identifier: Apache-2.0 */
#include "local/reasons.h"

#include <errno.h>

void reasons_done(Reasons *r) {
        json_decref(r->counts);
        free(r->nearest);
        *r = REASONS_NULL;
}

int reasons_add(Reasons *r, Str sentence) {
        json_int_t count;

        if (!r->counts)
                r->counts = json_object();
        count = json_integer_value(json_object_getn(r->counts, sentence.data, sentence.len));
        return json_object_setn_new(r->counts, sentence.data, sentence.len, json_integer(count + 1)) < 0
                       ? -ENOMEM
                       : 0;
}

int reasons_set_nearest(Reasons *r, Str sentence) {
        char *copy = str_dup(sentence);

        if (!copy)
                return -ENOMEM;
        free(r->nearest);
        r->nearest = copy;
        return 0;
}

typedef struct Line {
        const char *sentence;
        json_int_t nodes;
        bool nearest;
} Line;

/* Orders the nearest node's sentence first, then by number of nodes, then by text; kube-scheduler
 * sorts the finished strings, which puts 10 before 2. */
static int by_weight(const void *a, const void *b) {
        const Line *x = a, *y = b;

        if (x->nearest != y->nearest)
                return x->nearest ? -1 : 1;
        if (x->nodes != y->nodes)
                return x->nodes < y->nodes ? 1 : -1;
        return strcmp(x->sentence, y->sentence);
}

void reasons_format(const Reasons *r, size_t n_nodes, Buf *out) {
        size_t n = 0, n_lines = json_object_size(r->counts);
        _cleanup_free_ Line *lines = calloc(n_lines > 0 ? n_lines : 1, sizeof *lines);
        const char *sentence;
        json_t *count;

        if (n_nodes == 0) {
                buf_append_str(out, STR("no nodes available to schedule pods"));
                return;
        }
        buf_appendf(out, "0/%zu nodes are available", n_nodes);
        if (!lines)
                return;
        json_object_foreach(r->counts, sentence, count) {
                lines[n++] = (Line){sentence, json_integer_value(count),
                                    r->nearest && strcmp(sentence, r->nearest) == 0};
        }
        qsort(lines, n, sizeof *lines, by_weight);
        for (size_t i = 0; i < n && i < REASONS_MAX_SHOWN; i++)
                buf_appendf(out, "%s%lld %s", i == 0 ? ": " : ", ", (long long) lines[i].nodes,
                            lines[i].sentence);
        if (n > REASONS_MAX_SHOWN)
                buf_appendf(out, ", and %zu other reasons", n - REASONS_MAX_SHOWN);
}
