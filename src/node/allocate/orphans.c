/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/orphans.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/kubelet/pod_processes.h"
#include "wire/json_write.h"

#define LOOK_AGAIN (250 * USEC_PER_MSEC)

struct Orphans {
        OrphansOptions o;
        sd_event_source *timer;
        size_t n;
};

int orphans_new(const OrphansOptions *options, Orphans **ret) {
        Orphans *d = calloc(1, sizeof *d);

        if (!d)
                return -ENOMEM;
        d->o = *options;
        *ret = d;
        return 0;
}

Orphans *orphans_free(Orphans *d) {
        if (!d)
                return NULL;
        sd_event_source_disable_unref(d->timer);
        free(d);
        return NULL;
}

size_t orphans_count(const Orphans *d) {
        return d->n;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

static void watch(Orphans *d) {
        if (!d->timer && d->n > 0 &&
            sd_event_add_time_relative(d->o.event, &d->timer, CLOCK_MONOTONIC, LOOK_AGAIN, 0, on_timer, d) <
                    0)
                log_error("out of memory: pods that are dying are looked at when another one changes");
}

/* Returns whether the list of the dying changed. */
static bool forget(Orphans *d, Record *record) {
        bool was = record->orphan;

        if (was) {
                d->n--;
                log_info("slice free: the last process of pod=%s/%s uid=%s has ended", record->namespace_,
                         record->name, record->uid);
        }
        records_drop(d->o.records, record);
        return was;
}

static bool is_alive(const Orphans *d, const Record *record) {
        return pod_processes(d->o.cgroup_root, str_from(record->uid)) != POD_PROCESSES_NONE;
}

/* Likewise. */
static bool look_at(Orphans *d, Record *record) {
        if (!is_alive(d, record))
                return forget(d, record);
        if (record->orphan)
                return false;
        log_warning("slice held: pod=%s/%s uid=%s is gone, its processes are not", record->namespace_,
                    record->name, record->uid);
        record->orphan = true;
        d->n++;
        return true;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Orphans *d = userdata;
        Record *record, *next;
        bool changed = false;

        d->timer = sd_event_source_disable_unref(d->timer);
        HASH_ITER(hh, d->o.records->by_uid, record, next)
        if (record->orphan && look_at(d, record))
                changed = true;
        watch(d);
        if (changed)
                d->o.on_change(d->o.userdata);
        return 0;
}

void orphans_look(Orphans *d, Str uid, const RosterPod *pod) {
        Record *record = records_find(d->o.records, uid);
        bool changed;

        if (!record)
                return;
        if (pod && (pod->grant || pod->refusal)) {
                /* A mirror pod can be deleted and come back while the static pod runs on. */
                changed = record->orphan;
                d->n -= record->orphan ? 1 : 0;
                record->orphan = false;
        } else
                changed = look_at(d, record);
        watch(d);
        if (changed)
                d->o.on_change(d->o.userdata);
}

bool orphans_ended(Orphans *d, Record *record) {
        if (is_alive(d, record))
                return false;
        if (forget(d, record))
                d->o.on_change(d->o.userdata);
        return true;
}

void orphans_sweep(Orphans *d) {
        Record *record, *next;
        bool changed = false;

        HASH_ITER(hh, d->o.records->by_uid, record, next) {
                const RosterPod *pod = roster_find(d->o.roster, str_from(record->uid));

                if (!pod || (!pod->grant && !pod->refusal))
                        changed |= look_at(d, record);
        }
        watch(d);
        if (changed)
                d->o.on_change(d->o.userdata);
}

/* ---- the annotation ---- */

static void write_number_key(JsonWriter *w, uint64_t number) {
        char text[24];

        (void) snprintf(text, sizeof text, "%llu", (unsigned long long) number);
        json_write_key(w, str_from(text));
}

/* An init container's devices are those of the later ones, or were: they count where there are no
 * later ones. */
static bool counts(const Record *record, const RecordContainer *c, DeviceKind kind) {
        if (c->given[kind].n == 0)
                return false;
        if (!c->init)
                return true;
        for (size_t i = 0; i < record->n_containers; i++)
                if (&record->containers[i] != c && record->containers[i].given[kind].n > 0 &&
                    (!record->containers[i].init || &record->containers[i] > c))
                        return false;
        return true;
}

static void write_allocation(JsonWriter *w, const char *key, const Record *record, DeviceKind kind) {
        json_write_object(w, key);
        for (size_t i = 0; i < record->n_containers; i++) {
                const RecordContainer *c = &record->containers[i];
                uint32_t card, count;
                size_t at = 0;

                if (!counts(record, c, kind))
                        continue;
                write_number_key(w, i);
                json_write_object(w, NULL);
                while (device_set_next_card(&c->given[kind], &at, &card, &count)) {
                        write_number_key(w, card);
                        json_write_u64(w, NULL, count);
                }
                json_write_object_end(w);
        }
        json_write_object_end(w);
}

void orphans_write(const Orphans *d, Buf *out) {
        JsonWriter w;

        if (d->n == 0)
                return;
        json_write_init(&w, out);
        json_write_array(&w, NULL);
        for (const Record *record = d->o.records->by_uid; record; record = record->hh.next) {
                _cleanup_buf_ Buf name = BUF_NULL;

                if (!record->orphan)
                        continue;
                buf_appendf(&name, "%s/%s", record->namespace_, record->name);
                json_write_object(&w, NULL);
                json_write_str(&w, "pod", buf_str(&name));
                json_write_text(&w, "uid", record->uid);
                write_allocation(&w, "allocation", record, DEVICE_MEM);
                write_allocation(&w, "core", record, DEVICE_CORE);
                json_write_object_end(&w);
        }
        json_write_array_end(&w);
}
