/* SPDX-License-Identifier: Apache-2.0 */

/* Random clusters and policies against an oracle. The oracle keeps the API server's objects, and
 * counts pods by them alone. In every step:
 *   - filter opens the unit that the oracle expects, or none;
 *   - no pod is sent to a later unit while an earlier one is offered with room and max allows;
 *   - no Binding exceeds max, however late the watch is, and after each restart. */

#include "fixture.h"
#include "policy_check.h"
#include "random.h"
#include "scheduler/question/policy_bind.h"
#include "scheduler/question/policy_filter.h"
#include "scheduler/verbs/verbs.h"

enum { NODES = 12, PODS = 60, UNITS = 3, STEPS = 10000, SLOTS = 4, NO_UNIT = UNITS };

typedef struct LabPod {
        bool exists, terminating;
        unsigned serial; /* makes the UID of each creation differ */
        int node;        /* -1: not bound */
        bool binding;    /* begun, and the API server has not answered */
        int bind_node;
        char mark[160];      /* its annotations, by the Binding */
        bool labelled;       /* it has the podLabels, by the Binding */
        bool news;           /* the watch has not told its last change */
        unsigned group;      /* value of the label that groups */
        uint64_t note_until; /* of filter's last answer; 0: none */
        int note_unit;
        int chosen; /* node + 1 that a slow cycle will bind it to; 0: none */
} LabPod;

typedef struct Lab {
        View *view;
        Metrics metrics;
        Random random;
        uint64_t now;
        int labels[NODES]; /* unit of the node by its label; NO_UNIT: another label */
        LabPod pods[PODS];
        unsigned serial, version;
        bool has_max[UNITS], grouped, writes_labels, counts_terminating;
        uint32_t max[UNITS];
        int next; /* whenTryNextUnits */
        unsigned opened, waited, refused_late, bound;
} Lab;

static uint32_t pick(Lab *l, uint32_t below) {
        return random_below(&l->random, below);
}

/* ---- texts ---- */

static const char *const next_names[] = {"LackResourceOrExceedMax", "ExceedMax",
                                         "LackResourceAndNoTerminating", "TimeoutOrExceedMax"};

static void feed_policy(Lab *l) {
        _cleanup_buf_ Buf out = BUF_NULL;

        buf_appendf(&out,
                    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"p\",\"uid\":\"u%u\"},\"spec\":{"
                    "\"selector\":{\"app\":\"web\"},\"units\":[",
                    l->version++);
        for (int k = 0; k < UNITS; k++) {
                buf_appendf(&out, "%s{\"nodeSelector\":{\"unit\":\"%d\"}", k > 0 ? "," : "", k);
                if (l->has_max[k])
                        buf_appendf(&out, ",\"max\":%u", l->max[k]);
                if (l->writes_labels)
                        buf_appendf(&out, ",\"podLabels\":{\"in\":\"unit%d\"}", k);
                buf_append_char(&out, '}');
        }
        buf_appendf(&out, "],\"ignoreTerminatingPod\":%s", l->counts_terminating ? "false" : "true");
        if (l->grouped)
                buf_append_str(&out, STR(",\"matchLabelKeys\":[\"group\"]"));
        buf_appendf(&out, ",\"whenTryNextUnits\":{\"policy\":\"%s\"}}}", next_names[l->next]);
        feed(l->view, VIEW_POLICIES, REFLECTOR_MODIFIED, out.data);
}

static void feed_node(Lab *l, int i, ReflectorEvent event) {
        char text[256];

        (void) snprintf(text, sizeof text,
                        "{\"metadata\":{\"name\":\"n%d\",\"uid\":\"un%d\",\"labels\":{\"unit\":\"%d\"}}}", i,
                        i, l->labels[i]);
        feed(l->view, VIEW_NODES, event, text);
}

static void write_pod(const Lab *l, int i, Buf *out) {
        const LabPod *p = &l->pods[i];

        buf_appendf(
                out,
                "{\"metadata\":{\"namespace\":\"default\",\"name\":\"p%d\",\"uid\":\"u%d-%u\",\"labels\":{"
                "\"app\":\"web\",\"group\":\"%u\"%s",
                i, i, p->serial, p->group, p->labelled ? ",\"in\":\"unit" : "");
        if (p->labelled)
                buf_appendf(out, "%d\"", l->labels[p->node]);
        buf_appendf(out, "},\"annotations\":{%s}%s},\"spec\":{\"schedulerName\":\"ack-co-scheduler\"",
                    p->mark, p->terminating ? ",\"deletionTimestamp\":\"2026-11-21T00:00:00Z\"" : "");
        if (p->node >= 0)
                buf_appendf(out, ",\"nodeName\":\"n%d\"", p->node);
        buf_append_str(out, STR(",\"containers\":[{\"name\":\"c\"}]},\"status\":{\"phase\":\"Pending\"}}"));
}

static void feed_pod(Lab *l, int i, ReflectorEvent event) {
        _cleanup_buf_ Buf out = BUF_NULL;

        write_pod(l, i, &out);
        feed(l->view, VIEW_PODS, event, out.data);
        l->pods[i].news = false;
}

static void list(Lab *l) {
        view_list_begin(l->view, VIEW_NODES);
        for (int i = 0; i < NODES; i++)
                feed_node(l, i, REFLECTOR_LISTED);
        view_list_end(l->view, VIEW_NODES);
        view_list_begin(l->view, VIEW_PODS);
        for (int i = 0; i < PODS; i++)
                if (l->pods[i].exists)
                        feed_pod(l, i, REFLECTOR_LISTED);
        view_list_end(l->view, VIEW_PODS);
}

/* ---- the oracle ---- */

static int unit_of(const Lab *l, int node) {
        return l->labels[node];
}

static bool is_counted(const Lab *l, const LabPod *p, const LabPod *asker, int unit) {
        bool there = p->node >= 0 && unit_of(l, p->node) == unit;
        bool soon = p->binding && unit_of(l, p->bind_node) == unit;
        bool noted =
                !p->binding && p->node < 0 && p != asker && p->note_until > l->now && p->note_unit == unit;

        if (!p->exists || (p->terminating && !l->counts_terminating))
                return false;
        if (l->grouped && p->group != asker->group)
                return false;
        return there || soon || noted;
}

static uint32_t count(const Lab *l, const LabPod *asker, int unit) {
        uint32_t n = 0;

        for (int i = 0; i < PODS; i++)
                n += is_counted(l, &l->pods[i], asker, unit);
        return n;
}

static bool is_full(const Lab *l, const LabPod *asker, int unit) {
        return l->has_max[unit] && count(l, asker, unit) >= l->max[unit];
}

static bool is_terminating(const Lab *l, int unit) {
        for (int i = 0; i < PODS; i++) {
                const LabPod *p = &l->pods[i];

                if (p->exists && p->terminating &&
                    ((p->node >= 0 && unit_of(l, p->node) == unit) ||
                     (p->binding && unit_of(l, p->bind_node) == unit)))
                        return true;
        }
        return false;
}

static int expected(const Lab *l, const LabPod *asker, const bool *room) {
        for (int k = 0; k < UNITS; k++) {
                bool full = is_full(l, asker, k);

                if (room[k] && !full)
                        return k;
                switch (l->next) {
                case 1:
                        if (!full && l->has_max[k])
                                return NO_UNIT;
                        break;
                case 2:
                        if (is_terminating(l, k))
                                return NO_UNIT;
                        break;
                case 3: /* no pod has waited */
                        if (!full && l->has_max[k])
                                return NO_UNIT;
                        break;
                default:
                        break;
                }
        }
        return NO_UNIT;
}

/* ---- steps ---- */

static int taken(const Lab *l, int node) {
        int n = 0;

        for (int i = 0; i < PODS; i++)
                n += l->pods[i].exists &&
                     (l->pods[i].node == node || (l->pods[i].binding && l->pods[i].bind_node == node));
        return n;
}

/* The nodes that kube-scheduler offers. Returns how many. */
static size_t offer(Lab *l, Buf *names, bool *room) {
        size_t n = 0;

        for (int i = 0; i < NODES; i++) {
                if (taken(l, i) >= SLOTS || pick(l, 10) == 0)
                        continue;
                buf_appendf(names, "%s\"n%d\"", n++ > 0 ? "," : "", i);
                if (unit_of(l, i) < UNITS)
                        room[unit_of(l, i)] = true;
        }
        return n;
}

static void filter(Lab *l, int i, Buf *names, Buf *out) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf body = BUF_NULL;
        SchedulerContext c = {.view = l->view,
                              .metrics = &l->metrics,
                              .choosers = {policy_filter_chooser(l->view->policies)},
                              .n_choosers = 1,
                              .now = l->now,
                              .arena = &arena};

        buf_append_str(&body, STR("{\"Pod\":"));
        write_pod(l, i, &body);
        buf_appendf(&body, ",\"NodeNames\":[%.*s]}", (int) names->len, names->len > 0 ? names->data : "");
        ASSERT_INT(verb_filter(&c, buf_str(&body), out), 200);
}

static int node_of(const char *digits) {
        uint32_t node;

        ASSERT_TRUE(str_to_u32((Str){digits, strspn(digits, "0123456789")}, &node));
        return (int) node;
}

/* Chooses one of the answered nodes; -1: none. All must be of one unit. */
static int choose_node(Lab *l, const char *answer, int *ret_unit) {
        const char *p = strstr(answer, "\"NodeNames\":["), *end;
        int nodes[NODES], n = 0;

        ASSERT_TRUE(p);
        end = strchr(p, ']');
        for (p = strchr(p, '[') + 1; p < end; p = strchr(p + 1, '"') + 1 + (strchr(p + 1, '"')[1] == ','))
                nodes[n++] = node_of(p + 2);
        *ret_unit = NO_UNIT;
        if (n == 0)
                return -1;
        *ret_unit = unit_of(l, nodes[0]);
        for (int i = 1; i < n; i++)
                ASSERT_INT(unit_of(l, nodes[i]), *ret_unit);
        return nodes[pick(l, (uint32_t) n)];
}

static void bind(Lab *l, int i, int node) {
        _cleanup_buf_ Buf annotations = BUF_NULL, labels = BUF_NULL;
        LabPod *p = &l->pods[i];
        char uid[32], name[16];
        Fault fault = FAULT_NULL;
        int r;

        (void) snprintf(uid, sizeof uid, "u%d-%u", i, p->serial);
        (void) snprintf(name, sizeof name, "n%d", node);
        r = policy_bind_begin(l->view->policies, STR("default"), str_from(uid), str_from(name), l->now,
                              &annotations, &labels, &fault);
        p->note_until = 0;
        p->chosen = 0;
        if (unit_of(l, node) == NO_UNIT || is_full(l, p, unit_of(l, node))) {
                if (r != POLICY_E_REFUSED)
                        TEST_FAIL_("bound beyond max: unit %d has %u", unit_of(l, node),
                                   count(l, p, unit_of(l, node)));
                l->refused_late++;
                return;
        }
        if (r != 0)
                TEST_FAIL_("not bound: %s", fault.text);
        ASSERT_TRUE(l->writes_labels == (labels.len > 0));
        (void) snprintf(p->mark, sizeof p->mark, "%s", annotations.data + 1);
        p->binding = true;
        p->bind_node = node;
        l->bound++;
}

/* The watch is late: it tells of the pod as it was before its Binding. */
static void feed_old(Lab *l, int i) {
        LabPod now = l->pods[i];

        l->pods[i].node = -1;
        l->pods[i].labelled = false;
        l->pods[i].mark[0] = '\0';
        feed_pod(l, i, REFLECTOR_MODIFIED);
        l->pods[i] = now;
}

/* The API server answers a Binding: it was carried out, or not. */
static void answer(Lab *l, int i) {
        LabPod *p = &l->pods[i];
        bool good = pick(l, 8) != 0 && !p->terminating;
        char uid[32], name[16];

        (void) snprintf(uid, sizeof uid, "u%d-%u", i, p->serial);
        p->binding = false;
        if (good) {
                p->node = p->bind_node;
                p->labelled = l->writes_labels && pick(l, 2) == 0; /* an older server */
                p->news = true;
        } else
                p->mark[0] = '\0';
        (void) snprintf(name, sizeof name, "n%d", p->bind_node);
        policy_bind_end(l->view->policies, str_from(uid), str_from(name), good,
                        l->view->kinds[VIEW_PODS].generation);
        if (good && pick(l, 4) == 0)
                feed_old(l, i);
}

static void schedule(Lab *l, int i) {
        _cleanup_buf_ Buf names = BUF_NULL, out = BUF_NULL;
        bool room[UNITS + 1] = {false};
        LabPod *p = &l->pods[i];
        int node, unit, wanted;

        (void) offer(l, &names, room);
        wanted = expected(l, p, room);
        filter(l, i, &names, &out);
        node = choose_node(l, out.data, &unit);
        if (unit != wanted)
                TEST_FAIL_("unit %d, expected %d (policy %s): %s", unit, wanted, next_names[l->next],
                           out.data);
        for (int k = 0; k < unit && unit < UNITS; k++)
                ASSERT_TRUE(!room[k] || is_full(l, p, k));
        p->note_until = unit < UNITS ? l->now + POLICY_NOTE_LASTS : 0;
        p->note_unit = unit;
        if (node < 0) {
                l->waited++;
                return;
        }
        l->opened++;
        switch (pick(l, 6)) {
        case 0:
                break; /* the cycle fails behind filter */
        case 1:
        case 2:
                p->chosen = node + 1;
                break;
        default:
                bind(l, i, node);
        }
}

static void delete (Lab *l, int i) {
        LabPod *p = &l->pods[i];

        if (p->node >= 0 && !p->terminating) {
                p->terminating = true;
                feed_pod(l, i, REFLECTOR_MODIFIED);
                return;
        }
        feed_pod(l, i, REFLECTOR_DELETED);
        *p = (LabPod){.node = -1};
}

static void create(Lab *l, int i) {
        l->pods[i] = (LabPod){.exists = true, .serial = l->serial++, .node = -1, .group = pick(l, 2)};
        feed_pod(l, i, REFLECTOR_ADDED);
}

static void change_policy(Lab *l) {
        bool any = false;

        for (int k = 0; k < UNITS; k++) {
                l->has_max[k] = pick(l, 4) != 0;
                l->max[k] = pick(l, 8);
                any |= l->has_max[k];
        }
        l->grouped = any && pick(l, 3) == 0;
        l->next = (int) pick(l, 4);
        l->counts_terminating = pick(l, 2) == 0;
        feed_policy(l);
        list(l);
        for (int i = 0; i < PODS; i++)
                l->pods[i].note_until = 0;
}

/* A new process: it knows what the API server has. Open Bindings have been answered by then. */
static void restart(Lab *l) {
        for (int i = 0; i < PODS; i++) {
                if (l->pods[i].binding)
                        answer(l, i);
                l->pods[i].note_until = 0;
        }
        view_free(l->view);
        ASSERT_OK(view_new(&l->view));
        list(l);
        feed_policy(l);
        list(l);
}

static void step(Lab *l) {
        int i = (int) pick(l, PODS);
        LabPod *p = &l->pods[i];
        uint32_t kind = pick(l, 1000);

        l->now += pick(l, (uint32_t) USEC_PER_SEC / 4);
        if (kind < 4)
                restart(l);
        else if (kind < 10)
                change_policy(l);
        else if (kind < 14)
                list(l);
        else if (kind < 30) {
                int node = (int) pick(l, NODES);

                l->labels[node] = (int) pick(l, UNITS + 1);
                feed_node(l, node, REFLECTOR_MODIFIED);
        } else if (!p->exists)
                create(l, i);
        else if (p->binding)
                answer(l, i);
        else if (p->news && pick(l, 2) == 0)
                feed_pod(l, i, REFLECTOR_MODIFIED);
        else if (p->node < 0 && p->chosen > 0)
                bind(l, i, p->chosen - 1);
        else if (p->node < 0)
                schedule(l, i);
        else if (pick(l, 3) == 0)
                delete (l, i);
        ASSERT_TRUE(policy_table_check(l->view->policies));
}

static void run(uint64_t seed, bool writes_labels) {
        Lab l = {.random = {seed}, .now = USEC_PER_SEC, .writes_labels = writes_labels};

        for (int i = 0; i < PODS; i++)
                l.pods[i].node = -1;
        for (int i = 0; i < NODES; i++)
                l.labels[i] = (int) pick(&l, UNITS + 1);
        ASSERT_OK(view_new(&l.view));
        list(&l);
        change_policy(&l);
        for (unsigned i = 0; i < STEPS; i++)
                step(&l);
        printf("# opened %u, waited %u, refused at bind %u, bound %u\n", l.opened, l.waited, l.refused_late,
               l.bound);
        ASSERT_TRUE(l.opened > STEPS / 20 && l.waited > STEPS / 50 && l.refused_late > 0 &&
                    l.bound > STEPS / 20);
        view_free(l.view);
}

static void units_fill_in_order(void) {
        run(1, false);
        run(2, false);
}

static void units_with_labels_fill_in_order(void) {
        run(3, true);
        run(4, true);
}

int main(void) {
        return TEST_MAIN(TEST(units_fill_in_order), TEST(units_with_labels_fill_in_order));
}
