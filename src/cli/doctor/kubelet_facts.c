/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/kubelet_facts.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "node/kubelet/pod_resources.h"
#include "node/records/records.h"

#define SOCKET  "/var/lib/kubelet/pod-resources/kubelet.sock"
#define RECORDS "/var/lib/aliquot/records"

enum { RECORD_MAX = 32 << 20 };

struct KubeletFacts {
        HostFacts *facts;
        PodResources *pod_resources;
        bool complete;
};

/* Adds "NAMESPACE/POD/CONTAINER RESOURCE": "ID,ID". What is there already, the devices of another
 * pod of this name, stays: "ID,ID;ID". */
static int add_set(json_t *held, Str namespace_, Str pod, Str container, DeviceKind kind,
                   const DeviceSet *set) {
        _cleanup_buf_ Buf key = BUF_NULL, ids = BUF_NULL;
        char text[DEVICE_TEXT_MAX];

        if (set->n == 0)
                return 0;
        buf_appendf(&key, STR_FMT "/" STR_FMT "/" STR_FMT " %s", STR_ARG(namespace_), STR_ARG(pod),
                    STR_ARG(container), device_resource(kind));
        if (buf_result(&key) == 0 && json_object_get(held, key.data))
                buf_appendf(&ids, "%s;", fact_text(held, key.data, NULL));
        for (size_t i = 0; i < set->n; i++) {
                device_format(set->ids[i], kind, text);
                buf_appendf(&ids, "%s%s", i > 0 ? "," : "", text);
        }
        if (buf_result(&key) < 0 || buf_result(&ids) < 0)
                return -ENOMEM;
        return json_object_set_new(held, key.data, json_stringn(ids.data, ids.len)) == 0 ? 0 : -ENOMEM;
}

static void keep_fact(Fact *fact, json_t *held, int r, const char *why) {
        if (r < 0 || !held) {
                fact_fail(fact, r < 0 ? -r : ENOMEM, why);
                json_decref(held);
                return;
        }
        fact_know(fact, str_dup(STR("")), false);
        fact->json = held;
}

/* ---- the agent's records ---- */

/* Adds a record's containers without ordinary init containers, which PodResources does not list. */
static int add_record(json_t *held, const Record *record) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < record->n_containers; i++)
                for (int kind = 0; r == 0 && !record->containers[i].init && kind < DEVICE_KINDS_; kind++)
                        r = add_set(held, str_from(record->namespace_), str_from(record->name),
                                    str_from(record->containers[i].name), (DeviceKind) kind,
                                    &record->containers[i].given[kind]);
        return r;
}

static int add_file(json_t *held, const char *folder, const char *name) {
        _cleanup_buf_ Buf path = BUF_NULL, text = BUF_NULL;
        _cleanup_(record_freep) Record *record = NULL;
        int r;

        buf_appendf(&path, "%s/%s", folder, name);
        r = buf_result(&path) < 0 ? -ENOMEM : file_read(path.data, RECORD_MAX, &text);
        if (r == 0)
                r = record_read(buf_str(&text), &record, NULL);
        if (r != 0)
                return r == -ENOENT ? 0 : r > 0 ? -EBADMSG : r; /* the pod has ended meanwhile */
        return add_record(held, record);
}

/* Whether the name is that of a record (node/records/records.c); beside records are files that are
 * being written. */
static bool is_record(const char *name) {
        size_t n = strlen(name);

        return name[0] != '.' && n > 5 && strcmp(name + n - 5, ".json") == 0;
}

static void read_records(HostFacts *h) {
        const struct dirent *entry;
        json_t *held = json_object();
        char path[512];
        DIR *folder;
        int r = 0;

        (void) snprintf(path, sizeof path, "%s" RECORDS, strcmp(h->root, "/") == 0 ? "" : h->root);
        folder = opendir(path);
        if (!folder)
                r = -errno;
        while (r == 0 && held && (entry = readdir(folder)))
                if (is_record(entry->d_name))
                        r = add_file(held, path, entry->d_name);
        if (folder)
                (void) closedir(folder);
        keep_fact(&h->records, held, r, path);
}

/* ---- the kubelet ---- */

static int add_listed(json_t *held, const ListedPod *pod, const ListedContainer *c) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < c->n_devices; i++)
                for (int kind = 0; r == 0 && kind < DEVICE_KINDS_; kind++) {
                        _cleanup_devices_ DeviceSet set = DEVICE_SET_NULL;

                        if (!str_eq(c->devices[i].resource, str_from(device_resource((DeviceKind) kind))))
                                continue;
                        r = device_set_parse(c->devices[i].ids, c->devices[i].n, (DeviceKind) kind, &set,
                                             NULL);
                        if (r == 0)
                                r = add_set(held, pod->namespace_, pod->name, c->name, (DeviceKind) kind,
                                            &set);
                }
        return r;
}

static void on_list(void *userdata, const PodList *list, const Fault *fault) {
        KubeletFacts *k = userdata;
        json_t *held;
        int r = 0;

        k->complete = true;
        if (!list) {
                fact_fail(&k->facts->pod_resources, ETIMEDOUT, SOCKET);
                k->facts->pod_resources.why = *fault;
                return;
        }
        held = json_object();
        for (size_t i = 0; held && r == 0 && i < list->n; i++)
                for (size_t j = 0; r == 0 && j < list->pods[i].n_containers; j++)
                        r = add_listed(held, &list->pods[i], &list->pods[i].containers[j]);
        keep_fact(&k->facts->pod_resources, held, r > 0 ? -EBADMSG : r, SOCKET);
}

int kubelet_facts_new(sd_event *event, HostFacts *h, usec_t timeout, KubeletFacts **ret) {
        _cleanup_(kubelet_facts_freep) KubeletFacts *k = calloc(1, sizeof *k);
        char path[512];
        int r;

        if (!k)
                return -ENOMEM;
        k->facts = h;
        read_records(h);
        (void) snprintf(path, sizeof path, "%s" SOCKET, strcmp(h->root, "/") == 0 ? "" : h->root);
        if (access(path, F_OK) < 0) {
                fact_fail(&h->pod_resources, errno, path);
                k->complete = true;
                *ret = TAKE_PTR(k);
                return 0;
        }
        r = pod_resources_new(event, path, STR("aliyun.com/"), &k->pod_resources);
        if (r == 0)
                r = pod_resources_list(k->pod_resources, timeout, on_list, k, NULL);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                fact_fail(&h->pod_resources, -r, path);
                k->complete = true;
        }
        *ret = TAKE_PTR(k);
        return 0;
}

KubeletFacts *kubelet_facts_free(KubeletFacts *k) {
        if (!k)
                return NULL;
        pod_resources_free(k->pod_resources);
        free(k);
        return NULL;
}

bool kubelet_facts_complete(const KubeletFacts *k) {
        return k->complete;
}
