/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "local/store_text.h"

/* RFC 7386 on text. Members of the target that the patch does not name are copied as they stand; the members
 * of the patch are sorted once per object, so that a hostile patch costs n log n and not n squared. Nesting
 * is bounded by what store_admit() lets in (JSON_MAX_DEPTH). */

typedef struct Merge {
        Arena *arena;
        Buf *out;
} Merge;

typedef struct PatchMember {
        StoreMember member;
        size_t order; /* where it stands in the patch */
        bool used;
} PatchMember;

static int merge_value(Merge *m, Str target, Str patch);

static int by_key(const void *a, const void *b) {
        return str_compare(((const PatchMember *) a)->member.key, ((const PatchMember *) b)->member.key);
}

static int by_order(const void *a, const void *b) {
        size_t x = ((const PatchMember *) a)->order, y = ((const PatchMember *) b)->order;

        return (x > y) - (x < y);
}

static void write_key(Merge *m, bool *more, Str key) {
        if (*more)
                buf_append_char(m->out, ',');
        *more = true;
        buf_append_char(m->out, '"');
        buf_append_str(m->out, key);
        buf_append(m->out, "\":", 2);
}

static int merge_member(Merge *m, bool *more, const StoreMember *patch, Str target) {
        if (store_is_null(patch->value))
                return 0;
        write_key(m, more, patch->key);
        return merge_value(m, target, patch->value);
}

static int patch_members(Merge *m, Str patch, PatchMember **ret, size_t *ret_n) {
        StoreMember *members;
        PatchMember *sorted;
        size_t n;
        int r;

        r = store_members(patch, m->arena, &members, &n);
        if (r < 0)
                return r;
        sorted = arena_new(m->arena, PatchMember, n + 1);
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sorted[i] = (PatchMember){.member = members[i], .order = i};
        qsort(sorted, n, sizeof *sorted, by_key);
        *ret = sorted;
        *ret_n = n;
        return 0;
}

static int merge_object(Merge *m, Str target, Str patch) {
        StoreMember *old;
        PatchMember *news = NULL;
        size_t n_old, n_news = 0;
        bool more = false;
        int r;

        r = store_members(target, m->arena, &old, &n_old);
        if (r == 0)
                r = patch_members(m, patch, &news, &n_news);
        if (r < 0)
                return r;
        buf_append_char(m->out, '{');
        for (size_t i = 0; r == 0 && i < n_old; i++) {
                PatchMember wanted = {.member.key = old[i].key};
                PatchMember *p = bsearch(&wanted, news, n_news, sizeof *news, by_key);

                if (p) {
                        p->used = true;
                        r = merge_member(m, &more, &p->member, old[i].value);
                } else {
                        write_key(m, &more, old[i].key);
                        buf_append_str(m->out, old[i].value);
                }
        }
        if (n_news > 1)
                qsort(news, n_news, sizeof *news, by_order);
        for (size_t i = 0; r == 0 && i < n_news; i++)
                if (!news[i].used)
                        r = merge_member(m, &more, &news[i].member, (Str){NULL, 0});
        buf_append_char(m->out, '}');
        return r;
}

static int merge_value(Merge *m, Str target, Str patch) {
        if (store_is_object(patch))
                return merge_object(m, target, patch);
        buf_append_str(m->out, patch);
        return 0;
}

int store_merge_patch(Str target, Str patch, Arena *arena, Buf *out) {
        Merge m = {.arena = arena, .out = out};
        int r = merge_value(&m, target, patch);

        return r < 0 ? r : buf_result(out);
}
