/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/watch.h"

#include <inttypes.h>

bool store_is_watch(const StoreCall *call, StoreRoute *ret_route) {
        return strcmp(call->method, "GET") == 0 && store_query_is_true(call, "watch") &&
               store_route(call->path, ret_route) && str_is_empty(ret_route->name);
}

static bool parse_number(const StoreCall *call, const char *name, uint64_t *ret, StoreReply *reply) {
        const char *text = store_query(call, name);

        *ret = 0;
        if (!text || !*text || str_to_u64(str_from(text), ret))
                return true;
        store_refuse(reply, 400, "BadRequest", NULL, STR(""), "Invalid value: \"%.40s\": %s must be a number",
                     text, name);
        return false;
}

bool store_watch_init(StoreWatch *w, StoreApi *a, const StoreRoute *route, const StoreCall *call,
                      StoreReply *reply) {
        Fault fault = FAULT_NULL;
        int r;

        *w = (StoreWatch){
                .objects = a->objects,
                .kind = route->kind,
                .selector = STORE_SELECTOR_NULL,
                .bookmarks = store_query_is_true(call, "allowWatchBookmarks"),
        };
        if (!parse_number(call, "resourceVersion", &w->position, reply) ||
            !parse_number(call, "timeoutSeconds", &w->timeout, reply))
                return false;
        r = store_selector_init(&w->selector, route->kind, route->namespace_,
                                store_query(call, "labelSelector"), store_query(call, "fieldSelector"),
                                &fault);
        if (r < 0)
                store_refuse_broken(reply, r);
        else if (r > 0)
                store_refuse(reply, 400, "BadRequest", NULL, STR(""), "%s", fault.text);
        w->listing = w->position == 0;
        if (w->listing)
                w->position = store_version(a->objects);
        return r == 0;
}

void store_watch_done(StoreWatch *w) {
        store_selector_done(&w->selector);
        buf_done(&w->behind);
}

static void write_expired(StoreWatch *w, Buf *out) {
        buf_appendf(
                out,
                "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                "\"status\":\"Failure\",\"message\":\"too old resource version: %" PRIu64 " (%" PRIu64 ")\","
                "\"reason\":\"Expired\",\"code\":410}}\n",
                w->position, store_horizon(w->objects));
        w->ended = true;
}

static void write_event(Buf *out, const char *type, Str text) {
        buf_append_str(out, STR("{\"type\":\""));
        buf_append_str(out, str_from(type));
        buf_append_str(out, STR("\",\"object\":"));
        buf_append_str(out, text);
        buf_append_str(out, STR("}\n"));
}

static void list(StoreWatch *w, Buf *out, size_t room) {
        Str from = w->behind.len > 0 ? buf_str(&w->behind) : w->selector.key_prefix;
        StoreEntry *e = store_seek(w->objects, w->kind, from);

        if (e && w->behind.len > 0 && str_eq(e->key, from))
                e = e->next[0];
        for (; e && store_selector_matches_key(&w->selector, e->key); e = e->next[0]) {
                const StoreVersion *v;

                if (out->len >= room)
                        return;
                buf_clear(&w->behind);
                buf_append_str(&w->behind, e->key);
                if (buf_result(&w->behind) < 0) { /* out of memory: the client lists again */
                        w->ended = true;
                        return;
                }
                v = store_at(e, w->position);
                if (v && store_selector_matches(&w->selector, e->key, v->text))
                        write_event(out, "ADDED", v->text);
        }
        w->listing = false;
}

/* Writes the change as the selector shows it: an object that begins to match is ADDED, and one that
 * ceases to match is DELETED with its last matching state. */
static void write_selected(StoreWatch *w, const StoreVersion *v, Buf *out) {
        const StoreVersion *old = v->older && v->older->change != STORE_DELETED ? v->older : NULL;
        bool before = old && store_selector_matches(&w->selector, v->entry->key, old->text);
        bool now = v->change != STORE_DELETED && store_selector_matches(&w->selector, v->entry->key, v->text);

        if (before && !now) {
                buf_append_str(out, STR("{\"type\":\"DELETED\",\"object\":"));
                store_renumber(w->kind, old->text, v->number, out);
                buf_append_str(out, STR("}\n"));
        } else if (now) {
                write_event(out, before ? "MODIFIED" : "ADDED", v->text);
        }
}

static void follow(StoreWatch *w, Buf *out, size_t room) {
        bool everything = w->selector.n_labels == 0 && w->selector.n_fields == 0;

        while (w->position < store_version(w->objects) && out->len < room) {
                const StoreVersion *v = store_event(w->objects, w->position + 1);

                w->position++;
                if (v->entry->kind != w->kind || !store_selector_matches_key(&w->selector, v->entry->key))
                        continue;
                if (everything)
                        buf_append_str(out, v->line);
                else
                        write_selected(w, v, out);
        }
}

void store_watch_read(StoreWatch *w, Buf *out, size_t room) {
        if (w->ended)
                return;
        if (w->position < store_horizon(w->objects)) {
                write_expired(w, out);
                return;
        }
        if (w->listing)
                list(w, out, room);
        if (!w->listing)
                follow(w, out, room);
}

void store_watch_bookmark(StoreWatch *w, Buf *out) {
        if (w->ended || w->listing || !w->bookmarks)
                return;
        buf_append_str(out, STR("{\"type\":\"BOOKMARK\",\"object\":"));
        buf_append_str(out, w->kind->head);
        buf_appendf(out, "\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\",\"creationTimestamp\":null}}}\n",
                    w->position);
}
