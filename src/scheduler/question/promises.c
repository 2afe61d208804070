/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/promises.h"

#include "scheduler/view/view.h"

static bool is_for(const Promise *s, Str uid) {
        return str_eq((Str){s->uid, s->uid_len}, uid);
}

static bool is_to(const Promise *s, Str node) {
        return str_eq((Str){s->node, s->node_len}, node);
}

static void drop_earlier(Promises *p, Str uid) {
        for (size_t i = 0; i < PROMISES_MAX; i++)
                if (is_for(&p->slots[i], uid))
                        p->slots[i].until = 0;
}

void promises_drop_bound(Promises *p, const View *view) {
        for (size_t i = 0; i < PROMISES_MAX; i++) {
                Promise *s = &p->slots[i];
                const ViewPod *pod = s->until > 0 ? view_pod_find(view, (Str){s->uid, s->uid_len}) : NULL;

                if (pod && pod->grant)
                        s->until = 0;
        }
}

void promises_make(Promises *p, Str uid, Str node, const Request *request, usec_t now) {
        Promise *s = &p->slots[p->next];

        drop_earlier(p, uid);
        if (str_is_empty(uid) || str_is_empty(node) || uid.len > PROMISE_TEXT_MAX ||
            node.len > PROMISE_TEXT_MAX || request_size(request) > sizeof s->bytes)
                return;
        p->next = (p->next + 1) % PROMISES_MAX;
        memcpy(s->uid, uid.data, uid.len);
        memcpy(s->node, node.data, node.len);
        s->uid_len = (uint8_t) uid.len;
        s->node_len = (uint8_t) node.len;
        s->request = request_copy(request, s->bytes);
        s->until = now + PROMISE_USEC;
}

bool promises_leave_room(const Promises *p, const LedgerNode *node, const Request *request, Str uid,
                         usec_t now) {
        const Request *before[PROMISES_MAX];
        Str name = ledger_node_name(node);
        size_t n = 0;

        /* In the order in which they were made, so that the binds come in it, too. */
        for (size_t i = 0; i < PROMISES_MAX; i++) {
                const Promise *s = &p->slots[(p->next + i) % PROMISES_MAX];

                if (s->until > now && is_to(s, name) && !is_for(s, uid))
                        before[n++] = s->request;
        }
        return n == 0 || placement_fits_after(node, request, before, n);
}
