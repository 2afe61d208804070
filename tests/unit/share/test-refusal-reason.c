/* SPDX-License-Identifier: Apache-2.0 */

/* The short texts of all refusals: kube-scheduler writes a count before each, and takes the whole
 * for a format. */

#include "making.h"
#include "share/refusal_format.h"
#include "share/refusal_reason.h"

#define LONG_NAME "a-name-of-sixty-three-characters-which-is-the-most-for-a-contai"
#define MOST      UINT32_MAX

typedef struct Case {
        Refusal refusal;
        const char *mode, *members; /* of the node; NULL: there is none */
        const char *text;
} Case;

#define POD(code_, ...) .refusal = {.code = REFUSAL_##code_, .container = STR("main"), __VA_ARGS__}
#define NODE(code_, mode_, members_, ...)                                                                    \
        .refusal = {.code = REFUSAL_##code_, __VA_ARGS__}, .mode = (mode_), .members = (members_)
#define UNIT(text) ANNOTATIONS("\"aliquot.dev/gpu-mem-unit\":\"" text "\"") EQUAL(120, 8)
#define GIB        EQUAL(120, 8)
#define NO_GPU     "}}"

#define MODELS                                                                                               \
        ANNOTATIONS("\"aliquot.dev/cards\":\"[{\\\"index\\\":0,\\\"units\\\":15,\\\"model\\\":\\\"Tesla "    \
                    "V100\\\"}]\"")                                                                          \
        EQUAL(15, 1)

/* One wanted type with a long name, and a percent sign in it. */
static const union {
        struct {
                uint32_t size, n_rules; /* as in CardChoice */
                CardRule rule;
                char text[48];
        } bytes;
        CardChoice choice;
} one_type = {.bytes = {.size = sizeof one_type,
                        .n_rules = 1,
                        .rule = {.at = sizeof(CardChoice) + sizeof(CardRule), .len = 41},
                        .text = "NVIDIA%A100-SXM4-80GB-of-the-longest-name"}};

static const Case cases[] = {
        {POD(CORE_STEP, .text = STR("33")),
         .text = "container main: gpu-core.percentage is 33, must be a multiple of 5 from 5 to 100"},
        {POD(CORE_SUM, .core = 120),
         .text = "the containers ask for 120 percent of compute together, a card has 100"},
        {POD(MALFORMED, .text = STR("1.5")),
         .text = "container main: gpu-mem is 1.5, must be a whole number"},
        {POD(MALFORMED, .text = STR("40%"), .core = 1),
         .text = "container main: gpu-core.percentage is 40?, must be a whole number"},
        {POD(RANGE, .text = STR("-3")), .text = "container main: gpu-mem is -3, must be from 0 to 16843009"},
        {POD(RANGE, .text = STR("9E"), .core = 1),
         .text = "container main: gpu-core.percentage is 9E, must be a multiple of 5 from 5 to 100"},
        {POD(RANGE, .text = STR("3Gi"), .unit_mib = 1024),
         .text = "container main: gpu-mem is 3Gi; write 3, the unit is GiB here"},
        {POD(RANGE, .text = STR("3Gi"), .unit_mib = 128),
         .text = "container main: gpu-mem is 3Gi; write 24, the unit is 128MiB here"},
        {POD(RANGE, .text = STR("1500Mi"), .unit_mib = 1024),
         .text = "container main: gpu-mem is 1500Mi; write 2, the unit is GiB here"},
        {POD(RANGE, .text = STR("3G"), .unit_mib = 1024),
         .text = "container main: gpu-mem is 3G; write 3, the unit is GiB here"},
        {POD(MALFORMED, .text = STR("3GiB")),
         .text = "container main: gpu-mem is 3GiB; write 3 where the unit is GiB"},
        {POD(RANGE, .text = STR("3Gi"), .core = 1),
         .text = "container main: gpu-core.percentage is 3Gi, must be a multiple of 5 from 5 to 100"},
        {POD(RANGE, .core = 0), .text = "the containers ask for more gpu-mem together than can be counted"},
        {POD(MIXED_KINDS, .text = STR("first")),
         .text = "containers first and main must both ask for compute percent, or neither"},
        {POD(CORE_WITHOUT_MEM, .text = STR("30")),
         .text = "container main: gpu-core.percentage is 30, must come together with gpu-mem"},
        {POD(COUNT_MALFORMED, .text = STR("two")),
         .text = "gpu-count is two, must be a whole number from 1 to 256"},
        {POD(COUNT_MALFORMED, .text = STR("2"), .cards = 3),
         .text = "gpu-count is 2, but elsewhere in the pod it is 3"},
        {POD(COUNT_UNEVEN, .text = STR("7"), .cards = 2),
         .text = "container main: gpu-mem is 7, must be a multiple of gpu-count, 2"},
        {POD(COUNT_WITH_CORE, .cards = 2),
         .text = "gpu-count is 2, must be 1 or absent together with gpu-core.percentage"},
        {POD(COUNT_WITHOUT_MEM, .text = STR("2")), .text = "gpu-count must come together with gpu-mem"},
        {POD(TOO_MANY_CONTAINERS, .core = 0), .text = "more than 255 containers ask for GPU resources"},
        {NODE(CARD_LIST, NULL, NULL, .container = STR("nvidia.com/include-gpu-uuid"), .text = STR("!A"),
              .rule = "must not begin with \"!\" in this key"),
         .text = "annotation nvidia.com/include-gpu-uuid: an entry must not begin with \"!\" in this key"},
        {NODE(CARD_LIST, NULL, NULL, .container = STR("nvidia.com/include-gpu-uuid"),
              .rule = "exceeds 64 entries, the most of all such keys of a pod"),
         .text = "annotation nvidia.com/include-gpu-uuid exceeds 64 entries, the most of all such keys of a "
                 "pod"},
        {POD(NODE_UNKNOWN, .core = 0), .text = "node(s) are not known as GPU nodes"},
        {NODE(NODE_MODE, "", NO_GPU, .mem = 2), .text = "node(s) have no label ack.node.gpu.schedule"},
        {NODE(NODE_MODE, "core-mem", NO_GPU, .mem = 2),
         .text = "node(s) have a label ack.node.gpu.schedule whose value is no mode"},
        {NODE(NODE_MODE, "mig", GIB, .mem = 2), .text = "node(s) are not in mode share, cgpu or core_mem"},
        {NODE(NODE_MODE, "cgpu", GIB, .mem = 2, .core = 30),
         .text = "node(s) are not in mode core_mem, which compute percent needs"},
        {NODE(NODE_CHANGING, "cgpu", GIB, .mem = 2),
         .text = "node(s) take no new slice while a change of mode or unit waits"},
        {NODE(NODE_NOT_READY, "cgpu", GIB, .mem = 2), .text = "node(s) have not reported their cards yet"},
        {NODE(NODE_NOT_READY, "cgpu", ANNOTATIONS("\"aliquot.dev/cards\":\"[\"") GIB, .mem = 2),
         .text = "node(s) have an annotation aliquot.dev/cards that does not decode"},
        {NODE(NODE_MIXED, "core_mem", GIB, .mem = 2, .core = 30),
         .text = "node(s) run pods without compute percent, and take none with it"},
        {NODE(NODE_MIXED, "core_mem", GIB, .mem = 2),
         .text = "node(s) run pods with compute percent, and take none without it"},
        {NODE(CARD_TOO_SMALL, "cgpu", GIB, .mem = 60, .limit = 15),
         .text = "no card is large enough for 60 GiB of gpu-mem"},
        {NODE(CARD_TOO_SMALL, "cgpu", GIB, .mem = 60, .limit = 15, .cards = 2),
         .text = "fewer than 2 cards are large enough for 60 GiB of gpu-mem"},
        {NODE(CARDS_TOO_FEW, "cgpu", GIB, .mem = 2, .cards = 9),
         .text = "node(s) have fewer than 9 healthy cards"},
        {NODE(NO_ROOM, "cgpu", GIB, .mem = 60), .text = "no card has 60 GiB of gpu-mem free"},
        {NODE(NO_ROOM, "core_mem", GIB, .mem = 3, .core = 30),
         .text = "no card has 3 GiB of gpu-mem and 30 percent of compute free"},
        {NODE(NO_ROOM, "cgpu", GIB, .mem = 3, .cards = 4),
         .text = "fewer than 4 cards have 3 GiB of gpu-mem free"},
        {NODE(NO_ROOM, "cgpu", UNIT("128MiB"), .mem = 16), .text = "no card has 16 x 128MiB of gpu-mem free"},
        {NODE(NO_ROOM, "cgpu", UNIT("2GiB"), .mem = 4), .text = "no card has 4 x 2GiB of gpu-mem free"},
        {NODE(NO_ROOM, "cgpu", UNIT("MiB"), .mem = 512), .text = "no card has 512 MiB of gpu-mem free"},
        {NODE(PODS_PER_CARD, "cgpu", GIB, .mem = 2, .limit = 20),
         .text = "the cards with room hold 20 pods each, aliquot.dev/max-pods-per-card"},
        {NODE(UNHEALTHY, "cgpu", GIB, .mem = 2), .text = "node(s) have no healthy card"},
        {NODE(UNHEALTHY, "cgpu", ANNOTATIONS("\"aliquot.dev/cordon-cards\":\"1\"") GIB, .mem = 2),
         .text = "node(s) have only cordoned or unhealthy cards"},
        {NODE(NO_SUCH_CARD, "cgpu", MODELS, .mem = 2, .choice = &one_type.choice),
         .text = "node(s) have no card of type NVIDIA?A100-SXM4-80GB-of-th.."},
        {NODE(NO_SUCH_CARD, "cgpu", GIB, .mem = 2, .cards = 2, .choice = &one_type.choice),
         .text = "node(s) have fewer than 2 cards of type NVIDIA?A100-S.., the models of some "
                 "are not "
                 "known"},
        {NODE(NO_ROOM, "core_mem", GIB, .mem = 3, .core = 30, .choice = &one_type.choice),
         .text = "no card of type NVIDIA?A100-S.. has 3 GiB of gpu-mem and 30 percent of compute free"},
        {NODE(CARD_TOO_SMALL, "cgpu", GIB, .mem = 60, .cards = 2, .choice = &one_type.choice),
         .text = "fewer than 2 cards of type NVIDIA?A100-S.. are large enough for 60 GiB of gpu-mem"},
        {NODE(CARDS_TOO_FEW, "cgpu", GIB, .mem = 2, .cards = 9, .choice = &one_type.choice),
         .text = "node(s) have fewer than 9 healthy cards of type NVIDIA?A100-SXM4-80GB-of-th.."},
        {NODE(UNHEALTHY, "cgpu", GIB, .mem = 2, .choice = &one_type.choice),
         .text = "node(s) have no healthy card of type NVIDIA?A100-SXM4-80GB-of-th.."},
        {NODE(PODS_PER_CARD, "cgpu", GIB, .mem = 2, .limit = 20, .choice = &one_type.choice),
         .text = "the cards of type NVIDIA?A100-S.. with room hold 20 pods each, "
                 "aliquot.dev/max-pods-per-card"},
        {POD(WHOLE, .text = STR("2"), .rule = "must not come together with the label aliyun.com/gpu-count"),
         .text = "aliyun.com/gpu is 2, must not come together with the label aliyun.com/gpu-count"},
        {NODE(NODE_MODE, "share", GIB, .mem = 1, .whole = true),
         .text = "node(s) are not in mode topology, which aliyun.com/gpu needs"},
        {NODE(NO_ROOM, "topology", GIB, .mem = 1, .cards = 1, .whole = true),
         .text = "node(s) have fewer than 1 idle card"},
        {NODE(NO_ROOM, "topology", GIB, .mem = 1, .cards = 4, .whole = true, .choice = &one_type.choice),
         .text = "node(s) have fewer than 4 idle cards of type NVIDIA?A100-SXM4-80GB-of-th.."},
        {NODE(POLICY, NULL, NULL, .rule = "policy a\xff%: node(s) are in no unit"),
         .text = "policy a??: node(s) are in no unit"},
        {NODE(GANG, NULL, NULL, .rule = "gang a waits for members: 2 of 3"),
         .text = "gang a waits for members: 2 of 3"},
};

static void reason_of(const Case *c, const Refusal *r, RefusalReason *ret) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Refusal refusal = *r;
        Fault fault = FAULT_NULL;

        ASSERT_OK(ledger_new(&l));
        if (c->members) {
                (void) try_node(l, "n1", c->mode, "", c->members, &fault);
                refusal.node = ledger_node_find(l, STR("n1"));
                ASSERT_TRUE(refusal.node);
        }
        refusal_reason(&refusal, ret);
}

/* What holds for each reason, whatever stands in it. */
static void check(const RefusalReason *reason) {
        ASSERT_INT(strlen(reason->text), reason->len);
        ASSERT_TRUE(reason->len > 0 && reason->len <= REFUSAL_REASON_MAX);
        ASSERT_TRUE(reason->text[0] >= 'a' && reason->text[0] <= 'z');
        ASSERT_FALSE(strchr(reason->text, '%'));
}

static void each_refusal_has_a_reason(void) {
        bool seen[REFUSAL_MAX_] = {0};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                RefusalReason reason;

                reason_of(&cases[i], &cases[i].refusal, &reason);
                ASSERT_TEXT(reason.text, cases[i].text);
                check(&reason);
                seen[cases[i].refusal.code] = true;
        }
        for (int code = REFUSAL_NONE + 1; code < REFUSAL_MAX_; code++)
                if (!seen[code])
                        TEST_FAIL_("no case for %s", refusal_label((RefusalCode) code));
}

/* The longest names, values and numbers: no reason is cut at its end. */
static void the_longest_reasons_fit(void) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *end = strrchr(cases[i].text, ' ');
                Refusal r = cases[i].refusal;
                RefusalReason reason;
                bool by_number = end[1] >= '0' && end[1] <= '9';

                r.mem = r.limit = MOST;
                r.core = r.core > 0 ? MOST : 0;
                r.cards = r.cards > 1 ? MOST : r.cards;
                r.container = str_is_empty(r.container) ? r.container : STR(LONG_NAME);
                r.text = str_is_empty(r.text) ? r.text : STR("%" LONG_NAME "\n" LONG_NAME);
                reason_of(&cases[i], &r, &reason);
                check(&reason);
                if (!by_number && r.unit_mib == 0 && !strstr(cases[i].text, "where")) /* else another rule */
                        ASSERT_TEXT(reason.text + reason.len - strlen(end), end);
        }
}

/* Cards with different amounts, nodes of different size: one reason. */
static void equal_cases_are_equal(void) {
        static const char *const nodes[] = {EQUAL(30, 2), EQUAL(120, 8), EQUAL(64, 8)};
        RefusalReason first = {0};

        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                _cleanup_(ledger_freep) Ledger *l = NULL;
                RequestContainer c;
                Request r = simple(&c, 90, 0);
                RefusalReason reason;
                Refusal refusal;

                ASSERT_OK(ledger_new(&l));
                set_node(l, "n", "cgpu", "", nodes[i]);
                ASSERT_INT(placement_check(ledger_node_find(l, STR("n")), &r, &refusal), PLACEMENT_E_REFUSED);
                refusal_reason(&refusal, &reason);
                if (i == 0)
                        first = reason;
                ASSERT_TEXT(reason.text, first.text);
        }
}

static void an_answer_has_no_percent_sign(void) {
        _cleanup_buf_ Buf out = BUF_NULL;

        refusal_reason_escape("gpu0 3 of 15 and 20%, 5 %", &out);
        ASSERT_STR(buf_str(&out), STR("gpu0 3 of 15 and 20 percent, 5  percent"));
}

int main(void) {
        return TEST_MAIN(TEST(each_refusal_has_a_reason), TEST(the_longest_reasons_fit),
                         TEST(equal_cases_are_equal), TEST(an_answer_has_no_percent_sign));
}
