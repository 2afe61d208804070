/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/fences.h"

#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "share/card_indexes.h"
#include "share/fault_join.h"
#include "share/fence_map.h"
#include "wire/annotation.h"

struct Fence {
        UT_hash_handle hh;
        uint32_t generation;
        CardIndexes cards; /* fenced by it now */
        /* What each key fenced when it was last fully understood. */
        CardIndexes good_devices, good_gpus;
        Fault wrong; /* about entries that cannot be understood; "": none */
        char *node;  /* the node's name, in `name` */
        char name[]; /* of the ConfigMap */
};

/* The cards that a key fences now. If some entry cannot be understood, also those of *good that no
 * valid entry names; otherwise updates *good. */
static CardIndexes cards_in_force(const FenceKey *r, CardIndexes *good) {
        CardIndexes cards = r->fenced;

        if (r->wrong.text[0] == '\0')
                *good = r->fenced;
        else
                for (size_t i = 0; i < ELEMENTSOF(cards.bits); i++)
                        cards.bits[i] |= good->bits[i] & ~r->sound.bits[i];
        return cards;
}

static void say_cards(const CardIndexes *cards, Buf *out) {
        card_indexes_format(cards, out);
        buf_append_str(out,
                       card_indexes_is_empty(cards) ? STR("no card is fenced by it") : STR(" fenced by it"));
}

/* ---- of a node ---- */

static Fault wrong_of(const Fences *f, Str node) {
        Fault wrong = FAULT_NULL;

        for (const Fence *i = f->by_name; i; i = i->hh.next)
                if (str_eq(str_from(i->node), node))
                        fault_join(&wrong, &i->wrong);
        return wrong;
}

/* Applies all ConfigMaps of this node together: fences go to the ledger, faults to on_judged.
 * Returns 0 or -ENOMEM. */
static int tell_node(Fences *f, Ledger *l, Str node) {
        uint32_t cards[CARD_INDEX_MAX + 1];
        Fault wrong = wrong_of(f, node);
        CardIndexes all = {0};
        size_t n = 0, before = ledger_node_n_healthy(ledger_node_find(l, node));
        int r;

        for (Fence *i = f->by_name; i; i = i->hh.next)
                if (str_eq(str_from(i->node), node))
                        card_indexes_add_all(&all, &i->cards);
        for (uint32_t card = 0; card <= CARD_INDEX_MAX; card++)
                if (card_indexes_has(&all, card))
                        cards[n++] = card;
        r = ledger_node_set_fenced(l, node, cards, n);
        if (f->on_judged)
                f->on_judged(f->userdata, node, wrong.text);
        if (f->on_room && ledger_node_n_healthy(ledger_node_find(l, node)) > before)
                f->on_room(f->room_userdata, node);
        return r;
}

static Fence *fence_ensure(Fences *f, Str name, Str node) {
        Fence *fence;

        HASH_FIND(hh, f->by_name, name.data, name.len, fence);
        if (fence)
                return fence;
        fence = calloc(1, sizeof *fence + name.len + 1 + node.len + 1);
        if (!fence)
                return NULL;
        memcpy(fence->name, name.data, name.len);
        fence->node = fence->name + name.len + 1;
        memcpy(fence->node, node.data, node.len);
        HASH_ADD_KEYPTR(hh, f->by_name, fence->name, name.len, fence);
        if (!hash_added(fence, hh)) {
                free(fence);
                return NULL;
        }
        return fence;
}

static int fence_drop(Fences *f, Ledger *l, Fence *fence) {
        int r;

        HASH_DELETE(hh, f->by_name, fence);
        r = tell_node(f, l, str_from(fence->node));
        free(fence);
        return r;
}

/* Sets fence->wrong: "configmap kube-system/NAME: data.gpus is ...: gpu0, gpu2 fenced by it".
 * Returns 0 if nothing is wrong, FENCE_E_MALFORMED if something is, or -ENOMEM. */
static int say_wrong(Fence *fence, const FenceKey *devices, const FenceKey *gpus) {
        _cleanup_buf_ Buf cards = BUF_NULL;
        Fault what = devices->wrong;

        fence->wrong = FAULT_NULL;
        fault_join(&what, &gpus->wrong);
        if (what.text[0] == '\0')
                return 0;
        say_cards(&fence->cards, &cards);
        if (buf_result(&cards) < 0)
                return -ENOMEM;
        return fault_set(&fence->wrong, FENCE_E_MALFORMED, "configmap kube-system/%s: %s: %s", fence->name,
                         what.text, cards.data);
}

static int fence_set(Fences *f, Ledger *l, const FenceMap *map, uint32_t generation, Fault *fault) {
        Fence *fence = fence_ensure(f, map->name, map->node);
        CardIndexes more;
        int r, wrong;

        if (!fence)
                return -ENOMEM;
        fence->generation = generation;
        fence->cards = cards_in_force(&map->devices, &fence->good_devices);
        more = cards_in_force(&map->gpus, &fence->good_gpus);
        card_indexes_add_all(&fence->cards, &more);
        wrong = say_wrong(fence, &map->devices, &map->gpus);
        r = tell_node(f, l, map->node);
        if (r < 0 || wrong < 0)
                return r < 0 ? r : wrong;
        return wrong > 0 ? fault_set(fault, wrong, "%s", fence->wrong.text) : 0;
}

int fences_set(Fences *f, Ledger *l, Str configmap, bool deleted, uint32_t generation, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        FenceMap map;
        Fence *fence;
        int r;

        r = fence_map_read(configmap, &arena, &map, fault);
        if (r != 0)
                return r < 0                       ? r
                       : r == FENCE_MAP_E_NOT_OURS ? FENCE_E_NOT_OURS
                                                   : fault_wrap(fault, FENCE_E_MALFORMED, "configmap");
        if (!deleted)
                return fence_set(f, l, &map, generation, fault);
        HASH_FIND(hh, f->by_name, map.name.data, map.name.len, fence);
        return fence ? fence_drop(f, l, fence) : 0;
}

size_t fences_sweep(Fences *f, Ledger *l, uint32_t generation) {
        size_t dropped = 0;
        Fence *fence, *next;

        HASH_ITER(hh, f->by_name, fence, next) {
                if (fence->generation == generation)
                        continue;
                (void) fence_drop(f, l, fence); /* taking fences away needs no memory */
                dropped++;
        }
        return dropped;
}

void fences_done(Fences *f, Ledger *l) {
        f->on_judged = NULL;
        f->on_room = NULL;
        (void) fences_sweep(f, l, UINT32_MAX); /* no list has this generation: all go */
}

Str fences_name(const Fences *f, Str node, uint32_t card) {
        for (const Fence *i = f->by_name; i; i = i->hh.next)
                if (str_eq(str_from(i->node), node) && card_indexes_has(&i->cards, card))
                        return str_from(i->name);
        return (Str){NULL, 0};
}

void fences_format_wrong(const Fences *f, Str node, Buf *out) {
        Fault wrong = wrong_of(f, node);

        buf_append_str(out, str_from(wrong.text));
}
