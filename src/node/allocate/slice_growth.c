/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/slice_growth.h"

#include <errno.h>

#include "base/log.h"
#include "base/minmax.h"
#include "node/allocate/card_in_use.h"
#include "share/growth.h"
#include "wire/resize_keys.h"

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

/* Units that the processes of a container hold above its devices; negative: below them. */
static int32_t held_above(const NodeContext *node, const RecordContainer *c, uint32_t card) {
        int64_t held = node->isolation ? isolation_held(node->isolation, node->inventory, c, card) : 0;

        held -= device_set_count(&c->given[DEVICE_MEM], card);
        return held < INT32_MAX ? (int32_t) held : INT32_MAX;
}

/* The annotation as it was seen last. 0; GROWTH_E_MALFORMED or -ENOMEM, both without an entry. */
static int read_seen(const SliceGrowth *g, Arena *arena, Growth *ret) {
        return growth_read(str_from(g ? g->seen : NULL), arena, ret, NULL);
}

static bool is_mine(const SliceGrowth *g) {
        return g->mine && g->seen && strcmp(g->mine, g->seen) == 0;
}

/* What the containers of one pod were given in this look beyond their sizes in force, by card. */
typedef struct Given {
        uint32_t of[DEVICE_KINDS_][CARD_INDEX_MAX + 1];
} Given;

/* The smallest permit of the container's cards. */
static GrowthSize permitted_size(const Growth *seen, const RosterPod *pod, const RecordContainer *c,
                                 const ResizeLimit *l) {
        GrowthSize least = {INT32_MAX, INT32_MAX};
        uint32_t card, count;
        size_t at = 0;

        while (device_set_next_card(&c->given[DEVICE_MEM], &at, &card, &count)) {
                const GrowthEntry *e = growth_find(seen, str_from(pod->uid), l->index, card);

                least = growth_smaller(least, e ? e->size : (GrowthSize){0, 0});
        }
        return at > 0 ? least : (GrowthSize){0, 0};
}

/* Whether the container's cards have equal parts of the limit, as any other size is divided
 * equally. */
static bool has_equal_parts(const RecordContainer *c, const ResizeLimit *l) {
        uint32_t card, count;
        size_t at = 0;

        while (device_set_next_card(&c->given[DEVICE_MEM], &at, &card, &count))
                if ((uint64_t) count * l->cards != l->mem)
                        return false;
        return true;
}

/* ---- slices that give up a part of their limits ---- */

static bool has_init(const RosterPod *pod) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (pod->containers[i].kind == CONTAINER_INIT &&
                    (pod->containers[i].mem > 0 || pod->containers[i].core > 0))
                        return true;
        return false;
}

/* Whether the agent would give this container another size: slice_resize.c refuses the others. */
static bool may_resize(const NodeContext *node, const RosterContainer *c) {
        return node->growth && node->growth->enabled && node->isolation &&
               share_mode_is_isolated(node->inventory->mode) &&
               (!c->not_isolated || node->isolation->ignores_disable);
}

/* Whether slices that grow may have what a shrink of this container frees. The scheduler does not
 * let a static pod return to its limit. An init container has its limit when the pod's sandbox
 * begins again. Cards with unequal parts have no equal parts of a smaller size. */
static bool gives_up(const NodeContext *node, const RosterPod *pod, const RosterContainer *container,
                     const RecordContainer *c, const ResizeLimit *l) {
        return may_resize(node, container) && strcmp(pod->uid, pod->api_uid) == 0 && !has_init(pod) && c &&
               c->given[DEVICE_MEM].n > 0 && has_equal_parts(c, l);
}

/* ---- room ---- */

/* A change of a container's size, for one kind of device. */
typedef struct Rise {
        DeviceKind kind;
        uint32_t from, to, limit; /* sizes of the container: in force, wanted, limit */
} Rise;

/* Units of one card in a size: its devices if the size is the limit, else an equal part. */
static uint32_t part_on(const Rise *rise, uint32_t size, uint32_t count, uint32_t cards) {
        return size == rise->limit ? count : size / cards;
}

static uint32_t rise_on(const Rise *rise, uint32_t count, uint32_t cards) {
        return above_u32(part_on(rise, rise->to, count, cards), part_on(rise, rise->from, count, cards));
}

/* Whether each card of the container has room for it beside what is held, may be held and was given
 * there. *ret: the first one that has not. Up to the limit, only slices that have grown can be in
 * the way. */
static bool has_room(const NodeContext *node, const Rise *rise, const RosterPod *pod,
                     const RecordContainer *c, const Given *given, uint32_t *ret) {
        const CardSize as = {c, rise->to != rise->limit ? rise->to : 0};
        const DeviceSet *set = &c->given[rise->kind];
        uint32_t count;
        size_t at = 0;

        while (device_set_next_card(set, &at, ret, &count)) {
                CardInUse use = card_in_use(node, rise->kind, *ret, str_from(pod->uid), set, &as);
                uint64_t sum = card_in_use_sum(use) + given->of[rise->kind][*ret];

                if (sum > card_in_use_capacity(node, rise->kind, *ret) &&
                    (rise->to > rise->limit || use.above > 0))
                        return false;
        }
        return true;
}

static void give_rise(const RecordContainer *c, const Rise *rise, Given *given) {
        uint32_t card, count, cards = device_set_count_cards(&c->given[rise->kind]);
        size_t at = 0;

        while (device_set_next_card(&c->given[rise->kind], &at, &card, &count))
                given->of[rise->kind][card] += rise_on(rise, count, cards);
}

/* Reserves a rise on each card of the container in `given`, or says why it has to wait. */
static bool take_rise(const NodeContext *node, const Rise *rise, const RosterPod *pod,
                      const RecordContainer *c, const ResizeLimit *l, Given *given, Fault *why) {
        uint32_t card = 0;

        if (rise->to <= rise->from || !c)
                return true;
        if (rise->kind == DEVICE_MEM && rise->to > rise->limit && !has_equal_parts(c, l))
                return fault_set(why, false,
                                 "growth of container %u is permitted, but its cards have unequal parts of "
                                 "its limit",
                                 l->index);
        if (!has_room(node, rise, pod, c, given, &card))
                return fault_set(
                        why, false,
                        "growth of container %u is permitted, but gpu%u of the node has no %s for it "
                        "yet",
                        l->index, card, rise->kind == DEVICE_MEM ? "room" : "compute");
        give_rise(c, rise, given);
        return true;
}

/* ---- sizes that rise ---- */

/* What a container may have above its limit, by the annotation. mine: NULL while another program
 * may still change it. */
static GrowthSize permit_for(const Growth *mine, const RosterPod *pod, const RecordContainer *c,
                             const ResizeLimit *l, bool gives) {
        if (!mine || !c)
                return gives ? GROWTH_LEAST : (GrowthSize){0, 0};
        return gives ? permitted_size(mine, pod, c, l) : growth_excess(permitted_size(mine, pod, c, l));
}

/* The requested size, at most limit and permit together; these do not lower a size in force. */
static uint32_t cut_size(uint32_t asked, uint32_t now, uint32_t limit, int64_t permit) {
        int64_t most = limit + permit;

        return most > now ? (uint32_t) (asked < most ? asked : most) : min_u32(asked, now);
}

/* Cuts one container's wanted size to what is in force, or is permitted and has room. Returns
 * whether it was cut, with the reason. */
static bool cut_one(const NodeContext *node, const RosterPod *pod, const Record *record, const ResizeLimit *l,
                    GrowthSize permit, ResizeSize *w, Given *given, Fault *why) {
        const RecordContainer *c = record_container(record, l->name);
        ResizeSize now = resizable_in_force(record, l), asked = *w;

        w->mem = cut_size(asked.mem, now.mem, l->mem, (int64_t) permit.mem * l->cards);
        w->core = cut_size(asked.core, now.core, l->core, permit.core);
        if (w->mem < asked.mem || w->core < asked.core)
                (void) fault_set(why, 0,
                                 "the scheduler has not permitted what container %u asks for above its "
                                 "%s; its Events say why, unless --grow-beyond-limits is off there",
                                 l->index,
                                 asked.mem > l->mem || asked.core > l->core ? "limit" : "size in force");
        if (!take_rise(node, &(Rise){DEVICE_CORE, now.core, w->core, l->core}, pod, c, l, given, why))
                w->core = now.core;
        if (!take_rise(node, &(Rise){DEVICE_MEM, now.mem, w->mem, l->mem}, pod, c, l, given, why))
                w->mem = now.mem;
        return w->mem < asked.mem || w->core < asked.core;
}

bool slice_growth_cut(const SliceGrowth *g, const NodeContext *node, const RosterPod *pod,
                      const Record *record, Resizable *all, Fault *why) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Growth mine = {.serial = 0};
        Given given = {.of = {{0}}};
        bool cut = false, is_known;

        if (!g)
                return false;
        is_known = g->enabled && is_mine(g) && read_seen(g, &arena, &mine) == 0; /* else there is no permit */
        for (size_t i = 0; i < all->n; i++) {
                const ResizeLimit *l = &all->limits[i];
                const RecordContainer *c = record_container(record, l->name);
                GrowthSize permit = permit_for(is_known ? &mine : NULL, pod, c, l,
                                               gives_up(node, pod, all->containers[i], c, l));
                Fault fault = FAULT_NULL;

                if (!cut_one(node, pod, record, l, permit, &all->wanted[i], &given, &fault))
                        continue;
                if (!cut)
                        *why = fault;
                cut = true;
        }
        return cut;
}

/* ---- the annotation ---- */

static int32_t part_of(uint32_t size, uint32_t limit, uint32_t cards) {
        return (int32_t) (((int64_t) size - limit) / (cards > 0 ? cards : 1));
}

/* The part of a size above the limit, for one card. gives: it may be negative, because what a
 * shrink frees is given up. */
static GrowthSize above_limit(ResizeSize size, const ResizeLimit *l, bool gives) {
        GrowthSize above = {part_of(size.mem, l->mem, l->cards), part_of(size.core, l->core, l->cards)};

        return gives ? above : growth_excess(above);
}

/* The same for what the container's processes hold of a card. */
static GrowthSize held_of(const NodeContext *node, const RecordContainer *c, uint32_t card, bool gives) {
        GrowthSize held = {c && c->started ? held_above(node, c, card) : INT32_MIN, INT32_MIN};

        return gives ? held : growth_excess(held);
}

/* What an entry's slice has, wants and holds. All zero for a container that is not there, or does
 * not have the card. */
static GrowthUse use_of(const NodeContext *node, const RosterPod *pod, const GrowthEntry *e) {
        const Record *record = records_find(node->records, e->uid);
        GrowthUse use = {.held = {0, 0}};
        const RecordContainer *c;
        Resizable all;
        bool gives;

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
                gives = gives_up(node, pod, all.containers[i], c, l);
                use.in_force = above_limit(resizable_in_force(record, l), l, gives);
                use.wanted = may_resize(node, all.containers[i]) && !pod->terminating
                                     ? above_limit(all.wanted[i], l, gives)
                                     : use.in_force;
                use.permit.mem = c ? (int32_t) record_mem_above(c, e->card) : 0;
                use.held = held_of(node, c, e->card, gives);
        }
        return use;
}

/* Adds empty entries for what records have or permit above limits, where the annotation was lost,
 * and for what they have below them. *ret_excess: how many have no room. */
static int add_records(const NodeContext *node, Arena *arena, Growth *growth, size_t *ret_excess) {
        int r = 0;

        for (const RosterPod *pod = node->roster->pods; pod && r == 0; pod = pod->hh.next) {
                const Record *record = pod->grant ? records_find(node->records, str_from(pod->uid)) : NULL;
                Resizable all = {.n = 0};

                if (record)
                        resizable_find(pod, record, true, &all);
                for (size_t i = 0; i < all.n; i++) {
                        GrowthSize size =
                                above_limit(resizable_in_force(record, &all.limits[i]), &all.limits[i], true);
                        const RecordContainer *c = record_container(record, all.limits[i].name);
                        bool is_other = c && (c->permit_mem > 0 || size.mem != 0 || size.core != 0);
                        uint32_t card, count;
                        size_t at = 0;

                        while (r == 0 && is_other &&
                               device_set_next_card(&c->given[DEVICE_MEM], &at, &card, &count)) {
                                r = growth_ensure(growth, arena, str_from(pod->uid), all.limits[i].index,
                                                  card);
                                *ret_excess += r == -E2BIG;
                                r = r == -E2BIG ? 0 : r;
                        }
                }
        }
        return r;
}

typedef struct Changes {
        bool differs, takes, waits, holds;
} Changes;

/* An entry of a pod that is gone stays while its record does: its processes may hold all of it.
 * is_lost: the annotation was lost, so that nothing tells what was permitted. */
static void update_entry(const NodeContext *node, GrowthEntry *e, bool is_lost, Changes *c) {
        const RosterPod *pod = roster_find(node->roster, e->uid);
        GrowthSize keep = {0, 0};

        if (pod && pod->grant) {
                GrowthUse use = use_of(node, pod, e);

                keep = is_lost ? growth_permit(use.permit, &use) : growth_keep(e->size, &use);
                c->takes |= growth_may_take(keep, &use);
                c->waits |= growth_smaller(use.held, keep).mem > growth_larger(use.in_force, use.wanted).mem;
        } else if (records_find(node->records, e->uid))
                keep = e->size;
        c->differs |= !growth_is_same(keep, e->size);
        c->holds |= keep.mem > 0 || keep.core > 0;
        e->size = keep;
}

/* The permit that the entries leave to a container, units of all its cards; 0: none. */
static uint32_t permit_left(const NodeContext *node, const RosterPod *pod, const ResizeLimit *l,
                            const Growth *growth) {
        int32_t most = 0;

        for (size_t i = 0; i < growth->n; i++) {
                const GrowthEntry *e = &growth->list[i];
                GrowthUse use;

                if (e->container != l->index || !str_eq(e->uid, str_from(pod->uid)))
                        continue;
                use = use_of(node, pod, e);
                most = growth_larger((GrowthSize){most, 0}, growth_permit(e->size, &use)).mem;
        }
        return most > 0 ? l->mem + (uint32_t) most * l->cards : 0;
}

/* Lowers the permits of the records before the annotation falls. A permit that is too large, where
 * a file could not be written, counts up to the counters. */
static void lower_permits(const NodeContext *node, const Growth *growth, Changes *c) {
        for (const RosterPod *pod = node->roster->pods; pod; pod = pod->hh.next) {
                Record *record = pod->grant ? records_find(node->records, str_from(pod->uid)) : NULL;
                Resizable all = {.n = 0};
                Fault fault = FAULT_NULL;

                if (!record || !record->saved)
                        continue; /* a changed record is saved by the code that changed it */
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

/* 0 or -E2BIG, which is logged once until there is room. excess: of add_records(). */
static int check_count(SliceGrowth *g, const NodeContext *node, size_t n, size_t excess) {
        if (excess > 0 && !g->told_full)
                log_warning("node %s: annotation " ANNOTATION_GROWTH " needs %zu entries and has %d at most: "
                            "until fewer slices have another size than their limits, none grows and none "
                            "returns to its limit",
                            node->roster->node_name, n + excess, GROWTH_MAX);
        g->told_full = excess > 0;
        return excess > 0 ? -E2BIG : 0;
}

int slice_growth_plan(SliceGrowth *g, const NodeContext *node, usec_t now, Buf *ret, bool *ret_waits) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Changes c = {.differs = false};
        Growth growth;
        size_t excess = 0;
        int r = growth_read(str_from(g->seen), &arena, &growth, NULL);

        *ret_waits = false;
        c.differs = r > 0 || (g->enabled && !g->seen);
        g->serial = max_u64(max_u64(g->serial, growth.serial), growth.serial == 0 ? now : 0);
        if (r >= 0)
                r = add_records(node, &arena, &growth, &excess);
        if (r == 0)
                r = check_count(g, node, growth.n, excess);
        if (r < 0)
                return r;
        for (size_t i = 0; i < growth.n; i++)
                update_entry(node, &growth.list[i], growth.serial == 0, &c);
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
