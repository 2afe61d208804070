/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a ResourcePolicy, and as the pod that it may select. The policy decodes or is named,
 * the counts stay right, and no reserved key is written to a pod. */

#include <assert.h>

#include "../unit/scheduler/policy_check.h"
#include "scheduler/question/policy_bind.h"
#include "scheduler/view/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void list(View *v) {
        view_list_begin(v, VIEW_NODES);
        assert(view_object(v, VIEW_NODES, REFLECTOR_LISTED,
                           STR("{\"metadata\":{\"name\":\"n\",\"labels\":{\"unit\":\"a\"}}}")) == 0);
        view_list_end(v, VIEW_NODES);
        view_list_begin(v, VIEW_PODS);
        assert(view_object(v, VIEW_PODS, REFLECTOR_LISTED,
                           STR("{\"metadata\":{\"namespace\":\"d\",\"name\":\"p\",\"uid\":\"u\",\"labels\":{"
                               "\"app\":\"web\"}}}")) == 0);
        view_list_end(v, VIEW_PODS);
}

static void bind_pod(View *v) {
        _cleanup_buf_ Buf annotations = BUF_NULL, labels = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r = policy_bind_begin(v->policies, STR("d"), STR("u"), STR("n"), 1, &annotations, &labels,
                                  &fault);

        assert(r == 0 || (r == POLICY_E_REFUSED && fault.text[0] != '\0'));
        assert(!labels.data || !strstr(labels.data, ",\"aliquot.dev/")); /* a comma is before each key */
        assert(policy_table_check(v->policies));
        policy_bind_end(v->policies, STR("u"), STR("n"), r == 0, 1);
        assert(policy_table_check(v->policies));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Str text = {(const char *) data, size};
        View *v;

        assert(view_new(&v) == 0);
        assert(view_object(v, VIEW_POLICIES, REFLECTOR_ADDED, text) == 0);
        list(v);
        bind_pod(v);
        assert(view_object(v, VIEW_PODS, REFLECTOR_MODIFIED, text) == 0);
        assert(policy_table_check(v->policies));
        (void) view_free(v);
        return 0;
}
