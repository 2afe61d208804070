/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/job_cards.h"

static const Grant *grant_of(const View *v, const GangMember *m) {
        const ViewPod *pod = view_pod_find(v, str_from(m->uid));

        return pod && pod->grant ? pod->grant : m->place;
}

void job_cards(const View *v, const Gangs *gangs, Str uid, const LedgerNode *node,
               bool ret[static CARD_INDEX_MAX + 1]) {
        const GangMember *self = gangs ? gang_table_find(&gangs->table, uid) : NULL;

        for (const GangMember *m = self ? self->gang->members : NULL; m; m = m->next) {
                const Grant *g = grant_of(v, m);
                const Slice *slices;
                size_t n;

                if (!g || grant_node(g) != node)
                        continue;
                slices = grant_slices(g, &n);
                for (size_t i = 0; i < n; i++)
                        ret[slices[i].card] = true;
        }
}
