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
        Orphans *o = calloc(1, sizeof *o);

        if (!o)
                return -ENOMEM;
        o->o = *options;
        *ret = o;
        return 0;
}

Orphans *orphans_free(Orphans *o) {
        if (!o)
                return NULL;
        sd_event_source_disable_unref(o->timer);
        free(o);
        return NULL;
}

size_t orphans_count(const Orphans *o) {
        return o->n;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

static void watch_orphans(Orphans *o) {
        if (!o->timer && o->n > 0 &&
            sd_event_add_time_relative(o->o.node->event, &o->timer, CLOCK_MONOTONIC, LOOK_AGAIN, 0, on_timer,
                                       o) < 0)
                log_error("out of memory: processes of deleted pods are looked for when a pod changes");
}

/* Drops the record. Returns whether it was an orphan. */
static bool forget_record(Orphans *o, Record *record) {
        bool was = record->orphan;

        if (was) {
                o->n--;
                log_info("slice free: the last process of pod=%s/%s uid=%s has ended", record->namespace_,
                         record->name, record->uid);
        }
        if (o->o.node->limits)
                memory_limits_end(o->o.node->limits, record->uid);
        records_drop(o->o.node->records, record);
        return was;
}

static bool is_alive(const Orphans *o, const Record *record) {
        return pod_processes(o->o.cgroup_root, str_from(record->uid)) != POD_PROCESSES_NONE;
}

/* Drops the record of a pod that is gone, or makes it an orphan while its processes live. Returns
 * whether the list of orphans changed. */
static bool look_at(Orphans *o, Record *record) {
        if (!is_alive(o, record))
                return forget_record(o, record);
        if (record->orphan)
                return false;
        log_warning("slice held: pod=%s/%s uid=%s is gone, its processes are not", record->namespace_,
                    record->name, record->uid);
        record->orphan = true;
        o->n++;
        return true;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Orphans *o = userdata;
        Record *record, *next;
        bool changed = false;

        o->timer = sd_event_source_disable_unref(o->timer);
        HASH_ITER(hh, o->o.node->records->by_uid, record, next)
        if (record->orphan && look_at(o, record))
                changed = true;
        watch_orphans(o);
        if (changed)
                o->o.on_change(o->o.userdata);
        return 0;
}

void orphans_look(Orphans *o, Str uid, const RosterPod *pod) {
        Record *record = records_find(o->o.node->records, uid);
        bool changed;

        if (!record)
                return;
        if (pod && (pod->grant || pod->refusal)) {
                /* The mirror of a static pod can be deleted and made again while the pod runs
                 * on. */
                changed = record->orphan;
                o->n -= record->orphan ? 1 : 0;
                record->orphan = false;
        } else
                changed = look_at(o, record);
        watch_orphans(o);
        if (changed)
                o->o.on_change(o->o.userdata);
}

bool orphans_ended(Orphans *o, Record *record) {
        if (is_alive(o, record))
                return false;
        if (forget_record(o, record))
                o->o.on_change(o->o.userdata);
        return true;
}

void orphans_sweep(Orphans *o) {
        Record *record, *next;
        bool changed = false;

        HASH_ITER(hh, o->o.node->records->by_uid, record, next) {
                const RosterPod *pod = roster_find(o->o.node->roster, str_from(record->uid));

                if (!pod || (!pod->grant && !pod->refusal))
                        changed |= look_at(o, record);
        }
        watch_orphans(o);
        if (changed)
                o->o.on_change(o->o.userdata);
}

/* ---- the annotation ---- */

static void write_number_key(JsonWriter *w, uint64_t number) {
        char text[24];

        (void) snprintf(text, sizeof text, "%llu", (unsigned long long) number);
        json_write_key(w, str_from(text));
}

/* Whether the annotation counts the container's devices. Those of an init container are given to
 * later containers too, so they count only where no later container has any. */
static bool counts_devices(const Record *record, const RecordContainer *c, DeviceKind kind) {
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

                if (!counts_devices(record, c, kind))
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

void orphans_write(const Orphans *o, Buf *out) {
        JsonWriter w;

        if (o->n == 0)
                return;
        json_write_init(&w, out);
        json_write_array(&w, NULL);
        for (const Record *record = o->o.node->records->by_uid; record; record = record->hh.next) {
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
