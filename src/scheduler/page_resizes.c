/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page_resizes.h"

#include <errno.h>

#include "share/resize_status.h"

static void drop(PageResizes *r, PageResize *one) {
        HASH_DELETE(hh, r->pods, one);
        free(one);
}

void page_resizes_done(PageResizes *r) {
        PageResize *one, *next;

        HASH_ITER(hh, r->pods, one, next)
        drop(r, one);
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

/* What there is to say of the pod's size; empty: it has the size of its limits. */
static Str say(const PodAnnotations *a, bool *ret_open) {
        ResizeStatus status;

        if (!str_is_empty(a->resize_status)) {
                size_t len = a->resize_status.len < PAGE_RESIZE_TEXT_MAX ? a->resize_status.len
                                                                         : PAGE_RESIZE_TEXT_MAX;
                bool read = resize_status_read(a->resize_status, &status) == 0;

                *ret_open = read && !str_is_empty(status.refused);
                if (read && !*ret_open && !resize_status_differs(&status))
                        return (Str){NULL, 0};
                return (Str){a->resize_status.data, len};
        }
        *ret_open = true;
        if (str_is_empty(str_trim(a->resize_mem)) && str_is_empty(str_trim(a->resize_core)))
                return (Str){NULL, 0};
        return STR("asked for, and the agent of the node has not answered");
}

int page_resizes_pod(PageResizes *r, const View *v, const Pod *pod) {
        const Str uid = pod->meta.uid;
        PageResize *one;
        bool open;
        Str text = say(&pod->annotations, &open);
        char *at;

        HASH_FIND(hh, r->pods, uid.data, uid.len, one);
        if (one)
                drop(r, one);
        if (str_is_empty(text) || uid.len > UINT16_MAX || !holds(v, uid))
                return 0;
        one = calloc(1, sizeof *one + uid.len + text.len);
        if (!one)
                return -ENOMEM;
        at = one->uid;
        one->uid_len = (uint16_t) str_put(&at, uid).len;
        one->text = str_put(&at, text);
        one->open = open;
        HASH_ADD_KEYPTR(hh, r->pods, one->uid, one->uid_len, one);
        if (hash_added(one, hh))
                return 0;
        free(one);
        return -ENOMEM;
}
