/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/account.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/rm/rm.h"

struct SimAccountEntry {
        uint32_t card;
        uint64_t id;
        char path[SIM_CGROUP_PATH];
        uint64_t soft, hard, used;
};

/* ---- entries ---- */

static SimAccountEntry *find_entry(SimAccount *a, uint32_t card, uint64_t id) {
        for (size_t i = 0; i < a->n; i++)
                if (a->entries[i].card == card && a->entries[i].id == id)
                        return &a->entries[i];
        return NULL;
}

/* The path of the cgroup that is `level` levels above the leaf: how many of the bytes. */
static size_t path_length(const SimCgroup *g, size_t level) {
        size_t len = strlen(g->path);

        while (level > 0 && len > 0)
                if (g->path[--len] == '/')
                        level--;
        return len;
}

/* A cgroup without an entry takes that of a removed one, as a new structure takes the address of
 * one that was freed. */
static SimAccountEntry *inherit_entry(SimAccount *a, uint32_t card, const SimCgroup *g, size_t level) {
        uint64_t removed;

        for (size_t i = 0; a->o.is_gone && i < a->n; i++) {
                SimAccountEntry *e = &a->entries[i];

                if (e->card != card || e->id >= g->ids[level] || !a->o.is_gone(a->o.data, e->path, e->id))
                        continue;
                removed = e->id;
                for (size_t k = 0; k < a->n; k++) /* the address is the same on each card */
                        if (a->entries[k].id == removed) {
                                a->entries[k].id = g->ids[level];
                                memcpy(a->entries[k].path, g->path, sizeof g->path);
                                a->entries[k].path[path_length(g, level)] = '\0';
                        }
                return e;
        }
        return NULL;
}

static SimAccountEntry *entry_at(SimAccount *a, uint32_t card, const SimCgroup *g, size_t level) {
        SimAccountEntry *e = find_entry(a, card, g->ids[level]);

        return e ? e : inherit_entry(a, card, g, level);
}

/* memacctLimitsForGroupLocked() */
static SimAccountEntry *nearest_entry(SimAccount *a, uint32_t card, const SimCgroup *g) {
        SimAccountEntry *e = NULL;

        for (size_t level = 0; level < g->n && !e; level++)
                e = entry_at(a, card, g, level);
        return e;
}

static SimAccountEntry *add_entry(SimAccount *a, uint32_t card, const SimCgroup *g, size_t level) {
        SimAccountEntry *e;

        if (a->n == a->room) {
                size_t room = a->room * 2 + 16;

                e = reallocarray(a->entries, room, sizeof *e);
                if (!e)
                        return NULL;
                a->entries = e;
                a->room = room;
        }
        e = &a->entries[a->n++];
        *e = (SimAccountEntry){.card = card, .id = g->ids[level], .hard = UINT64_MAX};
        memcpy(e->path, g->path, path_length(g, level));
        return e;
}

static bool is_initialised(const SimAccount *a, uint32_t card) {
        return card < SIM_LIMITS_MAX && (!a->o.forgets || a->open[card] > 0);
}

/* ---- charges ---- */

/* Charged to `group`: of MISC an entry, of DMEM the caller's cgroup. */
static uint32_t new_charge(SimAccount *a, uint32_t card, const SimCgroup *group, uint64_t bytes,
                           SimCharge **ret) {
        SimCharge *c = malloc(sizeof *c);

        if (!c)
                return RM_ERR_NO_MEMORY;
        *c = (SimCharge){
                .account = a, .card = card, .epoch = a->epoch[card], .bytes = bytes, .group = *group};
        *ret = c;
        return RM_OK;
}

static uint32_t charge_misc(SimAccount *a, uint32_t card, const SimCgroup *g, uint64_t bytes,
                            SimCharge **ret) {
        SimAccountEntry *e = nearest_entry(a, card, g);
        SimCgroup group = {.n = 1};
        uint32_t status;

        if (!e)
                return RM_OK;
        if (bytes > e->hard - e->used)
                return RM_ERR_HARD_LIMIT_EXCEEDED;
        group.ids[0] = e->id;
        status = new_charge(a, card, &group, bytes, ret);
        if (status == RM_OK)
                e->used += bytes;
        return status;
}

static uint64_t used_at(SimAccount *a, uint32_t card, const SimCgroup *g, size_t level) {
        const SimAccountEntry *e = find_entry(a, card, g->ids[level]);

        return e ? e->used : 0;
}

static void change_dmem(SimAccount *a, uint32_t card, const SimCgroup *g, uint64_t bytes, bool more) {
        for (size_t level = 0; level < g->n; level++) {
                SimAccountEntry *e = find_entry(a, card, g->ids[level]);

                e->used = more ? e->used + bytes : e->used - bytes;
                a->o.tell(a->o.data, card, g->path, path_length(g, level), e->used);
        }
}

/* dmem_cgroup_try_charge() of the kernel: by the cgroup of `current`, and all above it. */
static uint32_t charge_dmem(SimAccount *a, uint32_t card, const SimCgroup *g, uint64_t bytes,
                            SimCharge **ret) {
        uint32_t status;

        for (size_t level = 0; level < g->n; level++) {
                uint64_t limit = a->o.limit(a->o.data, card, g->path, path_length(g, level));
                uint64_t used = used_at(a, card, g, level);

                if (used > limit || bytes > limit - used)
                        return RM_ERR_HARD_LIMIT_EXCEEDED;
                if (!find_entry(a, card, g->ids[level]) && !add_entry(a, card, g, level))
                        return RM_ERR_NO_MEMORY;
        }
        status = new_charge(a, card, g, bytes, ret);
        if (status == RM_OK)
                change_dmem(a, card, g, bytes, true);
        return status;
}

uint32_t sim_account_charge(SimAccount *a, uint32_t card, const SimCgroup *creator, const SimCgroup *current,
                            uint64_t bytes, SimCharge **ret) {
        *ret = NULL;
        if (!creator && a->o.counts_orphans)
                creator = current;
        if (a->o.kind == SIM_LIMITS_NONE || !creator || !is_initialised(a, card))
                return RM_OK;
        if (a->o.kind == SIM_LIMITS_MISC)
                return charge_misc(a, card, creator, bytes, ret);
        return current ? charge_dmem(a, card, current, bytes, ret) : RM_OK;
}

/* memacctReleaseChargeInternal(): a charge of an entry that is gone ends without effect. */
void sim_account_release(SimCharge *c) {
        SimAccountEntry *e;

        if (!c)
                return;
        e = c->group.n > 0 ? find_entry(c->account, c->card, c->group.ids[0]) : NULL;
        if (e && c->epoch == c->account->epoch[c->card]) {
                if (c->account->o.kind == SIM_LIMITS_DMEM)
                        change_dmem(c->account, c->card, &c->group, c->bytes, false);
                else
                        e->used -= c->bytes;
        }
        free(c);
}

/* ---- limits ---- */

uint32_t sim_account_set(SimAccount *a, uint32_t card, const SimCgroup *g, uint64_t soft, uint64_t hard) {
        SimAccountEntry *e;

        if (a->o.kind != SIM_LIMITS_MISC)
                return RM_ERR_NOT_SUPPORTED;
        if (!is_initialised(a, card))
                return RM_ERR_OBJECT_NOT_FOUND;
        if (g->n == 0)
                return RM_ERR_NOT_SUPPORTED;
        e = entry_at(a, card, g, 0);
        if (e && e->used > hard)
                return RM_ERR_INVALID_LIMIT;
        if (!e)
                e = add_entry(a, card, g, 0);
        if (!e)
                return RM_ERR_NO_MEMORY;
        e->soft = soft;
        e->hard = hard;
        return RM_OK;
}

uint32_t sim_account_get(SimAccount *a, uint32_t card, const SimCgroup *g, SimLimit *ret) {
        const SimAccountEntry *e;

        if (a->o.kind != SIM_LIMITS_MISC)
                return RM_ERR_NOT_SUPPORTED;
        if (!is_initialised(a, card))
                return RM_ERR_INVALID_LIMIT;
        e = nearest_entry(a, card, g);
        if (!e)
                return RM_ERR_NOT_SUPPORTED;
        ret->soft = e->soft;
        ret->hard = e->hard;
        ret->used = e->used;
        return RM_OK;
}

/* ---- the card's initialisation and end ---- */

void sim_account_open(SimAccount *a, uint32_t card) {
        if (card < SIM_LIMITS_MAX)
                a->open[card]++;
}

/* memacctRemoveGpu(): the map of the card is cleared. */
void sim_account_close(SimAccount *a, uint32_t card) {
        size_t kept = 0;

        if (card >= SIM_LIMITS_MAX || --a->open[card] > 0 || !a->o.forgets)
                return;
        a->epoch[card]++;
        for (size_t i = 0; i < a->n; i++)
                if (a->entries[i].card != card)
                        a->entries[kept++] = a->entries[i];
        a->n = kept;
        if (a->o.forget)
                a->o.forget(a->o.data, card);
}

void sim_account_done(SimAccount *a) {
        free(a->entries);
        *a = (SimAccount){.n = 0};
}
