/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/fence.h"

#include <stddef.h>

#include "wire/json_field.h"
#include "wire/json_write.h"

enum { NEAR_MSEC = 30000, RELAPSES_MAX = 1000 };

static bool near(uint64_t a, uint64_t b) {
        return (a > b ? a - b : b - a) < NEAR_MSEC;
}

bool card_fences_near(const CardFences *a, const CardFences *b) {
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++) {
                const CardFence *x = &a->list[i], *y = &b->list[i];

                if (strcmp(x->uuid, y->uuid) != 0 || x->xid != y->xid || x->relapses != y->relapses ||
                    !near(x->until, y->until) || !near(x->lifted, y->lifted))
                        return false;
        }
        return true;
}

/* ---- JSON ---- */

typedef struct Draft {
        Str uuid;
        int64_t xid, relapses, until, lifted;
} Draft;

static const JsonField fence_fields[] = {
        JSON_FIELD(Draft, uuid, "uuid", json_field_str),
        JSON_FIELD(Draft, xid, "xid", json_field_i64),
        JSON_FIELD(Draft, relapses, "relapses", json_field_i64),
        JSON_FIELD(Draft, until, "until", json_field_i64),
        JSON_FIELD(Draft, lifted, "lifted", json_field_i64),
};

static bool has(const CardFences *f, const char *uuid) {
        for (size_t i = 0; i < f->n; i++)
                if (strcmp(f->list[i].uuid, uuid) == 0)
                        return true;
        return false;
}

static void add(JsonReader *r, const Draft *d, CardFences *f) {
        CardFence *to = &f->list[f->n];

        if (f->n == CARDS_MAX || d->uuid.len >= sizeof to->uuid || d->xid < 0 || d->xid > UINT32_MAX ||
            d->relapses < 0 || d->relapses > RELAPSES_MAX || d->until < 0 || d->lifted < 0) {
                json_fault(r, "not a fence");
                return;
        }
        *to = (CardFence){.xid = (uint32_t) d->xid,
                          .relapses = (uint32_t) d->relapses,
                          .until = (uint64_t) d->until,
                          .lifted = (uint64_t) d->lifted};
        if (d->uuid.len > 0)
                memcpy(to->uuid, d->uuid.data, d->uuid.len);
        if (strlen(to->uuid) != d->uuid.len || !card_uuid_is_valid(to->uuid) || has(f, to->uuid))
                json_fault(r, "the card's UUID is missing, malformed or there before");
        else
                f->n++;
}

static void read_fences(JsonReader *r, Arena *arena, void *ret) {
        CardFences *f = ret;

        f->n = 0; /* of a repeated member the last one counts */
        JSON_EACH_ELEMENT(r) {
                Draft d = {.uuid = {0}};

                json_field_decode(r, arena, fence_fields, ELEMENTSOF(fence_fields), &d);
                if (!json_failed(r))
                        add(r, &d, f);
        }
}

static const JsonField file_fields[] = {JSON_NESTED("fences", read_fences)};

int card_fences_read(Str json, CardFences *ret, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        int e;

        ret->n = 0;
        e = json_field_read(json, &arena, file_fields, ELEMENTSOF(file_fields), ret, fault);
        if (e != 0)
                ret->n = 0;
        return e > 0 ? CARDS_E_MALFORMED : e;
}

void card_fences_write(const CardFences *f, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_array(&w, "fences");
        for (size_t i = 0; i < f->n; i++) {
                const CardFence *c = &f->list[i];

                json_write_object(&w, NULL);
                json_write_text(&w, "uuid", c->uuid);
                json_write_u64(&w, "xid", c->xid);
                json_write_u64(&w, "relapses", c->relapses);
                json_write_u64(&w, "until", c->until);
                json_write_u64(&w, "lifted", c->lifted);
                json_write_object_end(&w);
        }
        json_write_array_end(&w);
        json_write_object_end(&w);
}
