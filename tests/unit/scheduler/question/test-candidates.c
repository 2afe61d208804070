/* SPDX-License-Identifier: Apache-2.0 */

/* filter in its deferred mode: with a chooser that refuses nothing its answer is that of the usual
 * mode; what a chooser refuses stands in the answer with its reason. */

#include <errno.h>

#include "fixture.h"
#include "scheduler/extender.h"

typedef struct Puppet {
        int takes, result;
        const char *refused; /* the name of a node; NULL: none */
        unsigned asked, chosen, nodes, fit;
        bool has_request;
        char seen[64]; /* the names that choose() saw */
} Puppet;

typedef struct Fixture {
        View *view;
        Metrics metrics;
        SchedulerContext context;
        Extender extender;
        Puppet puppets[CHOOSERS_MAX];
} Fixture;

static int puppet_takes(void *userdata, const CandidatesPod *pod, void **ret_state) {
        Puppet *p = userdata;

        p->asked++;
        p->has_request = pod->request != NULL;
        ASSERT_TEXT(pod->args->pod.meta.name.len > 0 ? "named" : "", "named");
        *ret_state = p;
        return p->takes;
}

static int puppet_choose(void *userdata, void *state, Candidate *first) {
        Puppet *p = userdata;

        ASSERT_TRUE(state == p);
        p->chosen++;
        for (Candidate *c = first; c; c = c->next) {
                (void) snprintf(p->seen + strlen(p->seen), sizeof p->seen - strlen(p->seen), STR_FMT " ",
                                STR_ARG(c->is.name));
                p->nodes++;
                p->fit += c->refusal.code == REFUSAL_NONE;
                if (p->refused && str_eq(c->is.name, str_from(p->refused)))
                        c->refusal = (Refusal){.code = REFUSAL_POLICY, .rule = "unit 1 of policy a is full"};
        }
        return p->result;
}

/* Three nodes: "b" has 8 of 16 units left, the others 16. */
static Fixture setup(void) {
        Fixture f = {0};

        ASSERT_OK(view_new(&f.view));
        for (ViewKind k = VIEW_NODES; k <= VIEW_PODS; k++) {
                view_list_begin(f.view, k);
                view_list_end(f.view, k);
        }
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("a", "cgpu", 16, 1, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("b", "cgpu", 16, 1, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("c", "cgpu", 16, 1, ""));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("y", .mem = "8", .node = "b", .allocation = "{\\\"0\\\":{\\\"0\\\":8}}"));
        return f;
}

static void teardown(Fixture *f) {
        extender_done(&f->extender);
        pending_done(&f->context.pending);
        view_free(f->view);
}

/* The answer of filter; the caller frees it. */
static char *ask(Fixture *f, unsigned n_choosers, unsigned status, const char *pod, const char *members) {
        _cleanup_buf_ Buf body = BUF_NULL;
        const char *type, *allow;
        Buf out = BUF_NULL;
        HttpRequest request = {
                .method = "POST", .path = "/gpushare-scheduler/filter", .content_type = "application/json"};

        buf_appendf(&body, "{\"Pod\":%s,%s}", pod, members);
        request.body = buf_str(&body);
        f->extender.context = &f->context;
        f->context.view = f->view;
        f->context.metrics = &f->metrics;
        f->context.n_choosers = n_choosers;
        for (unsigned i = 0; i < n_choosers; i++)
                f->context.choosers[i] =
                        (Chooser){.takes = puppet_takes, .choose = puppet_choose, .userdata = &f->puppets[i]};
        ASSERT_INT(extender_answer(&f->extender, &request, &out, &type, &allow), status);
        return buf_take(&out);
}

#define NAMES "\"NodeNames\":[\"c\",\"b\",\"nn\",\"a\"]"

static void a_chooser_that_refuses_nothing_changes_nothing(void) {
        static const struct {
                const char *mem, *members;
                uint32_t best;
        } cases[] = {
                {"4", NAMES, 0},
                {"9", NAMES, 0},
                {"17", NAMES, 0},  /* no card is large enough */
                {"1.5", NAMES, 0}, /* no node can ever take it */
                {NULL, NAMES, 0},  /* asks for nothing */
                {"4", "\"NodeNames\":[]", 0},
                {"4", NAMES, 2},
                {"9",
                 "\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"b\"}},{\"metadata\":{\"name\":\"a\"}}]}",
                 0},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fixture f = setup();
                _cleanup_free_ char *pod = strdup(pod_json("x", .mem = cases[i].mem));

                f.context.filter_best = cases[i].best;
                f.puppets[0].takes = 1;
                _cleanup_free_ char *usual = ask(&f, 0, 200, pod, cases[i].members);
                _cleanup_free_ char *deferred = ask(&f, 1, 200, pod, cases[i].members);

                ASSERT_TEXT(deferred, usual);
                ASSERT_INT(f.puppets[0].chosen, 1);
                teardown(&f);
        }
}

static void the_chooser_sees_each_node_once_in_order(void) {
        Fixture f = setup();

        f.puppets[0].takes = 1;
        free(ask(&f, 1, 200, pod_json("x", .mem = "9"), NAMES));
        ASSERT_TEXT(f.puppets[0].seen, "c b nn a ");
        ASSERT_INT(f.puppets[0].nodes, 4);
        ASSERT_INT(f.puppets[0].fit, 2);
        ASSERT_TRUE(f.puppets[0].has_request);
        teardown(&f);
}

static void a_refused_node_has_its_reason(void) {
        Fixture f = setup();
        static const char *const mems[] = {"9", NULL};

        f.puppets[0] = (Puppet){.takes = 1, .refused = "c"};
        for (size_t i = 0; i < ELEMENTSOF(mems); i++) {
                _cleanup_free_ char *answer = ask(&f, 1, 200, pod_json("x", .mem = mems[i]), NAMES);

                ASSERT_CONTAINS(answer,
                                mems[i] ? "\"NodeNames\":[\"a\"]" : "\"NodeNames\":[\"b\",\"nn\",\"a\"]");
                /* No eviction opens a unit. */
                ASSERT_CONTAINS(strstr(answer, "FailedAndUnresolvableNodes"),
                                "\"c\":\"unit 1 of policy a is full\"");
                ASSERT_INT(f.metrics.refusals[REFUSAL_POLICY], i + 1);
        }
        teardown(&f);
}

static void a_chooser_that_does_not_take_the_pod_is_not_asked_to_choose(void) {
        Fixture f = setup();
        _cleanup_free_ char *pod = strdup(pod_json("x", .mem = "9"));
        _cleanup_free_ char *usual = ask(&f, 0, 200, pod, NAMES);
        _cleanup_free_ char *answer = ask(&f, 1, 200, pod, NAMES);

        ASSERT_TEXT(answer, usual);
        ASSERT_INT(f.puppets[0].asked, 1);
        ASSERT_INT(f.puppets[0].chosen, 0);
        teardown(&f);
}

static void choosers_follow_each_other(void) {
        Fixture f = setup();

        f.puppets[0] = (Puppet){.takes = 1, .refused = "c"};
        f.puppets[1] = (Puppet){.takes = 1, .refused = "a"};
        _cleanup_free_ char *answer = ask(&f, 2, 200, pod_json("x", .mem = "9"), NAMES);

        ASSERT_CONTAINS(answer, "\"NodeNames\":[]");
        ASSERT_INT(f.puppets[0].fit, 2);
        ASSERT_INT(f.puppets[1].fit, 1);
        teardown(&f);
}

static void a_lack_of_memory_is_an_error(void) {
        Fixture f = setup();

        f.puppets[0] = (Puppet){.takes = -ENOMEM};
        free(ask(&f, 1, 503, pod_json("x", .mem = "9"), NAMES));
        f.puppets[0] = (Puppet){.takes = 1, .result = -ENOMEM};
        free(ask(&f, 1, 503, pod_json("x", .mem = "9"), NAMES));
        teardown(&f);
}

static void on_news(void *userdata) {
}

/* The evictor must not free cards on nodes that the chooser keeps the pod off. */
static void refused_nodes_are_no_nodes_to_evict_on(void) {
        Fixture f = setup();
        const char *pod = pod_json("x", .mem = "9");

        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("x", .mem = "9", .phase = "Pending", .priority = 5));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("z", .mem = "8", .node = "a", .allocation = "{\\\"0\\\":{\\\"0\\\":8}}"));
        f.context.leading = true;
        f.context.pending.on_news = on_news;
        f.puppets[0] = (Puppet){.takes = 1, .refused = "a"};
        free(ask(&f, 1, 200, pod, "\"NodeNames\":[\"a\",\"b\"]"));
        ASSERT_TEXT(buf_str(&pending_find(&f.context.pending, STR("uid-x"))->nodes).data, "b\n");
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(TEST(a_chooser_that_refuses_nothing_changes_nothing),
                         TEST(the_chooser_sees_each_node_once_in_order), TEST(a_refused_node_has_its_reason),
                         TEST(a_chooser_that_does_not_take_the_pod_is_not_asked_to_choose),
                         TEST(choosers_follow_each_other), TEST(a_lack_of_memory_is_an_error),
                         TEST(refused_nodes_are_no_nodes_to_evict_on));
}
