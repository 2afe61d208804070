/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page/page_resizes.h"

#include <errno.h>

#include "share/resize_status.h"

/* The analyzer believes that the last entry has a next one. */
static void drop(PageResizes *r, PageResize *one) {
        HASH_DELETE(hh, r->pods, one); /* NOLINT(clang-analyzer-core.NullDereference) */
        free(one);
}

void page_resizes_done(PageResizes *r) {
        while (r->pods)
                drop(r, r->pods);
}

const PageResize *page_resizes_find(const PageResizes *r, Str uid) {
        PageResize *one;

        HASH_FIND(hh, r->pods, uid.data, uid.len, one);
        return one;
}

static bool holds(const View *v, Str uid) {
        const ViewPod *pod = view_pod_find(v, uid);

        return pod && pod->grant;
}

void page_resizes_sweep(PageResizes *r, const View *v) {
        PageResize *one, *next;

        HASH_ITER(hh, r->pods, one, next)
        if (!holds(v, (Str){one->uid, one->uid_len}))
                drop(r, one);
}

#define NOT_ANSWERED "asked for, and the agent of the node has not answered"

/* Splits what to show into a text of ours and the agent's status; both empty: the pod has the size
 * of its limits. *ret_open as in PageResize. A status that cannot be parsed is shown as it is. */
static Str say(const PodAnnotations *a, Str *ret_status, bool *ret_open) {
        ResizeStatus s;
        bool read = resize_status_read(a->resize_status, &s) == 0;
        bool undone = !str_is_empty(s.refused) || !str_is_empty(s.waits);
        bool answered = !read || undone || resize_status_fulfils(&s, a->resize_mem, a->resize_core);

        *ret_open = undone || !answered;
        *ret_status = (Str){a->resize_status.data, str_cut(a->resize_status, PAGE_RESIZE_TEXT_MAX)};
        if (read && !*ret_open && !resize_status_differs(&s))
                ret_status->len = 0;
        return answered ? (Str){NULL, 0} : s.n > 0 ? STR(NOT_ANSWERED "; ") : STR(NOT_ANSWERED);
}

int page_resizes_pod(PageResizes *r, const View *v, const Pod *pod) {
        const Str uid = pod->meta.uid;
        PageResize *one;
        Str status = {NULL, 0}, text = {NULL, 0};
        bool open = false;
        char *at;

        HASH_FIND(hh, r->pods, uid.data, uid.len, one);
        if (one)
                drop(r, one);
        if (uid.len <= UINT16_MAX && holds(v, uid))
                text = say(&pod->annotations, &status, &open);
        if (text.len + status.len == 0)
                return 0;
        one = calloc(1, sizeof *one + uid.len + text.len + status.len);
        if (!one)
                return -ENOMEM;
        at = one->uid;
        one->uid_len = (uint16_t) str_put(&at, uid).len;
        one->text = str_put(&at, text);
        one->text.len += str_put(&at, status).len;
        one->open = open;
        HASH_ADD_KEYPTR(hh, r->pods, one->uid, one->uid_len, one);
        if (hash_added(one, hh))
                return 0;
        free(one);
        return -ENOMEM;
}
