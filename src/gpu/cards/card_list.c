/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "gpu/cards/card_list.h"
#include "wire/json.h"
#include "wire/json_write.h"

void card_list_done(CardList *l) {
        free(l->cards);
        *l = (CardList){0};
}

static bool card_eq(const MachineCard *a, const MachineCard *b) {
        return a->index == b->index && a->minor == b->minor && a->mib == b->mib && a->numa == b->numa &&
               a->healthy == b->healthy && strcmp(a->uuid, b->uuid) == 0 && strcmp(a->model, b->model) == 0 &&
               strcmp(a->pci, b->pci) == 0 && strcmp(a->trouble, b->trouble) == 0 &&
               a->link_rate == b->link_rate && a->switch_links == b->switch_links &&
               memcmp(a->peers, b->peers, sizeof a->peers) == 0;
}

bool card_list_eq(const CardList *a, const CardList *b) {
        if (a->n != b->n || strcmp(a->unnamed, b->unnamed) != 0)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (!card_eq(&a->cards[i], &b->cards[i]))
                        return false;
        return true;
}

int card_list_copy(const CardList *l, CardList *ret) {
        MachineCard *cards = calloc(l->n + 1, sizeof *cards); /* never of size 0 */

        if (!cards)
                return -ENOMEM;
        if (l->n > 0)
                memcpy(cards, l->cards, l->n * sizeof *cards);
        *ret = (CardList){.cards = cards, .n = l->n};
        memcpy(ret->unnamed, l->unnamed, sizeof ret->unnamed);
        return 0;
}

uint16_t card_list_rate(const CardList *l, size_t a, size_t b) {
        const MachineCard *x = &l->cards[a], *y = &l->cards[b];

        if (a == b || x->index >= CARD_PEERS_MAX || y->index >= CARD_PEERS_MAX)
                return 0;
        return card_peer_rate(x->peers[y->index], x->link_rate < y->link_rate ? x->link_rate : y->link_rate);
}

bool card_list_rates_differ(const CardList *l) {
        for (size_t a = 0; a < l->n; a++)
                for (size_t b = a + 1; b < l->n; b++)
                        if (card_list_rate(l, a, b) != card_list_rate(l, 0, 1))
                                return true;
        return false;
}

static bool is_letter(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_alphanumeric(char c) {
        return is_letter(c) || (c >= '0' && c <= '9');
}

/* Stricter than CDI 0.3 is for device names, so that every UUID can be one. */
bool card_uuid_is_valid(const char *uuid) {
        size_t n = strlen(uuid);

        if (n == 0 || n >= sizeof(((MachineCard *) NULL)->uuid))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!is_alphanumeric(uuid[i]) && uuid[i] != '-')
                        return false;
        return is_letter(uuid[0]) && uuid[n - 1] != '-';
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void read_text(JsonReader *r, Arena *arena, char *into, size_t size) {
        Str text = {0};

        json_string(r, arena, &text);
        if (text.len >= size || memchr(text.data ? text.data : "", '\0', text.len)) {
                json_fault(r, "too long, or holds a NUL");
                return;
        }
        if (text.len > 0)
                memcpy(into, text.data, text.len);
        into[text.len] = '\0';
}

static void read_u32(JsonReader *r, uint32_t limit, uint32_t *ret) {
        uint64_t value = 0;

        json_u64(r, &value);
        if (value > limit)
                json_fault(r, "too large");
        else
                *ret = (uint32_t) value;
}

static void read_numa(JsonReader *r, int32_t *ret) {
        int64_t value = -1;

        json_i64(r, &value);
        if (value < -1 || value > INT32_MAX)
                json_fault(r, "not a NUMA node");
        else
                *ret = (int32_t) value;
}

/* A peer is encoded as one number: 32 times its path, plus its links. */
static void read_peers(JsonReader *r, MachineCard *c) {
        size_t n = 0;

        memset(c->peers, 0, sizeof c->peers);
        JSON_EACH_ELEMENT(r) {
                uint64_t code = 0;

                json_u64(r, &code);
                if (n == CARD_PEERS_MAX || code >> 5 >= PEER_PATHS_ || (code & 31) > CARD_PEER_LINKS_MAX) {
                        json_fault(r, "not a peer");
                        return;
                }
                c->peers[n++] = (CardPeer){.path = (uint8_t) (code >> 5), .links = code & 31};
        }
}

static void read_u8(JsonReader *r, uint8_t *ret) {
        uint32_t value = 0;

        read_u32(r, UINT8_MAX, &value);
        *ret = (uint8_t) value;
}

static void read_member(JsonReader *r, Arena *arena, Str key, MachineCard *c) {
        if (json_key_is(key, "index"))
                read_u32(r, CARDS_MAX - 1, &c->index);
        else if (json_key_is(key, "minor"))
                read_u32(r, UINT32_MAX, &c->minor);
        else if (json_key_is(key, "mib"))
                read_u32(r, UINT32_MAX, &c->mib);
        else if (json_key_is(key, "numa"))
                read_numa(r, &c->numa);
        else if (json_key_is(key, "healthy"))
                json_bool(r, &c->healthy);
        else if (json_key_is(key, "uuid"))
                read_text(r, arena, c->uuid, sizeof c->uuid);
        else if (json_key_is(key, "model"))
                read_text(r, arena, c->model, sizeof c->model);
        else if (json_key_is(key, "pci"))
                read_text(r, arena, c->pci, sizeof c->pci);
        else if (json_key_is(key, "trouble"))
                read_text(r, arena, c->trouble, sizeof c->trouble);
        else if (json_key_is(key, "link_rate"))
                read_u8(r, &c->link_rate);
        else if (json_key_is(key, "switch_links"))
                read_u8(r, &c->switch_links);
        else if (json_key_is(key, "peers"))
                read_peers(r, c);
        else
                json_skip(r);
}

static bool has_uuid(const CardList *l, const char *uuid) {
        for (size_t i = 0; i < l->n; i++)
                if (strcmp(l->cards[i].uuid, uuid) == 0)
                        return true;
        return false;
}

static void read_card(JsonReader *r, Arena *arena, CardList *l) {
        MachineCard c = {.numa = -1};
        Str key;

        if (!json_object_begin(r)) {
                json_fault(r, "not a card");
                return;
        }
        while (json_object_next(r, &key))
                read_member(r, arena, key, &c);
        if (json_failed(r))
                return;
        if (l->n == CARDS_MAX)
                json_fault(r, "too many cards");
        else if (!card_uuid_is_valid(c.uuid) || has_uuid(l, c.uuid))
                json_fault(r, "the card's UUID is missing, malformed or there before");
        else if (l->n > 0 && l->cards[l->n - 1].index >= c.index)
                json_fault(r, "cards must stand by rising index");
        else
                l->cards[l->n++] = c;
}

static void read_cards(JsonReader *r, Arena *arena, CardList *l) {
        if (!json_array_begin(r))
                return;
        l->n = 0; /* of a repeated member the last one counts */
        while (json_array_next(r))
                read_card(r, arena, l);
}

int card_list_read(Str json, CardList *ret, Fault *fault) {
        _cleanup_(card_list_done) CardList l = {0};
        _cleanup_arena_ Arena arena = ARENA_NULL;
        JsonReader r;
        Str key;
        int e;

        l.cards = calloc(CARDS_MAX, sizeof *l.cards);
        if (!l.cards)
                return -ENOMEM;
        json_init(&r, json);
        if (!json_object_begin(&r))
                json_fault(&r, "not an object");
        while (json_object_next(&r, &key)) {
                if (json_key_is(key, "cards"))
                        read_cards(&r, &arena, &l);
                else
                        json_skip(&r);
        }
        e = json_finish(&r, fault);
        if (e != 0)
                return e < 0 ? e : CARDS_E_MALFORMED;
        return card_list_copy(&l, ret);
}

/* Unknown peers at the end of the array are left out. */
static void write_links(const MachineCard *c, JsonWriter *w) {
        size_t n = CARD_PEERS_MAX;

        while (n > 0 && c->peers[n - 1].path == 0 && c->peers[n - 1].links == 0)
                n--;
        if (c->link_rate > 0)
                json_write_u64(w, "link_rate", c->link_rate);
        if (c->switch_links > 0)
                json_write_u64(w, "switch_links", c->switch_links);
        if (n == 0)
                return;
        json_write_array(w, "peers");
        for (size_t i = 0; i < n; i++)
                json_write_u64(w, NULL, (uint64_t) c->peers[i].path << 5 | c->peers[i].links);
        json_write_array_end(w);
}

void card_list_write(const CardList *l, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_array(&w, "cards");
        for (size_t i = 0; i < l->n; i++) {
                const MachineCard *c = &l->cards[i];

                json_write_object(&w, NULL);
                json_write_u64(&w, "index", c->index);
                json_write_text(&w, "uuid", c->uuid);
                json_write_text(&w, "model", c->model);
                json_write_u64(&w, "mib", c->mib);
                json_write_u64(&w, "minor", c->minor);
                json_write_i64(&w, "numa", c->numa);
                json_write_text(&w, "pci", c->pci);
                json_write_bool(&w, "healthy", c->healthy);
                json_write_text(&w, "trouble", c->trouble);
                write_links(c, &w);
                json_write_object_end(&w);
        }
        json_write_array_end(&w);
        json_write_object_end(&w);
}
