/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/profiles.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/pod.h"

static Profile *find_profile(Profile *table, Str uid) {
        Profile *p;

        HASH_FIND(hh, table, uid.data, uid.len, p);
        return p;
}

static void drop_profile(Profile **table, Str uid) {
        Profile *p = find_profile(*table, uid);

        if (!p)
                return;
        HASH_DELETE(hh, *table, p);
        free(p);
}

void profiles_drop(Profiles *p, Str uid) {
        drop_profile(&p->holding, uid);
        drop_profile(&p->nominated, uid);
}

const Profile *profiles_find(const Profiles *p, Str uid) {
        return find_profile(p->holding, uid);
}

/* Whether the pod is being deleted or has ended. kube-scheduler's informer leaves ended pods out,
 * so they cannot be victims. */
static bool is_ending(const Pod *pod) {
        return pod->meta.terminating || pod_is_terminal(pod);
}

/* A cheap test that spares most waiting pods a second decoding. */
static bool mentions_nomination(Str object) {
        return memmem(object.data, object.len, "nominatedNodeName", sizeof "nominatedNodeName" - 1) != NULL;
}

/* ---- copying ---- */

static size_t text_of(const PodProfile *is) {
        size_t n = 0;

        for (size_t i = 0; i < is->n_labels; i++)
                n += is->labels[i].key.len + is->labels[i].value.len;
        for (size_t i = 0; i < is->n_requests; i++)
                n += is->requests[i].name.len;
        return n;
}

static Str put_text(char **at, Str s) {
        Str copy = {*at, s.len};

        if (s.len > 0)
                memcpy(*at, s.data, s.len);
        *at += s.len;
        return copy;
}

static void copy_lists(Profile *p, const PodProfile *is, char **at) {
        p->is.labels = (PodLabel *) (p + 1);
        p->is.requests = (PodResource *) (p->is.labels + is->n_labels);
        for (size_t i = 0; i < is->n_labels; i++) {
                p->is.labels[i].key = put_text(at, is->labels[i].key);
                p->is.labels[i].value = put_text(at, is->labels[i].value);
        }
        for (size_t i = 0; i < is->n_requests; i++) {
                p->is.requests[i].milli = is->requests[i].milli;
                p->is.requests[i].name = put_text(at, is->requests[i].name);
        }
}

size_t profile_size(const Profile *p) {
        return sizeof *p + p->is.n_labels * sizeof(PodLabel) + p->is.n_requests * sizeof(PodResource) +
               text_of(&p->is) + p->is.nominated_node.len + p->uid.len + p->namespace_.len + p->name.len;
}

static Profile *profile_new(const Pod *pod, PodProfile is) {
        bool too_large = is.labels_cut || text_of(&is) > PROFILE_TEXT_MAX;
        Profile *p, sized;
        char *at;

        if (too_large)
                is.n_labels = is.n_requests = 0;
        sized = (Profile){
                .is = is, .uid = pod->meta.uid, .namespace_ = pod->meta.namespace_, .name = pod->meta.name};
        p = malloc(profile_size(&sized));
        if (!p)
                return NULL;
        *p = (Profile){.is = is,
                       .ending = is_ending(pod),
                       .mirror = !str_is_empty(pod->annotations.mirror),
                       .too_large = too_large};
        at = (char *) (p + 1) + is.n_labels * sizeof(PodLabel) + is.n_requests * sizeof(PodResource);
        copy_lists(p, &is, &at);
        p->is.nominated_node = put_text(&at, is.nominated_node);
        p->uid = put_text(&at, pod->meta.uid);
        p->namespace_ = put_text(&at, pod->meta.namespace_);
        p->name = put_text(&at, pod->meta.name);
        return p;
}

/* ---- the tables ---- */

static int keep_profile(Profile **table, const Pod *pod, const PodProfile *is, uint32_t generation) {
        Profile *p = profile_new(pod, *is);

        if (!p)
                return -ENOMEM;
        p->generation = generation;
        drop_profile(table, pod->meta.uid);
        HASH_ADD_KEYPTR(hh, *table, p->uid.data, p->uid.len, p);
        if (!hash_added(p, hh)) {
                free(p);
                return -ENOMEM;
        }
        return 0;
}

int profiles_set(Profiles *p, const Pod *pod, Str object, bool holding, uint32_t generation, Arena *arena) {
        bool waiting = str_is_empty(pod->node_name) && !is_ending(pod) && mentions_nomination(object);
        PodProfile is = {0};
        int r = 1;

        holding = holding && !str_is_empty(pod->node_name);
        if (holding || waiting)
                r = pod_profile_decode(object, arena, &is, NULL);
        if (r < 0)
                return r;
        if (r == 0 && holding)
                r = keep_profile(&p->holding, pod, &is, generation);
        else
                drop_profile(&p->holding, pod->meta.uid);
        if (r == 0 && waiting && !str_is_empty(is.nominated_node))
                r = keep_profile(&p->nominated, pod, &is, generation);
        else
                drop_profile(&p->nominated, pod->meta.uid);
        return r < 0 ? r : 0;
}

static void sweep_table(Profile **table, uint32_t generation, bool all) {
        Profile *p, *next;

        HASH_ITER(hh, *table, p, next) {
                if (p->generation == generation && !all)
                        continue;
                HASH_DELETE(hh, *table, p);
                free(p);
        }
}

void profiles_sweep(Profiles *p, uint32_t generation) {
        sweep_table(&p->holding, generation, false);
        sweep_table(&p->nominated, generation, false);
}

void profiles_done(Profiles *p) {
        sweep_table(&p->holding, 0, true);
        sweep_table(&p->nominated, 0, true);
}
