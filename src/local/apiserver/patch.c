/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "local/apiserver/text.h"
#include "wire/json.h"

/* RFC 7386 on text. Members of the target that the patch does not name are copied unchanged. The
 * members of the patch are sorted once per object, and the elements of a merged list once per list.
 * So a hostile patch costs n log n, not n squared. store_admit() bounds the nesting
 * (JSON_MAX_DEPTH). */

typedef struct Merge {
        Arena *arena;
        Buf *out;
        bool strategic;
} Merge;

typedef struct PatchMember {
        StoreMember member;
        size_t order; /* its position in the patch */
        bool used;
} PatchMember;

static int merge_value(Merge *m, Str key, Str target, Str patch);

static int by_key(const void *a, const void *b) {
        return str_compare(((const PatchMember *) a)->member.key, ((const PatchMember *) b)->member.key);
}

static int by_order(const void *a, const void *b) {
        size_t x = ((const PatchMember *) a)->order, y = ((const PatchMember *) b)->order;

        return (x > y) - (x < y);
}

static void separate_members(Merge *m, bool *more) {
        if (*more)
                buf_append_char(m->out, ',');
        *more = true;
}

static void write_key(Merge *m, bool *more, Str key) {
        separate_members(m, more);
        buf_append_char(m->out, '"');
        buf_append_str(m->out, key);
        buf_append(m->out, "\":", 2);
}

static int merge_member(Merge *m, bool *more, const StoreMember *patch, Str target) {
        if (store_is_null(patch->value))
                return 0;
        write_key(m, more, patch->key);
        return merge_value(m, patch->key, target, patch->value);
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

/* ---- lists that a strategic merge patch merges by a key of their elements ---- */

/* Conditions are merged by type (patchMergeKey of NodeStatus and PodStatus). Other lists are
 * replaced as a whole: our programs do not patch them, and a wrong key would do more harm. */
static bool is_merged_list(const Merge *m, Str key, Str patch) {
        return m->strategic && str_eq(key, STR("conditions")) && patch.len > 0 && patch.data[0] == '[';
}

typedef struct Element {
        Str text, type; /* type: raw text; empty when it has none */
} Element;

typedef struct Elements {
        Element *all;
        size_t n;
        /* the first of each type, sorted, for look-ups from the other list */
        const Element **by_type;
        size_t n_types;
} Elements;

static int compare_types(const void *a, const void *b) {
        return str_compare((*(const Element *const *) a)->type, (*(const Element *const *) b)->type);
}

static int compare_types_in_order(const void *a, const void *b) {
        const Element *x = *(const Element *const *) a, *y = *(const Element *const *) b;
        int r = str_compare(x->type, y->type);

        return r != 0 ? r : (x > y) - (x < y);
}

static void sort_by_type(Elements *e) {
        size_t n = 0, kept = 0;

        for (size_t i = 0; i < e->n; i++)
                if (!str_is_empty(e->all[i].type))
                        e->by_type[n++] = &e->all[i];
        qsort(e->by_type, n, sizeof *e->by_type, compare_types_in_order);
        for (size_t i = 0; i < n; i++)
                if (kept == 0 || !str_eq(e->by_type[kept - 1]->type, e->by_type[i]->type))
                        e->by_type[kept++] = e->by_type[i];
        e->n_types = kept;
}

static size_t count_elements(Str list) {
        JsonReader reader;
        size_t n = 0;

        json_init(&reader, list);
        if (json_array_begin(&reader))
                for (; json_array_next(&reader); n++)
                        json_skip(&reader);
        return n;
}

/* Reads the elements of a list. A value that is no array has none. */
static int list_elements(Merge *m, Str list, Elements *ret) {
        size_t n = count_elements(list);
        JsonReader reader;

        *ret = (Elements){.all = arena_new(m->arena, Element, n + 1),
                          .by_type = arena_new(m->arena, const Element *, n + 1)};
        if (!ret->all || !ret->by_type)
                return -ENOMEM;
        json_init(&reader, list);
        if (!json_array_begin(&reader))
                return 0;
        while (json_array_next(&reader)) {
                Element *e = &ret->all[ret->n++];

                *e = (Element){0};
                json_raw(&reader, &e->text);
                e->type = store_member(e->text, "type");
        }
        sort_by_type(ret);
        return 0;
}

static const Element *element_of(const Elements *e, Str type) {
        const Element wanted = {.type = type}, *key = &wanted, **found;

        if (str_is_empty(type))
                return NULL;
        found = bsearch(&key, e->by_type, e->n_types, sizeof *e->by_type, compare_types);
        return found ? *found : NULL;
}

static int merge_list(Merge *m, Str target, Str patch) {
        Elements old, new;
        bool more = false;
        int r;

        r = list_elements(m, target, &old);
        if (r == 0)
                r = list_elements(m, patch, &new);
        if (r < 0)
                return r;
        buf_append_char(m->out, '[');
        for (size_t i = 0; r == 0 && i < old.n; i++) {
                const Element *change = element_of(&new, old.all[i].type);

                separate_members(m, &more);
                if (change)
                        r = merge_value(m, STR(""), old.all[i].text, change->text);
                else
                        buf_append_str(m->out, old.all[i].text);
        }
        for (size_t i = 0; r == 0 && i < new.n; i++) {
                if (element_of(&old, new.all[i].type))
                        continue;
                separate_members(m, &more);
                r = merge_value(m, STR(""), (Str){NULL, 0}, new.all[i].text);
        }
        buf_append_char(m->out, ']');
        return r;
}

static int merge_value(Merge *m, Str key, Str target, Str patch) {
        if (store_is_object(patch))
                return merge_object(m, target, patch);
        if (is_merged_list(m, key, patch))
                return merge_list(m, target, patch);
        buf_append_str(m->out, patch);
        return 0;
}

int store_merge_patch(Str target, Str patch, bool strategic, Arena *arena, Buf *out) {
        Merge m = {.arena = arena, .out = out, .strategic = strategic};
        int r = merge_value(&m, STR(""), target, patch);

        return r < 0 ? r : buf_result(out);
}
