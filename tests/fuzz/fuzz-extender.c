/* SPDX-License-Identifier: Apache-2.0 */

/* What kube-scheduler, or any other client of the port, may send. The first byte chooses the verb,
 * the rest is the body. Questions change nothing, and every answer of 200 is JSON. The last three
 * choices are objects for the view, which may change the ledger but not its sums. */

#include <assert.h>

#include "../unit/share/ledger_check.h"
#include "base/log.h"
#include "scheduler/question/args.h"
#include "scheduler/verbs/verbs.h"
#include "wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const nodes[] = {
        "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"ack.node.gpu.schedule\":\"cgpu\"}},\"status\":{"
        "\"allocatable\":"
        "{\"aliyun.com/gpu-mem\":\"30\",\"aliyun.com/gpu-count\":\"2\"}}}",
        "{\"metadata\":{\"name\":\"n2\",\"labels\":{\"ack.node.gpu.schedule\":\"core_mem\"}},\"status\":{"
        "\"allocatable\":"
        "{\"aliyun.com/gpu-mem\":\"60\",\"aliyun.com/gpu-count\":\"4\",\"aliyun.com/"
        "gpu-core.percentage\":\"400\"}}}",
};

static const char pod[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u1\",\"annotations\":{"
        "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"1\\\":4}}\"}},\"spec\":{\"nodeName\":"
        "\"n1\","
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"4\"}}}]}}";

static View *cluster(void) {
        View *v;

        assert(view_new(&v) == 0);
        view_list_begin(v, VIEW_NODES);
        for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
                assert(view_object(v, VIEW_NODES, REFLECTOR_LISTED, str_from(nodes[i])) == 0);
        view_list_end(v, VIEW_NODES);
        view_list_begin(v, VIEW_PODS);
        assert(view_object(v, VIEW_PODS, REFLECTOR_LISTED, str_from(pod)) == 0);
        view_list_end(v, VIEW_PODS);
        return v;
}

static void assert_json(const Buf *out) {
        JsonReader r;

        json_init(&r, buf_str(out));
        json_skip(&r);
        assert(json_finish(&r, NULL) == 0);
}

static void assert_unchanged(const View *v) {
        const LedgerCard *cards = ledger_node_cards(ledger_node_find(v->ledger, STR("n1")));

        assert(ledger_n_nodes(v->ledger) == 2 && directory_size(v->directory) == 2);
        assert(cards[0].used == 0 && cards[1].used == 4 && cards[1].pods == 1);
        assert(ledger_check(v->ledger));
}

static void ask(View *v, unsigned verb, Str body) {
        static unsigned (*const verbs[])(SchedulerContext *, Str, Buf *) = {verb_filter, verb_prioritize,
                                                                            verb_preempt, verb_inspect};
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf out = BUF_NULL;
        Metrics metrics = {0};
        SchedulerContext context = {
                .view = v, .metrics = &metrics, .leading = true, .now = 1, .arena = &arena};
        unsigned status;

        status = verbs[verb](&context, body, &out);
        pending_done(&context.pending);
        assert(out.len > 0);
        if (status == 200)
                assert_json(&out);
        else
                assert(status == 400 || status == 404);
        assert_unchanged(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        enum { ASK = 4, BINDING = 4, OBJECT = 5 };
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_(view_freep) View *v = NULL;
        unsigned choice = size > 0 ? data[0] % (OBJECT + VIEW_KINDS_) : 0;
        Str body = {(const char *) data + (size > 0), size - (size > 0)};
        Fault fault = FAULT_NULL;
        BindingArgs args;

        log_set_level(LOG_LEVEL_ERROR);
        v = cluster();
        if (choice < ASK)
                ask(v, choice, body);
        else if (choice == BINDING) {
                int r = args_read_binding(body, &arena, &args, &fault);
                assert(r == 0 ? args.uid.len > 0 : fault.text[0] != '\0');
        } else {
                ReflectorEvent event = size % 3 == 0   ? REFLECTOR_DELETED
                                       : size % 3 == 1 ? REFLECTOR_ADDED
                                                       : REFLECTOR_LISTED;

                assert(view_object(v, (ViewKind) (choice - OBJECT), event, body) == 0);
                assert(ledger_check(v->ledger));
        }
        return 0;
}
