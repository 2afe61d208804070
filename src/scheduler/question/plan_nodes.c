/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/plan_nodes.h"

#include <errno.h>
#include <stdlib.h>

static int compare_nodes(const void *a, const void *b) {
        uintptr_t x = (uintptr_t) ((const PlanNode *) a)->node, y = (uintptr_t) ((const PlanNode *) b)->node;

        return (x > y) - (x < y);
}

static void sort_unique(PlanNodes *p) {
        size_t n = 0;

        qsort(p->nodes, p->n, sizeof *p->nodes, compare_nodes);
        for (size_t i = 0; i < p->n; i++)
                if (n > 0 && p->nodes[n - 1].node == p->nodes[i].node)
                        p->nodes[n - 1].assumed |= p->nodes[i].assumed;
                else
                        p->nodes[n++] = p->nodes[i];
        p->n = n;
}

int plan_nodes_of(const Gangs *gs, Arena *arena, PlanNodes *ret) {
        const GangMember *members = gs && gs->assembling ? gs->assembling->members : NULL;
        size_t n = 0;

        *ret = (PlanNodes){0};
        for (const GangMember *m = members; m; m = m->next)
                n += m->place != NULL;
        if (n == 0)
                return 0;
        ret->nodes = arena_new(arena, PlanNode, n);
        if (!ret->nodes)
                return -ENOMEM;
        for (const GangMember *m = members; m; m = m->next)
                if (m->place)
                        ret->nodes[ret->n++] =
                                (PlanNode){.node = grant_node(m->place), .assumed = m->answered || m->held};
        sort_unique(ret);
        return 0;
}

PlanNode *plan_nodes_find(const PlanNodes *p, const LedgerNode *node) {
        const PlanNode key = {.node = node};

        return p->n > 0 ? bsearch(&key, p->nodes, p->n, sizeof key, compare_nodes) : NULL;
}
