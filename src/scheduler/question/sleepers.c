/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/sleepers.h"

#include <stdlib.h>

static void drop(Sleepers *s, Sleeper *pod) {
        HASH_DEL(s->by_uid, pod);
        free(pod);
}

Sleeper *sleepers_find(const Sleepers *s, Str uid) {
        Sleeper *pod;

        HASH_FIND(hh, s->by_uid, uid.data, uid.len, pod);
        return pod;
}

static void drop_oldest(Sleepers *s) {
        Sleeper *pod = s->by_uid;

        while (pod && pod->waits_for_gang)
                pod = pod->hh.next;
        drop(s, pod ? pod : s->by_uid);
}

Sleeper *sleepers_note(Sleepers *s, Str namespace_, Str name, Str uid) {
        Sleeper *before = sleepers_find(s, uid), *pod;
        char *at;

        if (!namespace_.len || !name.len || !uid.len)
                return NULL; /* no API server serves such a pod, so nothing can be patched */
        if (namespace_.len > SLEEPER_TEXT_MAX || name.len > SLEEPER_TEXT_MAX || uid.len > SLEEPER_TEXT_MAX)
                return NULL;
        pod = calloc(1, sizeof *pod + namespace_.len + name.len + uid.len);
        if (!pod)
                return NULL;
        at = pod->texts;
        pod->namespace_ = str_put(&at, namespace_);
        pod->name = str_put(&at, name);
        pod->uid = str_put(&at, uid);
        if (before) { /* goes to the young end */
                pod->woken = before->woken;
                pod->waits_for_gang = before->waits_for_gang;
                pod->lost_to_plan = before->lost_to_plan;
                drop(s, before);
        }
        if (HASH_COUNT(s->by_uid) >= SLEEPERS_MAX)
                drop_oldest(s);
        HASH_ADD_KEYPTR(hh, s->by_uid, pod->uid.data, pod->uid.len, pod);
        if (hash_added(pod, hh))
                return pod;
        free(pod);
        return NULL;
}

void sleepers_filtered(Sleepers *s, const FilterResult *result) {
        Sleeper *pod = NULL;

        if (result->request && !result->fits)
                pod = sleepers_note(s, result->namespace_, result->name, result->uid);
        else
                sleepers_forget(s, result->uid);
        if (pod)
                pod->lost_to_plan = result->lost_to_plan;
}

void sleepers_forget(Sleepers *s, Str uid) {
        Sleeper *pod = sleepers_find(s, uid);

        if (pod)
                drop(s, pod);
}

void sleepers_done(Sleepers *s) {
        while (s->by_uid)
                drop(s, s->by_uid);
}
