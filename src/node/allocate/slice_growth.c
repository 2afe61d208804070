/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/slice_growth.h"

#include <errno.h>

#include "base/log.h"
#include "base/minmax.h"
#include "node/allocate/card_in_use.h"
#include "share/growth.h"

void slice_growth_done(SliceGrowth *g) {
        free(g->seen);
        free(g->mine);
        *g = (SliceGrowth){.enabled = false};
}

int slice_growth_observe(SliceGrowth *g, Str annotation, bool *ret_changed) {
        char *copy = NULL;

        *ret_changed = !str_eq(str_from(g->seen), annotation);
        if (!*ret_changed)
                return 0;
        if (!str_is_empty(annotation)) {
                copy = str_dup(annotation);
                if (!copy)
                        return -ENOMEM;
        }
        free(g->seen);
        g->seen = copy;
        return 0;
}

bool slice_growth_is_possible(const SliceGrowth *g) {
        return g && (g->enabled || g->seen);
}

/* ---- what a slice holds ---- */

/* Units above its devices that the processes of a container hold. */
static uint32_t held_above(const NodeContext *node, const RecordContainer *c, uint32_t card, uint32_t count) {
        return node->isolation ? above_u32(isolation_held(node->isolation, node->inventory, c, card), count)
                               : 0;
}

/* The annotation as it was seen last. 0; GROWTH_E_MALFORMED or -ENOMEM, both without an entry. */
static int read_seen(const SliceGrowth *g, Arena *arena, Growth *ret) {
        return growth_read(str_from(g ? g->seen : NULL), arena, ret, NULL);
}

/* ---- sizes that rise ---- */

static bool is_mine(const SliceGrowth *g) {
        return g->mine && g->seen && strcmp(g->mine, g->seen) == 0;
}

/* What one look at a pod has given its containers beyond their sizes in force, by card. */
typedef struct Given {
        uint32_t of[DEVICE_KINDS_][CARD_INDEX_MAX + 1];
} Given;

static uint32_t part_of(uint32_t size, uint32_t limit, uint32_t cards) {
        return above_u32(size, limit) / (cards > 0 ? cards : 1);
}

/* The smallest permit of the container's cards. */
static GrowthSize permitted(const Growth *seen, const RosterPod *pod, const RecordContainer *c,
                            const ResizeLimit *l) {
        GrowthSize least = {UINT32_MAX, UINT32_MAX};
        uint32_t card, count;
        size_t at = 0;

        while (device_set_next_card(&c->given[DEVICE_MEM], &at, &card, &count)) {
                const GrowthEntry *e = growth_find(seen, str_from(pod->uid), l->index, card);

                if (!e)
                        return (GrowthSize){0, 0};
                least = growth_smaller(least, e->size);
        }
        return at > 0 ? least : (GrowthSize){0, 0};
}

/* Whether its cards have equal parts of the limit: a size that is not the limit is divided
 * equally. */
static bool has_equal_parts(const RecordContainer *c, const ResizeLimit *l) {
        uint32_t card, count;
        size_t at = 0;

        while (device_set_next_card(&c->given[DEVICE_MEM], &at, &card, &count))
                if ((uint64_t) count * l->cards != l->mem)
                        return false;
        return true;
}

/* Whether each card of the container has so much beside what is held, may be held and was given
 * there. *ret: the first one that has not. */
static bool has_room(const NodeContext *node, DeviceKind kind, const RosterPod *pod, const RecordContainer *c,
                     const Given *given, uint32_t more, uint32_t *ret) {
        const DeviceSet *set = &c->given[kind];
        uint32_t count;
        size_t at = 0;

        while (device_set_next_card(set, &at, ret, &count)) {
                CardInUse use = card_in_use(node, kind, *ret, str_from(pod->uid), set);

                if (use.devices + use.above + given->of[kind][*ret] + more >
                    card_in_use_capacity(node, kind, *ret))
                        return false;
        }
        return true;
}

static void give(const RecordContainer *c, DeviceKind kind, uint32_t more, Given *given) {
        uint32_t card, count;
        size_t at = 0;

        while (device_set_next_card(&c->given[kind], &at, &card, &count))
                given->of[kind][card] += more;
}

/* Takes what is permitted for each card, or says why it has to wait. */
static bool take(const NodeContext *node, DeviceKind kind, const RosterPod *pod, const RecordContainer *c,
                 const ResizeLimit *l, uint32_t more, Given *given, Fault *why) {
        uint32_t card = 0;

        if (kind == DEVICE_MEM && !has_equal_parts(c, l))
                return fault_set(why, false,
                                 "growth of container %u is permitted, but its cards have unequal parts of "
                                 "its limit",
                                 l->index);
        if (!has_room(node, kind, pod, c, given, more, &card))
                return fault_set(
                        why, false,
                        "growth of container %u is permitted, but gpu%u of the node has no %s for it "
                        "yet",
                        l->index, card, kind == DEVICE_MEM ? "room" : "compute");
        give(c, kind, more, given);
        return true;
}

/* Cuts one container's wanted size to what is in force, or is permitted and has room. mine: permits
 * that no other program can change any more. Returns whether it was cut, with the reason. */
static bool cut_one(const NodeContext *node, const RosterPod *pod, const Record *record, const ResizeLimit *l,
                    const Growth *mine, ResizeSize *w, Given *given, Fault *why) {
        const RecordContainer *c = record_container(record, l->name);
        ResizeSize now = resizable_in_force(record, l), asked = *w;
        uint32_t mem = max_u32(now.mem, l->mem), core = max_u32(now.core, l->core);
        GrowthSize permit = c ? permitted(mine, pod, c, l) : (GrowthSize){0, 0};

        w->mem = min_u32(asked.mem, max_u32(mem, l->mem + permit.mem * l->cards));
        w->core = min_u32(asked.core, max_u32(core, l->core + permit.core));
        if (w->mem < asked.mem || w->core < asked.core)
                (void) fault_set(why, 0,
                                 "the scheduler has not permitted what container %u asks for above its "
                                 "limit; its Events say why",
                                 l->index);
        if (w->core > core && !take(node, DEVICE_CORE, pod, c, l, w->core - core, given, why))
                w->core = core;
        if (w->mem > mem && !take(node, DEVICE_MEM, pod, c, l, part_of(w->mem, mem, l->cards), given, why))
                w->mem = mem;
        return w->mem < asked.mem || w->core < asked.core;
}

bool slice_growth_cut(const SliceGrowth *g, const NodeContext *node, const RosterPod *pod,
                      const Record *record, Resizable *all, Fault *why) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Growth mine = {.serial = 0};
        Given given = {.of = {{0}}};
        bool cut = false;

        if (!slice_growth_is_possible(g))
                return false;
        if (g->enabled && is_mine(g))
                (void) read_seen(g, &arena, &mine); /* else there is no permit */
        for (size_t i = 0; i < all->n; i++) {
                Fault fault = FAULT_NULL;

                if (!cut_one(node, pod, record, &all->limits[i], &mine, &all->wanted[i], &given, &fault))
                        continue;
                if (!cut)
                        *why = fault;
                cut = true;
        }
        return cut;
}

/* ---- the annotation ---- */

static GrowthSize above_limit(ResizeSize size, const ResizeLimit *l) {
        return (GrowthSize){part_of(size.mem, l->mem, l->cards), part_of(size.core, l->core, l->cards)};
}

/* Whether the agent would give this container a larger size: slice_resize.c refuses the others. */
static bool may_grow(const NodeContext *node, const RosterPod *pod, const RosterContainer *c) {
        return node->growth && node->growth->enabled && node->isolation && !pod->terminating &&
               share_mode_is_isolated(node->inventory->mode) &&
               (!c->not_isolated || node->isolation->ignores_disable);
}

/* What an entry's slice has, wants and holds. All zero for a container that is not there, or does
 * not have the card. */
static GrowthUse use_of(const NodeContext *node, const RosterPod *pod, const GrowthEntry *e) {
        const Record *record = records_find(node->records, e->uid);
        GrowthUse use = {.held = {0, 0}};
        const RecordContainer *c;
        Resizable all;

        resizable_find(pod, record, true, &all);
        for (size_t i = 0; i < all.n; i++)
                all.wanted[i] = resizable_in_force(record, &all.limits[i]);
        (void) resize_request_read(str_from(pod->resize[0]), str_from(pod->resize[1]), all.limits, all.n,
                                   all.wanted, NULL); /* a refusal leaves what is in force */
        for (size_t i = 0; i < all.n; i++) {
                const ResizeLimit *l = &all.limits[i];

                if (l->index != e->container)
                        continue;
                c = record ? record_container(record, l->name) : NULL;
                if (c && c->given[DEVICE_MEM].n > 0 && device_set_count(&c->given[DEVICE_MEM], e->card) == 0)
                        return use; /* the container does not have this card */
                use.in_force = above_limit(resizable_in_force(record, l), l);
                use.wanted =
                        may_grow(node, pod, all.containers[i]) ? above_limit(all.wanted[i], l) : use.in_force;
                use.permit.mem = c ? record_mem_above(c, e->card) : 0;
                if (c && c->started)
                        use.held.mem = held_above(node, c, e->card,
                                                  device_set_count(&c->given[DEVICE_MEM], e->card));
        }
        return use;
}

/* Adds empty entries for what records have or permit above limits, where the annotation was
 * lost. */
static int add_records(const NodeContext *node, Arena *arena, Growth *growth) {
        int r = 0;

        for (const RosterPod *pod = node->roster->pods; pod && r == 0; pod = pod->hh.next) {
                const Record *record = pod->grant ? records_find(node->records, str_from(pod->uid)) : NULL;
                Resizable all = {.n = 0};

                if (record)
                        resizable_find(pod, record, true, &all);
                for (size_t i = 0; i < all.n; i++) {
                        GrowthSize size =
                                above_limit(resizable_in_force(record, &all.limits[i]), &all.limits[i]);
                        const RecordContainer *c = record_container(record, all.limits[i].name);
                        bool is_above = size.mem > 0 || size.core > 0 || (c && c->permit_mem > 0);
                        uint32_t card, count;
                        size_t at = 0;

                        while (r == 0 && is_above &&
                               device_set_next_card(&c->given[DEVICE_MEM], &at, &card, &count))
                                r = growth_raise(growth, arena,
                                                 &(GrowthEntry){.uid = str_from(pod->uid),
                                                                .container = all.limits[i].index,
                                                                .card = card});
                }
        }
        return r;
}

typedef struct Changes {
        bool differs, takes, waits, holds;
} Changes;

/* An entry of a pod that is gone stays while its record does: its processes may hold all of it. */
static void update_entry(const NodeContext *node, GrowthEntry *e, Changes *c) {
        const RosterPod *pod = roster_find(node->roster, e->uid);
        GrowthSize keep = {0, 0};

        if (pod && pod->grant) {
                GrowthUse use = use_of(node, pod, e);

                keep = growth_keep(e->size, &use);
                c->takes |= growth_may_take(keep, &use);
                c->waits |= min_u32(use.held.mem, keep.mem) > max_u32(use.in_force.mem, use.wanted.mem);
        } else if (records_find(node->records, e->uid))
                keep = e->size;
        c->differs |= !growth_is_same(keep, e->size);
        c->holds |= keep.mem > 0 || keep.core > 0;
        e->size = keep;
}

/* What the entries leave of the permit of a container, units of all its cards. */
static uint32_t permit_left(const NodeContext *node, const RosterPod *pod, const ResizeLimit *l,
                            const Growth *growth) {
        uint32_t most = 0;

        for (size_t i = 0; i < growth->n; i++) {
                const GrowthEntry *e = &growth->list[i];
                GrowthUse use;

                if (e->container != l->index || !str_eq(e->uid, str_from(pod->uid)))
                        continue;
                use = use_of(node, pod, e);
                most = max_u32(most, growth_permit(e->size, &use).mem);
        }
        return most > 0 ? l->mem + most * l->cards : 0;
}

/* Lowers the permits of the records before the annotation falls. A permit that is too large, where
 * a file could not be written, counts up to the counters. */
static void lower_permits(const NodeContext *node, const Growth *growth, Changes *c) {
        for (const RosterPod *pod = node->roster->pods; pod; pod = pod->hh.next) {
                Record *record = pod->grant ? records_find(node->records, str_from(pod->uid)) : NULL;
                Resizable all = {.n = 0};
                Fault fault = FAULT_NULL;

                if (!record || !record->saved)
                        continue; /* it is saved by what has changed it */
                resizable_find(pod, record, true, &all);
                for (size_t i = 0; i < all.n; i++)
                        record_set_permit(record, all.limits[i].name,
                                          permit_left(node, pod, &all.limits[i], growth));
                if (records_save(node->records, record, &fault) == 0)
                        continue;
                log_warning("%s", fault.text);
                c->waits = true;
        }
}

int slice_growth_plan(SliceGrowth *g, const NodeContext *node, usec_t now, Buf *ret, bool *ret_waits) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Changes c = {.differs = false};
        Growth growth;
        int r = growth_read(str_from(g->seen), &arena, &growth, NULL);

        *ret_waits = false;
        c.differs = r > 0 || (g->enabled && !g->seen);
        g->serial = max_u64(max_u64(g->serial, growth.serial), growth.serial == 0 ? now : 0);
        if (r >= 0)
                r = add_records(node, &arena, &growth);
        if (r < 0)
                return r;
        for (size_t i = 0; i < growth.n; i++)
                update_entry(node, &growth.list[i], &c);
        lower_permits(node, &growth, &c);
        *ret_waits = c.waits;
        if (!g->enabled && !c.holds && !c.differs)
                return g->seen != NULL; /* nothing is charged, and nothing may be */
        if (!c.differs && (!c.takes || !g->enabled || is_mine(g)))
                return 0;
        growth.serial = g->serial + 1;
        growth_write(&growth, ret);
        free(g->mine);
        g->mine = ret->broken ? NULL : str_dup(buf_str(ret));
        return g->mine ? 1 : -ENOMEM;
}
