/* SPDX-License-Identifier: Apache-2.0 */
#include "node/records/records.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/state_file.h"

#define SUFFIX ".json"

enum { RECORD_FILE_MAX = 64 << 20 };

Record *records_find(const Records *r, Str uid) {
        Record *record;

        HASH_FIND(hh, r->by_uid, uid.data, uid.len, record);
        return record;
}

static int add_record(Records *r, Record *record) {
        HASH_ADD_KEYPTR(hh, r->by_uid, record->uid, strlen(record->uid), record);
        return hash_added(record, hh) ? 0 : -ENOMEM;
}

static bool path_of(const Records *r, const Record *record, char ret[static PATH_MAX]) {
        int n = snprintf(ret, PATH_MAX, "%s/%s" SUFFIX, r->directory, record->uid);

        return n > 0 && n < PATH_MAX;
}

/* ---- at start ---- */

static int load_record(Records *r, const char *path, Fault *fault) {
        _cleanup_(record_freep) Record *record = NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        int e;

        e = file_read(path, RECORD_FILE_MAX, &text);
        if (e < 0)
                return fault_set(fault, e == -ENOMEM ? e : RECORD_E_MALFORMED, "%s", strerror(-e));
        e = record_read(buf_str(&text), &record, fault);
        if (e != 0)
                return e;
        if (records_find(r, str_from(record->uid)))
                return fault_set(fault, RECORD_E_MALFORMED, "a second file for uid %s", record->uid);
        e = add_record(r, record);
        if (e == 0)
                record = NULL;
        return e;
}

/* An unreadable file may be evidence, so it is kept under a name that is not read again. */
static void set_aside(const char *path, const Fault *fault) {
        char bad[PATH_MAX];
        int n = snprintf(bad, sizeof bad, "%s.bad", path);

        log_error("passed over a record file=%s: %s", path, fault->text);
        if (n > 0 && n < (int) sizeof bad)
                (void) rename(path, bad); /* otherwise it is reported again at the next start */
}

static bool is_record(const char *name) {
        size_t n = strlen(name), suffix = sizeof SUFFIX - 1;

        return name[0] != '.' && n > suffix && strcmp(name + n - suffix, SUFFIX) == 0;
}

static int load_all(Records *r, DIR *directory) {
        const struct dirent *entry;

        while ((entry = readdir(directory))) {
                Fault fault = FAULT_NULL;
                char path[PATH_MAX];
                int e, n;

                if (!is_record(entry->d_name))
                        continue;
                n = snprintf(path, sizeof path, "%s/%s", r->directory, entry->d_name);
                if (n < 0 || n >= (int) sizeof path)
                        continue;
                e = load_record(r, path, &fault);
                if (e < 0)
                        return e;
                if (e > 0)
                        set_aside(path, &fault);
        }
        return 0;
}

int records_open(Records *r, const char *directory, Fault *fault) {
        DIR *opened;
        int e;

        *r = (Records){.directory = strdup(directory)};
        if (!r->directory)
                return -ENOMEM;
        if (mkdir(directory, 0700) < 0 && errno != EEXIST)
                return fault_set(fault, -errno, "cannot make %s: %s", directory, strerror(errno));
        opened = opendir(directory);
        if (!opened)
                return fault_set(fault, -errno, "cannot read %s: %s", directory, strerror(errno));
        e = load_all(r, opened);
        (void) closedir(opened);
        return e;
}

void records_done(Records *r) {
        Record *record, *next;

        HASH_ITER(hh, r->by_uid, record, next) {
                HASH_DELETE(hh, r->by_uid, record);
                record_free(record);
        }
        free(r->directory);
        *r = (Records){0};
}

/* ---- recording devices ---- */

static Record *ensure_record(Records *r, Str uid, Str namespace_, Str name) {
        _cleanup_(record_freep) Record *record = NULL;
        Record *found = records_find(r, uid);

        if (found)
                return found;
        record = calloc(1, sizeof *record);
        if (!record)
                return NULL;
        record->uid = str_dup(uid);
        record->namespace_ = str_dup(namespace_);
        record->name = str_dup(name);
        if (!record->uid || !record->namespace_ || !record->name || add_record(r, record) < 0)
                return NULL;
        return TAKE_PTR(record);
}

static RecordContainer *ensure_container(Record *record, Str name, bool init) {
        RecordContainer *c, *grown;
        char *copy;

        for (size_t i = 0; i < record->n_containers; i++)
                if (str_eq(str_from(record->containers[i].name), name))
                        return &record->containers[i];
        copy = str_dup(name);
        grown = realloc(record->containers, (record->n_containers + 1) * sizeof *grown);
        if (grown)
                record->containers = grown;
        if (!copy || !grown) {
                free(copy);
                return NULL;
        }
        c = &record->containers[record->n_containers++];
        *c = (RecordContainer){.name = copy, .init = init};
        return c;
}

int records_give(Records *r, Str uid, Str namespace_, Str name, Str container, bool init, DeviceKind kind,
                 const DeviceSet *set) {
        Record *record = ensure_record(r, uid, namespace_, name);
        RecordContainer *c = record ? ensure_container(record, container, init) : NULL;
        DeviceSet copy = DEVICE_SET_NULL;

        if (!c)
                return -ENOMEM;
        if (device_set_eq(&c->given[kind], set))
                return 0;
        if (device_set_copy(set, &copy) < 0)
                return -ENOMEM;
        device_set_done(&c->given[kind]);
        c->given[kind] = copy;
        c->size_mem = c->size_core = c->permit_mem = 0;
        record->saved = false;
        return 0;
}

int records_save(Records *r, Record *record, Fault *fault) {
        _cleanup_buf_ Buf text = BUF_NULL;
        char path[PATH_MAX];
        int e;

        if (record->saved)
                return 0;
        if (!path_of(r, record, path))
                return fault_set(fault, -ENAMETOOLONG, "%s: the path is too long", r->directory);
        record_write(record, &text);
        e = state_file_write(path, &text, 0600, fault);
        record->saved = e == 0;
        return e;
}

void records_drop(Records *r, Record *record) {
        char path[PATH_MAX];

        if (path_of(r, record, path) && unlink(path) < 0 && errno != ENOENT)
                log_error("cannot remove %s: %s", path, strerror(errno));
        HASH_DELETE(hh, r->by_uid, record);
        record_free(record);
}

/* ---- look-ups ---- */

Record *records_holder(const Records *r, DeviceKind kind, const DeviceSet *set, Str except_uid) {
        for (Record *record = r->by_uid; record; record = record->hh.next)
                if (!str_eq(str_from(record->uid), except_uid) && record_touches(record, kind, set))
                        return record;
        return NULL;
}
