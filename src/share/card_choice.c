/* SPDX-License-Identifier: Apache-2.0 */
#include "share/card_choice.h"

#include <errno.h>
#include <stddef.h>

#include "wire/annotation.h"

/* ---- the keys ---- */

typedef enum Sense { WANTED, EXCLUDED, EITHER } Sense;
enum { MODEL, UUID };

typedef struct Key {
        const char *name;
        size_t offset; /* offset of the value in PodAnnotations */
        bool by_uuid;
        Sense sense;
} Key;

static const Key keys[] = {
#define X(member, name, attribute, sense)                                                                    \
        {name, offsetof(PodAnnotations, member), (attribute) == UUID, sense},
        POD_CARD_KEYS(X)
#undef X
};

_Static_assert(ELEMENTSOF(keys) == CARD_KEYS, "one entry per key");

static Str value_of(const PodAnnotations *from, size_t key) {
        return *(const Str *) ((const char *) from + keys[key].offset);
}

const char *card_choice_key_name(size_t key) {
        return keys[key].name;
}

/* Takes the next entry off the list; false at its end. An empty text has no entry at all. */
static bool next_entry(Str *rest, Str *ret) {
        if (!rest->data)
                return false;
        if (memchr(rest->data, ',', rest->len))
                *ret = str_split(rest, ',');
        else {
                *ret = *rest;
                rest->data = NULL;
        }
        *ret = str_trim(*ret);
        return true;
}

bool card_choice_has_empty_entry(const PodAnnotations *from, size_t key) {
        Str rest = value_of(from, key), entry;

        if (str_is_empty(rest))
                return false;
        while (next_entry(&rest, &entry))
                if (str_is_empty(entry))
                        return true;
        return false;
}

/* ---- comparing ---- */

static unsigned char fold_case(char c) {
        if (c >= 'A' && c <= 'Z')
                return (unsigned char) (c - 'A' + 'a');
        return c == ' ' ? '-' : (unsigned char) c;
}

static bool has_part(Str whole, Str part) {
        for (size_t i = 0; i + part.len <= whole.len; i++) {
                size_t k = 0;

                while (k < part.len && fold_case(whole.data[i + k]) == fold_case(part.data[k]))
                        k++;
                if (k == part.len)
                        return true;
        }
        return false;
}

Str card_choice_text(const CardChoice *c, const CardRule *rule) {
        return (Str){(const char *) c + rule->at, rule->len};
}

bool card_choice_names(const CardChoice *c, const CardRule *rule, Str model, Str uuid) {
        return has_part(rule->by_uuid ? uuid : model, card_choice_text(c, rule));
}

CardVerdict card_choice_judge(const CardChoice *c, Str model, Str uuid) {
        const CardRule *rule = c->rules, *end = c->rules + c->n_rules;
        CardVerdict verdict = CARD_ALLOWED;

        while (rule < end) { /* one key per round */
                bool known = !str_is_empty(rule->by_uuid ? uuid : model), wanted = false, named = false;
                uint8_t key = rule->key;

                for (; rule < end && rule->key == key; rule++) {
                        bool names = known && card_choice_names(c, rule, model, uuid);

                        if (names && rule->excluded)
                                return CARD_FORBIDDEN;
                        wanted |= !rule->excluded;
                        named |= names;
                }
                if (!known)
                        verdict = CARD_NOT_KNOWN;
                else if (wanted && !named)
                        return CARD_FORBIDDEN;
        }
        return verdict;
}

/* ---- reading ---- */

/* The entries while they are read; the texts point into the pod. */
typedef struct Draft {
        CardRule rules[CARD_ENTRIES_MAX];
        Str texts[CARD_ENTRIES_MAX];
        size_t n, bytes;
        CardChoiceFault *fault;
} Draft;

static int malformed_entry(const Draft *d, size_t key, Str entry, const char *rule) {
        *d->fault = (CardChoiceFault){.key = keys[key].name, .rule = rule, .entry = entry};
        return CARD_CHOICE_E_MALFORMED;
}

static bool is_printable(Str s) {
        for (size_t i = 0; i < s.len; i++)
                if (s.data[i] < ' ' || s.data[i] > '~')
                        return false;
        return true;
}

static int read_entry(Draft *d, size_t key, Str entry) {
        CardRule rule = {.key = (uint8_t) key, .by_uuid = keys[key].by_uuid};
        Str name = entry;

        if (!is_printable(entry))
                return malformed_entry(d, key, (Str){NULL, 0}, "has a character that is not printable ASCII");
        if (entry.data[0] == '!') {
                if (keys[key].sense != EITHER)
                        return malformed_entry(d, key, entry, "must not begin with \"!\" in this key");
                name = str_trim((Str){entry.data + 1, entry.len - 1});
        }
        if (str_is_empty(name) || name.data[0] == '!')
                return malformed_entry(d, key, entry, "must have a name after one \"!\"");
        if (name.len > CARD_ENTRY_MAX)
                return malformed_entry(d, key, entry, "must have at most 95 characters");
        if (d->n == CARD_ENTRIES_MAX)
                return malformed_entry(d, key, (Str){NULL, 0},
                                       "exceeds 64 entries, the most of all such keys of a pod");
        rule.excluded = keys[key].sense == EXCLUDED || name.data != entry.data;
        rule.len = (uint16_t) name.len;
        d->rules[d->n] = rule;
        d->texts[d->n++] = name;
        d->bytes += name.len;
        return 0;
}

static int read_key(Draft *d, const PodAnnotations *from, size_t key) {
        Str rest = value_of(from, key), entry;
        int r = 0;

        while (r == 0 && next_entry(&rest, &entry))
                if (!str_is_empty(entry))
                        r = read_entry(d, key, entry);
        return r;
}

/* Whether every card that this entry names is excluded: the text of some excluded entry is a part
 * of it. */
static bool is_excluded(const Draft *d, size_t wanted) {
        for (size_t i = 0; i < d->n; i++)
                if (d->rules[i].excluded && d->rules[i].by_uuid == d->rules[wanted].by_uuid &&
                    has_part(d->texts[wanted], d->texts[i]))
                        return true;
        return false;
}

/* Refuses a key of which every wanted entry is excluded: it would allow no card in any cluster. */
static int check_contradictions(const Draft *d) {
        for (size_t i = 0; i < d->n;) {
                size_t key = d->rules[i].key, wanted = 0, left = 0;

                for (; i < d->n && d->rules[i].key == key; i++) {
                        wanted += !d->rules[i].excluded;
                        left += !d->rules[i].excluded && !is_excluded(d, i);
                }
                if (wanted > 0 && left == 0)
                        return malformed_entry(d, key, (Str){NULL, 0},
                                               "wants only cards that the pod's annotations exclude");
        }
        return 0;
}

static int finish_choice(const Draft *d, Arena *arena, const CardChoice **ret) {
        size_t head = sizeof(CardChoice) + d->n * sizeof(CardRule);
        CardChoice *c = arena_alloc(arena, 1, head + d->bytes);
        char *at;

        if (!c)
                return -ENOMEM;
        at = (char *) c + head;
        c->size = (uint32_t) (head + d->bytes);
        c->n_rules = (uint32_t) d->n;
        for (size_t i = 0; i < d->n; i++) {
                c->rules[i] = d->rules[i];
                c->rules[i].at = (uint16_t) (at - (char *) c);
                memcpy(at, d->texts[i].data, d->texts[i].len);
                at += d->texts[i].len;
        }
        *ret = c;
        return 0;
}

_Static_assert(sizeof(CardChoice) + CARD_ENTRIES_MAX * (sizeof(CardRule) + CARD_ENTRY_MAX) <= UINT16_MAX,
               "the offset of each text fits its field");

static bool has_keys(const PodAnnotations *from) {
        for (size_t key = 0; key < CARD_KEYS; key++)
                if (!str_is_empty(value_of(from, key)))
                        return true;
        return false;
}

int card_choice_read(const PodAnnotations *from, Arena *arena, const CardChoice **ret,
                     CardChoiceFault *ret_fault) {
        Draft d;
        int r = 0;

        *ret = NULL;
        if (!has_keys(from))
                return 0;
        d.n = d.bytes = 0;
        d.fault = ret_fault;
        for (size_t key = 0; key < CARD_KEYS && r == 0; key++)
                r = read_key(&d, from, key);
        if (r == 0)
                r = check_contradictions(&d);
        return r != 0 || d.n == 0 ? r : finish_choice(&d, arena, ret);
}

/* ---- in words ---- */

static void put_word(CardWords *w, size_t most, Str text) {
        size_t n = text.len < most - w->len ? text.len : most - w->len;

        memcpy(w->text + w->len, text.data, n);
        w->len += n;
        w->text[w->len] = '\0';
}

/* Appends `joint` and the text. False when they do not fit: then the joint and a part of the text
 * are appended, or neither when the joint does not fit; and "..". */
static bool append_word(CardWords *w, size_t most, Str joint, Str text) {
        static const Str more = STR("..");
        bool fits = w->len + joint.len + text.len + more.len <= most;

        if (w->len + joint.len + more.len < most) {
                put_word(w, most, joint);
                put_word(w, fits ? most : most - more.len, text);
        }
        if (!fits)
                put_word(w, most, more);
        return fits;
}

/* The words before an entry. The first entry of a key says whether it is about types or UUIDs. */
static const char *joint_of(const CardRule *rule, bool first, bool first_of_key) {
        if (!first_of_key)
                return rule->excluded ? ", not " : " or ";
        if (rule->excluded)
                return rule->by_uuid ? (first ? " not of UUID " : ", not of UUID ")
                                     : (first ? " not of type " : ", not of type ");
        return rule->by_uuid ? (first ? " of UUID " : ", of UUID ") : (first ? " of type " : ", of type ");
}

void card_choice_format(const CardChoice *c, size_t most, CardWords *ret) {
        *ret = (CardWords){.len = 0};
        for (size_t i = 0; i < c->n_rules; i++) {
                const CardRule *rule = &c->rules[i];
                const char *joint = joint_of(rule, i == 0, i == 0 || rule->key != rule[-1].key);

                if (!append_word(ret, most, str_from(joint), card_choice_text(c, rule)))
                        return;
        }
}
