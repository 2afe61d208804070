/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>

#include "local/apiserver/rest.h"

void store_get(StoreApi *a, const StoreRoute *route, StoreReply *reply) {
        Str key = store_key(a, route);
        const StoreVersion *v = key.data ? store_find(a->objects, route->kind, key) : NULL;

        if (!key.data) {
                store_refuse_broken(reply, -ENOMEM);
                return;
        }
        if (!v) {
                store_refuse_not_found(reply, route->kind, route->name);
                return;
        }
        reply->status = 200;
        buf_append_str(&reply->body, v->text);
}

/* ---- lists ---- */

#define EXPIRED_CONTINUE                                                                                     \
        "The provided continue parameter is too old to display a consistent list result. You can start a "   \
        "new list without the continue parameter."

typedef struct ListQuery {
        StoreSelector selector;
        uint64_t limit;  /* 0: none */
        uint64_t moment; /* the version that the list shows */
        Str behind;      /* the last key of the previous page; empty on the first page */
} ListQuery;

/* Writes a continue token: the list's version and the last key, in hex because clients must not
 * depend on its content. */
static void write_token(Buf *out, uint64_t moment, Str key) {
        static const char digits[] = "0123456789abcdef";

        buf_append_u64(out, moment);
        buf_append_char(out, '-');
        for (size_t i = 0; i < key.len; i++) {
                buf_append_char(out, digits[(unsigned char) key.data[i] >> 4]);
                buf_append_char(out, digits[(unsigned char) key.data[i] & 15]);
        }
}

static int hex_value(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_token(StoreApi *a, const char *token, ListQuery *q) {
        Str rest = str_from(token), number = str_split(&rest, '-');
        char *key = arena_alloc(&a->arena, rest.len / 2 + 1, 1);

        if (!key || !str_to_u64(number, &q->moment) || rest.len == 0 || rest.len % 2 != 0)
                return false;
        for (size_t i = 0; i < rest.len / 2; i++) {
                int high = hex_value(rest.data[2 * i]), low = hex_value(rest.data[2 * i + 1]);

                if (high < 0 || low < 0)
                        return false;
                key[i] = (char) (high * 16 + low);
        }
        q->behind = (Str){key, rest.len / 2};
        return q->moment >= store_horizon(a->objects) && q->moment <= store_version(a->objects);
}

/* resourceVersion and resourceVersionMatch: when absent or "0", and for "not older than N", the
 * present is read. */
static bool parse_moment(StoreApi *a, const StoreCall *call, ListQuery *q, StoreReply *reply) {
        const char *number = store_query(call, "resourceVersion"),
                   *match = store_query(call, "resourceVersionMatch");
        uint64_t wanted = 0, now = store_version(a->objects);

        if (number && !str_to_u64(str_from(number), &wanted)) {
                store_refuse(reply, 400, "BadRequest", NULL, STR(""),
                             "Invalid value: \"%.40s\": resourceVersion must be a number", number);
                return false;
        }
        if (wanted > now) {
                store_refuse(reply, 504, "Timeout", NULL, STR(""),
                             "Too large resource version: %" PRIu64 ", current: %" PRIu64, wanted, now);
                return false;
        }
        q->moment = now;
        if (!match || strcmp(match, "Exact") != 0 || wanted == 0)
                return true;
        q->moment = wanted;
        if (wanted < store_horizon(a->objects)) {
                store_refuse_expired(reply, "The resourceVersion for the provided list is too old.");
                return false;
        }
        return true;
}

static bool parse_query(StoreApi *a, const StoreRoute *route, const StoreCall *call, ListQuery *q,
                        StoreReply *reply) {
        const char *limit = store_query(call, "limit"), *token = store_query(call, "continue");
        Fault fault = FAULT_NULL;
        int r;

        if (limit && *limit && !str_to_u64(str_from(limit), &q->limit)) {
                store_refuse(reply, 400, "BadRequest", NULL, STR(""),
                             "Invalid value: \"%.40s\": limit must be a number", limit);
                return false;
        }
        r = store_selector_init(&q->selector, route->kind, route->namespace_,
                                store_query(call, "labelSelector"), store_query(call, "fieldSelector"),
                                &fault);
        if (r != 0) {
                if (r < 0)
                        store_refuse_broken(reply, r);
                else
                        store_refuse(reply, 400, "BadRequest", NULL, STR(""), "%s", fault.text);
                return false;
        }
        if (!token || !*token)
                return parse_moment(a, call, q, reply);
        if (parse_token(a, token, q))
                return true;
        store_refuse_expired(reply, EXPIRED_CONTINUE);
        return false;
}

static const StoreVersion *next_match(const ListQuery *q, StoreEntry **e) {
        for (; *e && store_selector_matches_key(&q->selector, (*e)->key); *e = (*e)->next[0]) {
                const StoreVersion *v = store_at(*e, q->moment);

                if (v && store_selector_matches(&q->selector, (*e)->key, v->text))
                        return v;
        }
        return NULL;
}

typedef struct Page {
        const StoreVersion **items;
        size_t n, capacity;
        bool more; /* the limit was reached before the end */
} Page;

static int page_push(Page *page, const StoreVersion *v) {
        if (page->n == page->capacity) {
                size_t capacity = page->capacity > 0 ? page->capacity * 2 : 64;
                const StoreVersion **items = reallocarray(page->items, capacity, sizeof *items);

                if (!items)
                        return -ENOMEM;
                page->items = items;
                page->capacity = capacity;
        }
        page->items[page->n++] = v;
        return 0;
}

/* Collects the page's objects before it is written, because the metadata precedes the items and
 * tells whether there is more. */
static int page_collect(StoreApi *a, const StoreRoute *route, const ListQuery *q, Page *page) {
        Str from = str_is_empty(q->behind) ? q->selector.key_prefix : q->behind;
        StoreEntry *e = store_seek(a->objects, route->kind, from);
        const StoreVersion *v;

        if (e && !str_is_empty(q->behind) && str_eq(e->key, q->behind))
                e = e->next[0];
        for (; (v = next_match(q, &e)) != NULL; e = e->next[0]) {
                if (q->limit > 0 && page->n == q->limit) {
                        page->more = true;
                        return 0;
                }
                if (page_push(page, v) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static void write_list(const StoreRoute *route, const ListQuery *q, const Page *page, StoreReply *reply) {
        size_t skip = route->kind->head.len;
        Buf *out = &reply->body;

        reply->status = 200;
        buf_appendf(out,
                    "{\"kind\":\"" STR_FMT "List\",\"apiVersion\":\"" STR_FMT
                    "\",\"metadata\":{\"resourceVersion\":",
                    STR_ARG(route->kind->kind), STR_ARG(route->kind->api_version));
        buf_appendf(out, "\"%" PRIu64 "\"", q->moment);
        if (page->more) {
                buf_append_str(out, STR(",\"continue\":\""));
                write_token(out, q->moment, page->items[page->n - 1]->entry->key);
                buf_append_char(out, '"');
        }
        buf_append_str(out, STR("},\"items\":["));
        for (size_t i = 0; i < page->n; i++) {
                Str text = page->items[i]->text;

                buf_append_str(out, i > 0 ? STR(",{") : STR("{"));
                buf_append(out, text.data + skip, text.len - skip);
        }
        buf_append_str(out, STR("]}"));
}

void store_list(StoreApi *a, const StoreRoute *route, const StoreCall *call, StoreReply *reply) {
        ListQuery q = {.selector = STORE_SELECTOR_NULL};
        Page page = {0};
        int r;

        if (parse_query(a, route, call, &q, reply)) {
                r = page_collect(a, route, &q, &page);
                if (r < 0)
                        store_refuse_broken(reply, r);
                else
                        write_list(route, &q, &page, reply);
        }
        free(page.items);
        store_selector_done(&q.selector);
}
