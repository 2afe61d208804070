/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/card_info.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "wire/annotation.h"
#include "wire/json_field.h"
#include "wire/json_write.h"

/* A card as the text has it; a number is -1 when absent. */
typedef struct CardText {
        int64_t index, units, mib, numa;
        bool healthy;
        Str uuid, model, peers;
} CardText;

static const JsonField card_fields[] = {
        JSON_FIELD(CardText, index, "index", json_field_i64),
        JSON_FIELD(CardText, uuid, "uuid", json_field_str),
        JSON_FIELD(CardText, model, "model", json_field_str),
        JSON_FIELD(CardText, units, "units", json_field_i64),
        JSON_FIELD(CardText, mib, "mib", json_field_i64),
        JSON_FIELD(CardText, numa, "numa", json_field_i64),
        JSON_FIELD(CardText, healthy, "healthy", json_field_bool),
        JSON_FIELD(CardText, peers, "peers", json_field_raw),
};

static void read_rates(JsonReader *r, uint16_t *rates, size_t *n) {
        JSON_EACH_ELEMENT(r) {
                uint64_t rate = 0;

                json_u64(r, &rate);
                if (*n == CARD_INFO_PEERS_MAX || rate > UINT16_MAX) {
                        json_fault(r, "not a peer");
                        return;
                }
                rates[(*n)++] = (uint16_t) rate;
        }
}

/* Reads a card's links. They only order cards, so that an error in them must not cost the node its
 * cards. */
static void take_peers(Str text, Arena *arena, CardInfo *ret) {
        uint16_t rates[CARD_INFO_PEERS_MAX], *copy;
        JsonReader r;
        size_t n = 0;

        if (str_is_empty(text))
                return;
        json_init(&r, text);
        read_rates(&r, rates, &n);
        ret->peers_malformed = json_finish(&r, NULL) != 0;
        copy = n > 0 && !ret->peers_malformed ? arena_new(arena, uint16_t, n) : NULL;
        if (!copy)
                return;
        memcpy(copy, rates, n * sizeof *rates);
        ret->peers = copy;
        ret->n_peers = n;
}

static void read_card(JsonReader *r, Arena *arena, CardInfo *ret) {
        CardText c = {.index = -1, .units = -1, .mib = 0, .numa = -1, .healthy = true};

        if (json_peek(r) != JSON_OBJECT) {
                json_fault(r, "not an object");
                return;
        }
        json_field_decode(r, arena, card_fields, ELEMENTSOF(card_fields), &c);
        if (c.index < 0 || c.index > CARD_INDEX_MAX)
                json_fault(r, "a card needs an index from 0 to 255");
        else if (c.units < 0 || c.units > UINT32_MAX)
                json_fault(r, "a card needs its units, a number from 0 to 4294967295");
        else if (c.mib < 0 || c.mib > UINT32_MAX)
                json_fault(r, "the card's mib is out of range");
        else if (c.numa < -1 || c.numa > INT32_MAX)
                json_fault(r, "the card's numa node is out of range");
        else
                *ret = (CardInfo){.index = (uint32_t) c.index,
                                  .units = (uint32_t) c.units,
                                  .mib = (uint32_t) c.mib,
                                  .numa = (int32_t) c.numa,
                                  .healthy = c.healthy,
                                  .uuid = c.uuid,
                                  .model = c.model};
        if (!json_failed(r))
                take_peers(c.peers, arena, ret);
}

static int card_compare(const void *a, const void *b) {
        const CardInfo *x = a, *y = b;

        return (x->index > y->index) - (x->index < y->index);
}

int card_info_parse(Str text, Arena *arena, CardInfo **ret, size_t *ret_n, Fault *fault) {
        CardInfo *cards = arena_new(arena, CardInfo, CARD_INDEX_MAX + 1);
        JsonReader r;
        size_t n = 0;
        int k;

        if (!cards)
                return -ENOMEM;
        json_init(&r, text);
        if (json_array_begin(&r))
                while (json_array_next(&r)) {
                        if (n > CARD_INDEX_MAX) {
                                json_fault(&r, "more than 256 cards");
                                break;
                        }
                        read_card(&r, arena, &cards[n++]);
                }
        k = json_finish(&r, fault);
        if (k != 0)
                return k == JSON_E_MALFORMED ? CARD_INFO_E_MALFORMED : k;
        if (n > 0)
                qsort(cards, n, sizeof *cards, card_compare);
        for (size_t i = 1; i < n; i++)
                if (cards[i - 1].index == cards[i].index)
                        return fault_set(fault, CARD_INFO_E_MALFORMED, "card %u is listed twice",
                                         cards[i].index);
        *ret = cards;
        *ret_n = n;
        return 0;
}

static void write_peers(const CardInfo *c, JsonWriter *w) {
        if (c->n_peers == 0)
                return;
        json_write_array(w, "peers");
        for (size_t i = 0; i < c->n_peers; i++)
                json_write_u64(w, NULL, c->peers[i]);
        json_write_array_end(w);
}

void card_info_format(const CardInfo *cards, size_t n, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_array(&w, NULL);
        for (const CardInfo *c = cards; c < cards + n; c++) {
                json_write_object(&w, NULL);
                json_write_u64(&w, "index", c->index);
                if (c->uuid.len > 0)
                        json_write_str(&w, "uuid", c->uuid);
                if (c->model.len > 0)
                        json_write_str(&w, "model", c->model);
                json_write_u64(&w, "units", c->units);
                if (c->mib > 0)
                        json_write_u64(&w, "mib", c->mib);
                if (c->numa >= 0)
                        json_write_i64(&w, "numa", c->numa);
                json_write_bool(&w, "healthy", c->healthy);
                write_peers(c, &w);
                json_write_object_end(&w);
        }
        json_write_array_end(&w);
}
