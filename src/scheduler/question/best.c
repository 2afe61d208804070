/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/best.h"

#include <stdlib.h>

static bool is_better(const BestNode *a, const BestNode *b) {
        return a->rank != b->rank ? a->rank < b->rank : str_compare(a->name, b->name) < 0;
}

static void add(Best *b, const BestNode *node) {
        size_t i = b->n++;

        for (; i > 0 && is_better(&b->nodes[(i - 1) / 2], node); i = (i - 1) / 2)
                b->nodes[i] = b->nodes[(i - 1) / 2];
        b->nodes[i] = *node;
}

static void replace_worst(Best *b, const BestNode *node) {
        size_t i = 0, child;

        for (; (child = 2 * i + 1) < b->n; i = child) {
                if (child + 1 < b->n && is_better(&b->nodes[child], &b->nodes[child + 1]))
                        child++;
                if (!is_better(node, &b->nodes[child]))
                        break;
                b->nodes[i] = b->nodes[child];
        }
        b->nodes[i] = *node;
}

void best_offer(Best *b, const BestNode *node) {
        if (b->n < b->max)
                add(b, node);
        else if (b->max > 0 && is_better(node, &b->nodes[0]))
                replace_worst(b, node);
}

static int compare(const void *a, const void *b) {
        return is_better(b, a) - is_better(a, b);
}

void best_sort(Best *b) {
        if (b->n > 0)
                qsort(b->nodes, b->n, sizeof *b->nodes, compare);
}
