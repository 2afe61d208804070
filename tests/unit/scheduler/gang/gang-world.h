/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A ledger with gangs, for tests that say by hand what happens one after another. */

#include "gang-hooks.h"
#include "share/ledger_check.h"

typedef struct World {
        Ledger *ledger;
        Gangs gs;
        usec_t now;
        char why[GANGS_WHY_MAX];
} World;

static inline void world_init(World *w, unsigned n_nodes, unsigned cards) {
        *w = (World){.now = 100 * USEC_PER_SEC};
        ASSERT_OK(ledger_new(&w->ledger));
        for (unsigned i = 0; i < n_nodes; i++) {
                char name[8];

                (void) snprintf(name, sizeof name, "n%u", i + 1);
                kit_node(w->ledger, name, cards, 10);
        }
        gangs_init(&w->gs, w->ledger,
                   &(GangsHooks){.release = on_release,
                                 .give_back = on_give_back,
                                 .wake = on_wake,
                                 .tell = on_tell,
                                 .on_room = on_room,
                                 .userdata = &w->gs});
        gangs_know_scheduler(&w->gs, STR("ours"), w->now);
        gangs_set_leading(&w->gs, true, w->now);
        asked[0] = told[0] = rooms[0] = '\0';
        patches_stay = false;
}

static inline uint64_t all_used(const Ledger *l) {
        uint64_t sum = 0;

        for (size_t i = 0; i < ledger_n_nodes(l); i++)
                for (size_t k = 0; k < ledger_node_n_cards(ledger_node_at(l, i)); k++)
                        sum += ledger_node_cards(ledger_node_at(l, i))[k].used;
        return sum;
}

static inline void world_done(World *w) {
        ASSERT_TRUE(ledger_check(w->ledger));
        gangs_done(&w->gs);
        ASSERT_INT(all_used(w->ledger), 0);
        ledger_free(w->ledger);
}

static inline const char *asked_now(World *w) {
        static char copy[sizeof asked];

        (void) gangs_step(&w->gs, w->now);
        (void) snprintf(copy, sizeof copy, "%s", asked);
        asked[0] = '\0';
        return copy;
}

static inline GangState state_of_gang(const World *w, const char *name) {
        const Gang *g = gang_table_find_gang(&w->gs.table, STR("default"), str_from(name));

        ASSERT_TRUE(g);
        return g->state;
}

/* Asks about all nodes, or the one of this name. Returns the node that is taken, "free" or "no". */
static inline const char *filter(World *w, const char *uid, const char *only) {
        GangsNode nodes[8];
        size_t n = 0;
        GangsVerdict v;

        for (size_t i = 0; i < ledger_n_nodes(w->ledger); i++)
                if (!only || str_eq(ledger_node_name(ledger_node_at(w->ledger, i)), str_from(only)))
                        nodes[n++] = (GangsNode){.node = ledger_node_at(w->ledger, i)};
        v = gangs_filter(&w->gs,
                         &(GangsPod){.uid = str_from(uid),
                                     .namespace_ = STR("default"),
                                     .gang = STR("g"),
                                     .min = STR("2")},
                         nodes, n, w->now, w->why);
        if (v == GANGS_FREE)
                return "free";
        for (size_t i = 0; i < n && v == GANGS_TAKE; i++)
                if (nodes[i].take)
                        return ledger_node_name(nodes[i].node).data;
        return "no";
}

static inline GangsVerdict bind_to(World *w, const char *uid, const char *node) {
        GangsVerdict v = gangs_bind(&w->gs, str_from(uid), str_from(node), w->now, w->why);

        if (v == GANGS_HOLD)
                gangs_held(&w->gs, str_from(uid), w->now);
        return v;
}

#define ASSERT_TEXT(a, b) ASSERT_STR(str_from(a), str_from(b))
