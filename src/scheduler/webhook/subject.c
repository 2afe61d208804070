/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/subject.h"

#include <stddef.h>

#include "wire/annotation.h"
#include "wire/json_field.h"

/* k8s.io/api/core/v1, MirrorPodAnnotationKey. */
#define ANNOTATION_MIRROR "kubernetes.io/config.mirror"

/* The fields that the pod decoder does not read. */
typedef struct Outer {
        bool terminating, mirror;
        Str pod_template;           /* text; empty: absent */
        Str metadata, job_metadata; /* texts; empty: absent */
} Outer;

#define DECODER(name, fields)                                                                                \
        static void name(JsonReader *r, Arena *arena, void *ret) {                                           \
                json_field_decode(r, arena, fields, ELEMENTSOF(fields), ret);                                \
        }

static const JsonField annotation_fields[] = {
        JSON_FIELD(Outer, mirror, ANNOTATION_MIRROR, json_field_present)};
DECODER(read_annotations, annotation_fields)

static const JsonField metadata_fields[] = {
        JSON_FIELD(Outer, terminating, "deletionTimestamp", json_field_present),
        JSON_NESTED("annotations", read_annotations),
};
DECODER(read_metadata, metadata_fields)

static void read_own_metadata(JsonReader *r, Arena *arena, void *ret) {
        Outer *outer = ret;
        const char *begin;

        (void) json_peek(r);
        begin = r->at;
        read_metadata(r, arena, outer);
        outer->metadata = (Str){begin, (size_t) (r->at - begin)};
}

static void read_template(JsonReader *r, Arena *arena, void *ret_str) {
        if (json_peek(r) == JSON_NULL)
                json_skip(r);
        else
                json_raw(r, ret_str);
}

static const JsonField spec_fields[] = {JSON_FIELD(Outer, pod_template, "template", read_template)};
DECODER(read_spec, spec_fields)

static const JsonField job_template_fields[] = {
        JSON_FIELD(Outer, job_metadata, "metadata", json_field_raw),
        JSON_NESTED("spec", read_spec),
};
DECODER(read_job_template, job_template_fields)

static const JsonField cron_spec_fields[] = {JSON_NESTED("jobTemplate", read_job_template)};
DECODER(read_cron_spec, cron_spec_fields)

static const JsonField pod_fields[] = {JSON_NESTED("metadata", read_metadata)};
static const JsonField workload_fields[] = {
        JSON_NESTED("metadata", read_own_metadata),
        JSON_NESTED("spec", read_spec),
};
static const JsonField cron_fields[] = {
        JSON_NESTED("metadata", read_own_metadata),
        JSON_NESTED("spec", read_cron_spec),
};

struct SubjectKind {
        Str group, kind;
        const char *path;
        const JsonField *fields;
        size_t n_fields;
};

#define WORKLOAD(g, k)                                                                                       \
        { STR(g), STR(k), "spec.template.", workload_fields, ELEMENTSOF(workload_fields) }

static const SubjectKind kinds[] = {
        {STR(""), STR("Pod"), "", pod_fields, ELEMENTSOF(pod_fields)},
        WORKLOAD("apps", "Deployment"),
        WORKLOAD("apps", "StatefulSet"),
        WORKLOAD("apps", "DaemonSet"),
        WORKLOAD("apps", "ReplicaSet"),
        WORKLOAD("batch", "Job"),
        WORKLOAD("", "ReplicationController"),
        {STR("batch"), STR("CronJob"), "spec.jobTemplate.spec.template.", cron_fields,
         ELEMENTSOF(cron_fields)},
};

const SubjectKind *subject_kind_find(Str group, Str kind) {
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (str_eq(kinds[i].group, group) && str_eq(kinds[i].kind, kind))
                        return &kinds[i];
        return NULL;
}

bool subject_kind_is_pod(const SubjectKind *k) {
        return k == &kinds[0];
}

const char *subject_kind_path(const SubjectKind *k) {
        return k->path;
}

int subject_decode(const SubjectKind *k, Str json, Arena *arena, Subject *ret, Fault *fault) {
        Subject s = {.is_pod = subject_kind_is_pod(k)};
        Outer outer = {0};
        JsonReader reader;
        Str pod;
        int r;

        json_init(&reader, json);
        if (json_peek(&reader) == JSON_NULL)
                json_fault(&reader, "not an object");
        json_field_decode(&reader, arena, k->fields, k->n_fields, &outer);
        r = json_finish(&reader, fault);
        if (r != 0)
                return r < 0 ? r
                             : fault_wrap(fault, SUBJECT_E_MALFORMED, "the " STR_FMT " cannot be read",
                                          STR_ARG(k->kind));
        pod = s.is_pod ? json : outer.pod_template;
        s.outer[0] = outer.metadata;
        s.outer[1] = outer.job_metadata;
        s.path = k->path;
        s.text = pod;
        if (!str_is_empty(pod)) {
                r = pod_decode(pod, arena, &s.pod, fault);
                if (r != 0)
                        return r < 0 ? r : SUBJECT_E_MALFORMED;
        }
        s.terminating = outer.terminating;
        s.is_mirror = s.is_pod && outer.mirror;
        *ret = s;
        return 0;
}

bool subject_asks_for_cards(const Subject *s) {
        for (size_t i = 0; i < s->pod.n_containers && !s->is_mirror; i++)
                if (s->pod.containers[i].gpu_mem.present || s->pod.containers[i].gpu.present)
                        return true;
        return false;
}

bool subject_is_ours(Str json) {
        static const char *const names[] = {"\"" RESOURCE_GPU_MEM "\"", "\"" RESOURCE_GPU_CORE "\"",
                                            "\"" RESOURCE_GPU_COUNT "\"", "\"" RESOURCE_GPU "\""};

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (json.len > 0 && memmem(json.data, json.len, names[i], strlen(names[i])))
                        return true;
        return false;
}
