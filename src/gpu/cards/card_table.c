/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/card_table.h"

#include <assert.h>
#include <errno.h>

#include "gpu/cards/xid.h"

#define QUIET_MAX (CARD_TABLE_QUIET_MAX_HOURS * 3600 * USEC_PER_SEC)

static bool is_used(const CardTableEntry *c) {
        return c->card.uuid[0] != '\0';
}

void card_table_init(CardTable *k, usec_t quiet, const CardList *old) {
        memset(k, 0, sizeof *k);
        k->quiet = quiet;
        for (size_t i = 0; old && i < old->n; i++) {
                assert(old->cards[i].index < CARDS_MAX);
                if (old->cards[i].pci[0] != '\0')
                        k->cards[old->cards[i].index].card = old->cards[i];
        }
}

static CardTableEntry *find_entry(CardTable *k, const char *uuid) {
        for (size_t i = 0; i < CARDS_MAX; i++)
                if (is_used(&k->cards[i]) && strcmp(k->cards[i].card.uuid, uuid) == 0)
                        return &k->cards[i];
        return NULL;
}

static bool has_gone(const CardTableEntry *c) {
        return is_used(c) && !c->seen;
}

/* Finds a place for a new card; NULL when all 256 are in use by working cards. */
static CardTableEntry *place_entry(CardTable *k, const MachineCard *c) {
        for (size_t i = 0; i < CARDS_MAX; i++)
                if (c->pci[0] != '\0' && has_gone(&k->cards[i]) && strcmp(k->cards[i].card.pci, c->pci) == 0)
                        return &k->cards[i];
        if (c->index < CARDS_MAX && !is_used(&k->cards[c->index]))
                return &k->cards[c->index];
        for (size_t i = 0; i < CARDS_MAX; i++)
                if (!is_used(&k->cards[i]))
                        return &k->cards[i];
        for (size_t i = 0; i < CARDS_MAX; i++)
                if (has_gone(&k->cards[i]))
                        return &k->cards[i];
        return NULL;
}

/* --- fences ----------------------------------------------------------------------------------- */

static usec_t quiet_time(const CardTable *k, const CardTableEntry *c) {
        usec_t quiet = k->quiet;

        for (unsigned i = 0; i < c->relapses && quiet < QUIET_MAX; i++)
                quiet *= 2;
        return quiet < QUIET_MAX ? quiet : QUIET_MAX;
}

static void fence_entry(CardTable *k, CardTableEntry *c, const XidRule *rule, uint64_t session, usec_t now) {
        if (c->xid == 0) { /* the first XID of a failure, not a repeated one */
                bool relapse = c->lifted_at != 0 && now - c->lifted_at < QUIET_MAX;

                c->relapses = relapse ? c->relapses + 1 : 0;
                c->fence_session = 0;
        }
        c->xid = rule->xid;
        c->fenced_until = now + quiet_time(k, c);
        if (rule->verdict == XID_LOST)
                c->fence_session = session;
}

static void lift_fence(CardTableEntry *c, uint64_t session, usec_t now) {
        if (c->xid == 0 || now < c->fenced_until)
                return;
        if (c->fence_session != 0 && session <= c->fence_session)
                return;
        c->xid = 0;
        c->lifted_at = now > 0 ? now : 1;
}

static void set_health(CardTableEntry *c, const char *trouble) {
        const XidRule *rule = c->xid != 0 ? xid_rule(c->xid) : NULL;

        c->card.healthy = trouble[0] == '\0' && !rule;
        if (trouble[0] != '\0' || !rule)
                (void) snprintf(c->card.trouble, sizeof c->card.trouble, "%s", trouble);
        else
                (void) snprintf(c->card.trouble, sizeof c->card.trouble, "XID %u: %s", rule->xid,
                                rule->words);
}

/* --- one scan --------------------------------------------------------------------------------- */

/* If a card answers with an error, earlier values are kept instead of those that could not be
 * read. */
static void update_entry(CardTableEntry *c, const MachineCard *now_seen) {
        uint32_t index = c->card.index;

        if (now_seen->trouble[0] == '\0' || c->card.mib == 0)
                c->card = *now_seen;
        c->card.index = index;
        c->seen = true;
}

/* A driver that was loaded again may call a card by the number of one that is lost. */
static void take_minor(CardTable *k, const CardTableEntry *c) {
        for (size_t i = 0; i < CARDS_MAX; i++)
                if (&k->cards[i] != c && k->cards[i].card.minor == c->card.minor)
                        k->cards[i].card.minor = CARD_MINOR_UNKNOWN;
}

static void see_card(CardTable *k, const MachineCard *c, uint64_t session, usec_t now) {
        CardTableEntry *known = find_entry(k, c->uuid);

        if (!known) {
                known = place_entry(k, c);
                if (!known)
                        return;
                *known = (CardTableEntry){.card.index = (uint32_t) (known - k->cards)};
        } else if (known->seen) {
                return; /* two cards of one UUID, an error of the driver: the first one counts */
        }
        update_entry(known, c);
        if (c->trouble[0] == '\0') {
                take_minor(k, known);
                lift_fence(known, session, now);
        }
        set_health(known, c->trouble);
}

/* The driver's text about cards that it could not identify is the best hint why others
 * are missing. */
static void miss_entry(CardTableEntry *c, const CardScan *scan) {
        char words[sizeof c->card.trouble];
        const char *hint = "";

        for (size_t i = 0; i < scan->n && hint[0] == '\0'; i++)
                if (scan->seen[i].uuid[0] == '\0')
                        hint = scan->seen[i].trouble;
        (void) snprintf(words, sizeof words, "the driver does not list it any more%s%.100s",
                        hint[0] != '\0' ? "; of a card that it cannot name it says: " : "", hint);
        set_health(c, words);
}

/* Peers are seen by NVML's indexes and kept by ours. Those of a card with an error stay. */
static void place_peers(CardTable *k, const CardScan *scan) {
        uint32_t ours[CARDS_MAX];

        for (size_t i = 0; i < scan->n; i++) {
                const CardTableEntry *c = find_entry(k, scan->seen[i].uuid);

                ours[i] = c ? c->card.index : CARDS_MAX;
        }
        for (size_t i = 0; i < scan->n; i++) {
                MachineCard *card = ours[i] < CARD_PEERS_MAX ? &k->cards[ours[i]].card : NULL;

                if (!card || scan->seen[i].trouble[0] != '\0')
                        continue;
                memset(card->peers, 0, sizeof card->peers);
                for (size_t j = 0; j < scan->n; j++)
                        if (ours[j] < CARD_PEERS_MAX && scan->seen[j].index < CARD_PEERS_MAX)
                                card->peers[ours[j]] = scan->seen[i].peers[scan->seen[j].index];
        }
}

/* Sets k->unnamed. A known card that is missing has an entry that says so. Other cards without a
 * UUID have no entry. `n_gone`: known cards that are missing. */
static void name_unnamed(CardTable *k, const CardScan *scan, size_t n_gone) {
        const MachineCard *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < scan->n; i++)
                if (scan->seen[i].uuid[0] == '\0') {
                        first = first ? first : &scan->seen[i];
                        n++;
                }
        k->unnamed[0] = '\0';
        if (n > n_gone && n == 1)
                (void) snprintf(k->unnamed, sizeof k->unnamed, "card %u of the driver: %.150s", first->index,
                                first->trouble);
        else if (n > n_gone)
                (void) snprintf(k->unnamed, sizeof k->unnamed,
                                "%zu cards of the driver, the first is card %u: %.110s", n, first->index,
                                first->trouble);
}

void card_table_scan(CardTable *k, const CardScan *scan, usec_t now) {
        size_t n_gone = 0;

        for (size_t i = 0; i < CARDS_MAX; i++)
                k->cards[i].seen = false;
        /* update known cards first, before new ones take indexes */
        for (size_t i = 0; i < scan->n; i++)
                if (scan->seen[i].uuid[0] != '\0' && find_entry(k, scan->seen[i].uuid))
                        see_card(k, &scan->seen[i], scan->session, now);
        for (size_t i = 0; i < scan->n; i++)
                if (scan->seen[i].uuid[0] != '\0')
                        see_card(k, &scan->seen[i], scan->session, now);
        place_peers(k, scan);
        for (size_t i = 0; i < CARDS_MAX; i++)
                if (has_gone(&k->cards[i])) {
                        miss_entry(&k->cards[i], scan);
                        n_gone++;
                }
        name_unnamed(k, scan, n_gone);
}

bool card_table_xid(CardTable *k, const char *uuid, uint64_t xid, uint64_t session, usec_t now) {
        const XidRule *rule = xid_rule(xid);
        CardTableEntry *c = find_entry(k, uuid);

        if (!c || !rule || rule->verdict == XID_HARMLESS)
                return false;
        fence_entry(k, c, rule, session, now);
        if (c->card.healthy || strncmp(c->card.trouble, "XID ", 4) == 0)
                /* otherwise the driver's own text, which is more precise, stays */
                set_health(c, "");
        return true;
}

/* ---- over a restart ---- */

static usec_t age_of(uint64_t then, uint64_t wall) {
        uint64_t msec = wall > then ? wall - then : 0; /* the clock was set back: counts as now */

        return msec < QUIET_MAX / USEC_PER_MSEC ? msec * USEC_PER_MSEC : QUIET_MAX;
}

static void restore_fence(const CardTable *k, CardTableEntry *c, const CardFence *f, usec_t now,
                          uint64_t wall) {
        const XidRule *rule = f->xid > 0 ? xid_rule(f->xid) : NULL;
        usec_t age = age_of(f->lifted, wall), left, most;

        c->relapses = f->relapses;
        if (f->lifted > 0 && age < QUIET_MAX)
                c->lifted_at = now > age ? now - age : 1;
        if (!rule || rule->verdict == XID_HARMLESS)
                return;
        most = quiet_time(k, c);
        left = f->until > wall ? age_of(wall, f->until) : 0;
        c->xid = rule->xid;
        c->fence_session = 0;
        c->fenced_until = now + (left < most ? left : most);
        if (c->card.healthy || strncmp(c->card.trouble, "XID ", 4) == 0)
                set_health(c, "");
}

void card_table_restore(CardTable *k, const CardFences *fences, usec_t now, uint64_t wall) {
        for (size_t i = 0; i < fences->n; i++) {
                CardTableEntry *c = find_entry(k, fences->list[i].uuid);

                if (c)
                        restore_fence(k, c, &fences->list[i], now, wall);
        }
}

void card_table_fences(const CardTable *k, usec_t now, uint64_t wall, CardFences *ret) {
        ret->n = 0;
        for (size_t i = 0; i < CARDS_MAX; i++) {
                const CardTableEntry *c = &k->cards[i];
                bool lately = c->lifted_at != 0 && now - c->lifted_at < QUIET_MAX;
                CardFence *f = &ret->list[ret->n];

                if (!is_used(c) || (c->xid == 0 && !lately))
                        continue;
                *f = (CardFence){.xid = c->xid, .relapses = c->relapses};
                memcpy(f->uuid, c->card.uuid, sizeof f->uuid);
                if (c->xid != 0)
                        f->until =
                                wall + (c->fenced_until > now ? (c->fenced_until - now) / USEC_PER_MSEC : 0);
                if (lately && wall > (now - c->lifted_at) / USEC_PER_MSEC)
                        f->lifted = wall - (now - c->lifted_at) / USEC_PER_MSEC;
                ret->n++;
        }
}

bool card_table_has_trouble(const CardTable *k) {
        for (size_t i = 0; i < CARDS_MAX; i++)
                if (is_used(&k->cards[i]) && !k->cards[i].card.healthy)
                        return true;
        return k->unnamed[0] != '\0';
}

int card_table_list(const CardTable *k, CardList *ret) {
        MachineCard *cards = calloc(CARDS_MAX, sizeof *cards);
        CardList all = {.cards = cards};
        int r;

        if (!cards)
                return -ENOMEM;
        for (size_t i = 0; i < CARDS_MAX; i++)
                if (is_used(&k->cards[i]))
                        cards[all.n++] = k->cards[i].card;
        memcpy(all.unnamed, k->unnamed, sizeof all.unnamed);
        r = card_list_copy(&all, ret);
        free(cards);
        return r;
}
