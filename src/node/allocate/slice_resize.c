/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/slice_resize.h"

#include <errno.h>

#include "node/allocate/slice_growth.h"
#include "wire/annotation.h"

enum { RESIZE_E_REFUSED = 1 };

static bool has_size(const Record *record) {
        for (size_t i = 0; i < record->n_containers; i++)
                if (record->containers[i].size_mem > 0 || record->containers[i].size_core > 0)
                        return true;
        return false;
}

static bool is_same(ResizeSize a, ResizeSize b) {
        return a.mem == b.mem && a.core == b.core;
}

/* Why a container of this pod cannot have another size now. */
static int check_container(const SliceResize *s, const RosterPod *pod, const RosterContainer *c,
                           Fault *fault) {
        ShareMode mode = s->node->inventory->mode;

        if (!s->node->isolation || !share_mode_is_isolated(mode))
                return fault_set(fault, RESIZE_E_REFUSED,
                                 "its node is in mode %s, which isolates no container: there is nothing to "
                                 "resize",
                                 share_mode_to_string(mode));
        if (c->not_isolated && !s->ignores_disable)
                return fault_set(fault, RESIZE_E_REFUSED,
                                 "container %s is not isolated (" ENVIRONMENT_DISABLE
                                 "): there is nothing to resize",
                                 c->name);
        if (pod->terminating)
                return fault_set(fault, RESIZE_E_REFUSED, "the pod is ending");
        return 0;
}

static int check_changes(const SliceResize *s, const RosterPod *pod, const Record *record,
                         const Resizable *all, Fault *fault) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < all->n; i++)
                if (!is_same(resizable_in_force(record, &all->limits[i]), all->wanted[i]))
                        r = check_container(s, pod, all->containers[i], fault);
        return r;
}

static uint32_t permit_of(const Record *record, const ResizeLimit *l) {
        const RecordContainer *c = record_container(record, l->name);

        return c ? c->permit_mem : 0;
}

/* Writes the sizes into the record, the limit as 0, so that a record without sizes means the
 * limits. A size above it is what processes may hold until slice_growth_plan() finds that they hold
 * less. */
static void set_sizes(Record *record, const Resizable *all, const ResizeSize *sizes) {
        for (size_t i = 0; i < all->n; i++) {
                const ResizeLimit *l = &all->limits[i];

                record_set_size(record, l->name, sizes[i].mem != l->mem ? sizes[i].mem : 0,
                                sizes[i].core != l->core ? sizes[i].core : 0);
                if (sizes[i].mem > l->mem && sizes[i].mem > permit_of(record, l))
                        record_set_permit(record, l->name, sizes[i].mem);
        }
}

static int keep_sizes(const SliceResize *s, Record *record, const Resizable *all, Fault *fault) {
        ResizeSize before[RESIZABLE_MAX];
        int r;

        for (size_t i = 0; i < all->n; i++)
                before[i] = resizable_in_force(record, &all->limits[i]);
        set_sizes(record, all, all->wanted);
        r = records_save(s->node->records, record, fault);
        if (r != 0)
                set_sizes(record, all, before); /* back to the sizes in the file and the pages */
        return r;
}

/* Writes the sizes in force into the pages, also after a refusal: an agent may have ended before it
 * wrote them. A container that has not started gets its size with its pages
 * (isolation_prepare()). */
static int write_pages(const SliceResize *s, const Record *record, const Resizable *all, Fault *fault) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < all->n; i++) {
                const RecordContainer *given = record_container(record, all->limits[i].name);

                if (given && given->started && s->node->isolation &&
                    share_mode_is_isolated(s->node->inventory->mode))
                        r = isolation_resize(s->node->isolation, s->node->inventory, all->containers[i],
                                             given, fault);
        }
        return r;
}

/* Puts the requested sizes in force. *ret_waits: growth is not permitted yet, and the fault says
 * so. */
static int resize_slices(const SliceResize *s, const RosterPod *pod, Record *record, Resizable *all,
                         bool *ret_waits, Fault *fault) {
        int r = resize_request_read(str_from(pod->resize[0]), str_from(pod->resize[1]), all->limits, all->n,
                                    all->wanted, fault);

        if (r == 0)
                r = check_changes(s, pod, record, all, fault);
        if (r == 0)
                *ret_waits = slice_growth_cut(s->node->growth, s->node, pod, record, all, fault);
        return r == 0 ? keep_sizes(s, record, all, fault) : r;
}

/* ---- the status ---- */

/* r, fault: the decision; negative: growth waits. w, pages: the result of writing the pages. While
 * a page could not be written, the status names no size. */
static void write_status(const Record *record, const Resizable *all, int r, const Fault *fault, int w,
                         const Fault *pages, Buf *out) {
        ResizeInForce list[RESIZABLE_MAX];
        Str said = str_from(w != 0 ? pages->text : fault->text);

        for (size_t i = 0; i < all->n; i++) {
                const ResizeLimit *l = &all->limits[i];

                list[i] = (ResizeInForce){
                        .index = l->index, .size = resizable_in_force(record, l), .limit = {l->mem, l->core}};
        }
        if (w != 0 || r < 0)
                resize_status_write_waiting(said, list, w != 0 ? 0 : all->n, out);
        else
                resize_status_write(said, list, all->n, out);
}

/* Has the status written, and reports the refusal (NULL: none), unless the annotation says the same
 * already. */
static void set_status(const SliceResize *s, RosterPod *pod, Buf *text, const Fault *refusal) {
        char *status = text->len > 0 ? buf_take(text) : NULL;
        bool is_new = strcmp(status ? status : "", pod->resize_status ? pod->resize_status : "") != 0;
        bool is_said = str_eq(str_from(status), str_from(pod->keys[POD_SYSTEM_KEY_resize_status]));

        free(pod->resize_status);
        pod->resize_status = status;
        if (is_new && !is_said && refusal)
                s->on_refused(s->userdata, pod, refusal);
        if (is_new && !is_said)
                pod_patcher_restore(s->node->pod_patcher, pod);
}

static bool is_concerned(const SliceResize *s, const RosterPod *pod, const Record *record) {
        if (!record || !record_has_started(record) || !pod->grant || !pod->placed ||
            !s->node->roster->has_cards)
                return false;
        /* with a status alone, an agent may have ended before it wrote the pages */
        return pod->resize[0] || pod->resize[1] || has_size(record) || pod->resize_status ||
               pod->keys[POD_SYSTEM_KEY_resize_status];
}

bool slice_resize_look(const SliceResize *s, RosterPod *pod) {
        Record *record = records_find(s->node->records, str_from(pod->uid));
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL, pages = FAULT_NULL;
        Resizable all = {.n = 0};
        bool waits = false;
        int r, w;

        if (!is_concerned(s, pod, record))
                return false;
        resizable_find(pod, record, slice_growth_is_possible(s->node->growth), &all);
        r = resize_slices(s, pod, record, &all, &waits, &fault);
        if (r == -ENOMEM)
                return true;
        w = write_pages(s, record, &all, &pages);
        if (pod->resize[0] || pod->resize[1] || r != 0 || w != 0 || waits)
                write_status(record, &all, r != 0 || !waits ? r : -EAGAIN, &fault, w, &pages, &text);
        if (!text.broken)
                set_status(s, pod, &text, r > 0 && w == 0 ? &fault : NULL);
        return r < 0 || w != 0 || waits || text.broken;
}
