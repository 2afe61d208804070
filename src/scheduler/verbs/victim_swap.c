/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/verbs/victim_swap.h"

#include <errno.h>

/* What one pod requests of one resource. */
typedef struct Part {
        PodResource of;
        bool added; /* an added pod's; false: a left-out pod's */
} Part;

static int compare_parts(const void *a, const void *b) {
        return str_compare(((const Part *) a)->of.name, ((const Part *) b)->of.name);
}

/* The pods that the choice adds to the proposed victims, and those that it leaves out. */
typedef struct Exchange {
        const Profile **left_out, **added;
        size_t n_left_out, n_added;
        bool unknown;  /* a left-out pod is unknown, or may free more than resources */
        bool settling; /* an added pod's requests are not known yet */
} Exchange;

static bool may_leave_out(const VictimSwap *s, const Profile *pod) {
        return pod && !pod->too_large && !pod->is.holds_more && !pod->is.affine &&
               !pod->is.requests_unknown && !s->preemptor->affine;
}

/* Returns 0 or -ENOMEM. */
static int exchange_init(const VictimSwap *s, Arena *arena, Exchange *ret) {
        const VictimList *v = s->proposed;
        const VictimChoice *c = s->chosen;
        Str *chosen = arena_new(arena, Str, c->n + 1);

        *ret = (Exchange){.left_out = arena_new(arena, const Profile *, v->n + 1),
                          .added = arena_new(arena, const Profile *, c->n + 1)};
        if (!chosen || !ret->left_out || !ret->added)
                return -ENOMEM;
        for (size_t i = 0; i < c->n; i++) {
                chosen[i] = c->pods[i]->uid;
                if (victim_list_has(v, chosen[i]))
                        continue;
                ret->added[ret->n_added++] = c->pods[i];
                ret->settling |= c->pods[i]->settling;
        }
        victim_list_sort_uids(chosen, c->n);
        for (size_t i = 0; i < v->n; i++) {
                const Profile *pod;

                if (victim_list_has_uid(chosen, c->n, v->uids[i]))
                        continue;
                pod = profiles_find(s->profiles, v->uids[i]);
                ret->unknown |= !may_leave_out(s, pod);
                ret->left_out[ret->n_left_out++] = pod;
        }
        return 0;
}

static void put_parts(const Profile *const *pods, size_t n, bool added, Part *parts, size_t *n_parts) {
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < pods[i]->is.n_requests && !pods[i]->is.requests_unknown; k++)
                        parts[(*n_parts)++] = (Part){.of = pods[i]->is.requests[k], .added = added};
}

static size_t n_requests_of(const Profile *const *pods, size_t n) {
        size_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += pods[i]->is.n_requests;
        return sum;
}

/* Whether the added pods request at least as much of one resource as the left-out ones. Its parts
 * begin at parts[*at], which moves behind them. */
static bool outweighs(const Part *parts, size_t n, size_t *at) {
        int64_t left_out = 0, added = 0;
        Str name = parts[*at].of.name;
        bool overflow = false;

        for (; *at < n && str_eq(parts[*at].of.name, name); ++*at) {
                int64_t *sum = parts[*at].added ? &added : &left_out;

                overflow |= __builtin_add_overflow(*sum, parts[*at].of.milli, sum);
        }
        return !overflow && added >= left_out;
}

int victim_swap_is_allowed(const VictimSwap *s, Arena *arena, bool *ret) {
        size_t n = 0, at = 0;
        Exchange e;
        Part *parts;
        int r = exchange_init(s, arena, &e);

        if (r < 0)
                return r;
        *ret = !e.unknown && e.n_added >= e.n_left_out;
        if (!*ret || e.settling)
                return 0;
        parts = arena_new(arena, Part,
                          n_requests_of(e.left_out, e.n_left_out) + n_requests_of(e.added, e.n_added) + 1);
        if (!parts)
                return -ENOMEM;
        put_parts(e.left_out, e.n_left_out, false, parts, &n);
        put_parts(e.added, e.n_added, true, parts, &n);
        qsort(parts, n, sizeof *parts, compare_parts);
        while (*ret && at < n)
                *ret = outweighs(parts, n, &at);
        return 0;
}
