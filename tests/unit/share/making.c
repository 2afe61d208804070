/* SPDX-License-Identifier: Apache-2.0 */
#include "making.h"
#include "share/refusal_format.h"
#include "wire/node.h"
#include "wire/pod.h"

int try_node(Ledger *l, const char *name, const char *mode, const char *placement, const char *members,
             Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf json = BUF_NULL;
        Node node;
        int r;

        buf_appendf(&json,
                    "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"ack.node.gpu.schedule\":\"%s\",\"ack.node."
                    "gpu.placement\":\"%s\"}%s",
                    name, mode, placement, members);
        r = node_decode(buf_str(&json), &arena, &node, fault);
        if (r != 0)
                TEST_FAIL_("%s: %s", fault->text, json.data);
        r = ledger_node_set(l, &node, fault);
        ASSERT_TRUE(ledger_check(l));
        return r;
}

void set_node(Ledger *l, const char *name, const char *mode, const char *placement, const char *members) {
        Fault fault = FAULT_NULL;

        if (try_node(l, name, mode, placement, members, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
}

Request simple(RequestContainer *c, uint32_t mem, uint32_t core) {
        *c = (RequestContainer){.kind = CONTAINER_MAIN, .mem = mem, .core = core};
        return (Request){.mem = mem, .core = core, .cards = 1, .containers = c, .n_containers = 1};
}

const CardChoice *choose(Arena *arena, PodAnnotations keys) {
        const CardChoice *choice;
        CardChoiceFault fault;

        if (card_choice_read(&keys, arena, &choice, &fault) != 0)
                TEST_FAIL_("%s %s", fault.key, fault.rule);
        return choice;
}

Grant *give(Ledger *l, const LedgerNode *n, const Placement *p, const Request *r) {
        static unsigned next_uid;
        char uid[32];
        GrantSpec spec = {
                .namespace_ = STR("default"),
                .node = ledger_node_name(n),
                .slices = p->slices,
                .n_slices = p->n_slices,
                .has_core = r->core > 0,
                .whole = r->whole,
                .app = r->app,
                .cpu = r->cpu,
        };
        Grant *g;

        (void) snprintf(uid, sizeof uid, "uid-%u", next_uid++);
        spec.name = spec.uid = str_from(uid);
        ASSERT_OK(grant_new(l, &spec, &g));
        ASSERT_TRUE(ledger_check(l));
        return g;
}

Grant *place(Ledger *l, const char *node, const Request *r, char words[static 512]) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        LedgerNode *n = ledger_node_find(l, str_from(node));
        Refusal refusal;
        Placement p;

        words[0] = '\0';
        if (placement_choose_cards(n, r, &arena, &p, &refusal) != 0) {
                _cleanup_buf_ Buf text = BUF_NULL;

                refusal_format(&refusal, &text);
                (void) snprintf(words, 512, "%s", text.data);
                return NULL;
        }
        return give(l, n, &p, r);
}

const LedgerCard *card_at(const Ledger *l, const char *node, size_t i) {
        const LedgerNode *n = ledger_node_find(l, str_from(node));

        ASSERT_TRUE(n && i < ledger_node_n_cards(n));
        return &ledger_node_cards(n)[i];
}
