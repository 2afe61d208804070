/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/simulated_cards.h"

#include <errno.h>

#include "gpu/cards/simulated_links.h"
#include "share/memory_unit.h"

/* UUIDs derive from the node's name, so that each run has the same ones. */
static void name_card(MachineCard *c, Str seed) {
        uint64_t a = str_hash64(seed, c->index), b = str_hash64(seed, a);

        (void) snprintf(c->uuid, sizeof c->uuid, "GPU-%08x-%04x-%04x-%04x-%012llx", (unsigned) (a >> 32),
                        (unsigned) (a >> 16) & 0xffff, (unsigned) a & 0xffff, (unsigned) (b >> 48),
                        (unsigned long long) b & 0xffffffffffff);
}

/* Parses "4xMODEL:16160MiB" or "MODEL:16160MiB". An `x` after digits belongs to the count only when
 * a model follows. */
static int parse_group(Str group, Str *ret_model, uint32_t *ret_count, uint32_t *ret_mib) {
        Str memory = group, model, after_x;
        MemoryUnit mib;
        uint32_t count = 1;

        model = str_trim(str_split(&memory, ':'));
        memory = str_trim(memory);
        after_x = model;
        if (str_to_u32(str_split(&after_x, 'x'), &count))
                model = after_x;
        if (str_is_empty(model) || str_is_empty(memory) || count == 0 || memory_unit_parse(memory, &mib) != 0)
                return CARDS_E_MALFORMED;
        *ret_model = model;
        *ret_count = count;
        *ret_mib = mib.mib;
        return 0;
}

static int add_group(CardList *l, Str seed, Str group, Fault *fault) {
        MachineCard c = {.numa = -1, .healthy = true};
        uint32_t count;
        Str model;

        if (parse_group(group, &model, &count, &c.mib) != 0)
                return fault_set(fault, CARDS_E_MALFORMED,
                                 "\"" STR_FMT "\" must be COUNTxMODEL:MEMORY, as 4xTesla-V100:16160MiB",
                                 STR_ARG(group));
        if (model.len >= sizeof c.model)
                return fault_set(fault, CARDS_E_MALFORMED,
                                 "\"" STR_FMT "\" names a model of more than %zu bytes", STR_ARG(group),
                                 sizeof c.model - 1);
        if (count > CARDS_MAX - l->n)
                return fault_set(fault, CARDS_E_MALFORMED,
                                 "\"" STR_FMT "\" makes more than %d cards of one node", STR_ARG(group),
                                 CARDS_MAX);
        memcpy(c.model, model.data, model.len);
        for (; count > 0; count--) {
                c.index = c.minor = (uint32_t) l->n;
                name_card(&c, seed);
                l->cards[l->n++] = c;
        }
        return 0;
}

/* Cuts the links off the text: what follows the first "/" after the memory of the last group. A
 * model may have that character, a memory size has not. */
static Str cut_links(Str *text) {
        Str links = {NULL, 0};
        size_t at = text->len;

        while (at > 0 && text->data[at - 1] != ':')
                at--;
        while (at > 0 && at < text->len && text->data[at] != '/')
                at++;
        if (at == 0 || at == text->len)
                return links;
        links = (Str){text->data + at + 1, text->len - at - 1};
        text->len = at;
        return links;
}

int cards_simulate(Str text, Str seed, CardList *ret, Fault *fault) {
        Str links = cut_links(&text);
        _cleanup_(card_list_done) CardList l = {0};
        int r;

        l.cards = calloc(CARDS_MAX, sizeof *l.cards);
        if (!l.cards)
                return -ENOMEM;
        do
                r = add_group(&l, seed, str_split(&text, ','), fault);
        while (r == 0 && text.data);
        if (r == 0 && links.data)
                r = simulated_links_read(links, &l, fault);
        return r != 0 ? r : card_list_copy(&l, ret);
}
