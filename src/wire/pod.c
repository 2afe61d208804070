/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pod.h"

#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "wire/annotation.h"
#include "wire/object-internal.h"
#include "wire/pod_gang.h"
#include "wire/resize_keys.h"
#include "wire/topology_keys.h"

/* ---- containers ---- */

typedef struct ContainerList {
        PodContainer *items;
        size_t n, room;
} ContainerList;

/* A pod while it is read: its two lists stand in any order in the text. */
typedef struct PodDraft {
        Pod pod;
        ContainerList init, main;
} PodDraft;

typedef struct ContainerDraft {
        PodContainer container;
        Str restart_policy;
        GateCover mount, device, message; /* the first mount and device over the gate, and the message file */
} ContainerDraft;

/* Reads the cpu that a container or the pod requests. */
static void read_cpu(JsonReader *r, Arena *arena, void *ret_cpu) {
        static const JsonField fields[] = {{STR("cpu"), object_read_amount, 0}};

        *(Str *) ret_cpu = (Str){0};
        json_field_decode(r, arena, fields, ELEMENTSOF(fields), ret_cpu);
}

static void read_ask(JsonReader *r, Arena *arena, void *ret_ask) {
        ResourceAsk ask = {0};

        ask.present = object_read_quantity(r, arena, &ask.text);
        *(ResourceAsk *) ret_ask = ask;
}

static const JsonField limit_fields[] = {
        JSON_FIELD(ContainerDraft, container.gpu_mem, RESOURCE_GPU_MEM, read_ask),
        JSON_FIELD(ContainerDraft, container.gpu_core, RESOURCE_GPU_CORE, read_ask),
        JSON_FIELD(ContainerDraft, container.gpu_count, RESOURCE_GPU_COUNT, read_ask),
        JSON_FIELD(ContainerDraft, container.gpu, RESOURCE_GPU, read_ask),
};

/* Whether a resource is an extended one: it has a domain. Those of Kubernetes itself have none, or
 * kubernetes.io. */
static bool is_extended(Str raw) {
        Str name = raw, domain = str_split(&name, '/');

        return name.len > 0 && !str_eq(domain, STR("kubernetes.io"));
}

/* Whether HAMi takes this limit for a share of a card. */
static bool is_foreign(Str key) {
        return str_eq(key, STR("nvidia.com/gpumem")) || str_eq(key, STR("nvidia.com/gpumem-percentage")) ||
               str_eq(key, STR("nvidia.com/gpucores"));
}

static void read_limits(JsonReader *r, Arena *arena, void *ret) {
        ContainerDraft *c = ret;
        Str key;

        JSON_EACH_MEMBER(r, &key) {
                size_t i = 0;

                while (i < ELEMENTSOF(limit_fields) && !json_key_eq(key, limit_fields[i].name))
                        i++;
                if (i < ELEMENTSOF(limit_fields)) {
                        limit_fields[i].decode(r, arena, (char *) ret + limit_fields[i].offset);
                        continue;
                }
                c->container.other_devices |= is_extended(key);
                if (is_foreign(key))
                        c->container.foreign_limit = key;
                if (str_has_prefix(key, STR(RESOURCE_BEGINNING)))
                        c->container.other_limit = key;
                json_skip(r);
        }
}

static const JsonField resources_fields[] = {
        JSON_NESTED("limits", read_limits),
        JSON_FIELD(ContainerDraft, container.cpu, "requests", read_cpu),
};
JSON_DECODER(read_resources, resources_fields)

typedef struct Variable {
        Str name;
        EnvironmentText value;
} Variable;

static const JsonField variable_fields[] = {
        JSON_FIELD(Variable, name, "name", json_field_str),
        JSON_FIELD(Variable, value.text, "value", json_field_str),
        JSON_FIELD(Variable, value.elsewhere, "valueFrom", json_field_present),
};

/* Whether the node agent sets this variable for each container with a share
 * (share/environment.h). */
static bool is_agents(Str name) {
        static const Str names[] = {
                STR(ENVIRONMENT_MEM_CONTAINER), STR(ENVIRONMENT_MEM_DEV),  STR(ENVIRONMENT_MEM_POD),
                STR(ENVIRONMENT_MEM_IDX),       STR(ENVIRONMENT_MEM_UNIT), STR(ENVIRONMENT_VISIBLE_DEVICES),
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (str_eq(name, names[i]))
                        return true;
        return false;
}

/* Whether the toolkit's hook apply-cuda-memory-limits takes a limit of the driver from this
 * variable. */
static bool is_memory_limit(Str name) {
        return str_eq(name, STR("NVIDIA_GPU_MEMORY_REQUEST")) || str_eq(name, STR("NVIDIA_GPU_MEMORY_LIMIT"));
}

/* When a name stands twice the last one counts, as in a process. */
static void take_variable(PodContainer *c, const Variable *v) {
        Str text = v->value.text;

        if (is_agents(v->name))
                c->agents_variable = v->name;
        if (is_memory_limit(v->name))
                c->memory_variable = v->name;
        if (str_eq(v->name, STR(ENVIRONMENT_DISABLE))) {
                c->disable = v->value;
                c->not_isolated = str_eq(text, STR("true")) || str_eq(text, STR("1"));
        } else if (str_eq(v->name, STR(ENVIRONMENT_WEIGHT)))
                c->weight = v->value;
        else if (str_eq(v->name, STR(ENVIRONMENT_HIGH_PRIORITY)))
                c->high_priority = v->value;
        else if (str_eq(v->name, STR(ENVIRONMENT_VISIBLE_DEVICES))) {
                c->sets_visible_devices = true;
                c->visible_devices = text;
        }
}

static void read_environment(JsonReader *r, Arena *arena, void *ret) {
        ContainerDraft *c = ret;

        JSON_EACH_ELEMENT(r) {
                Variable v = {0};

                json_field_decode(r, arena, variable_fields, ELEMENTSOF(variable_fields), &v);
                take_variable(&c->container, &v);
        }
}

/* ---- what is mounted over the gate ---- */

static const JsonField mount_fields[] = {{STR("mountPath"), json_field_str, 0}};
static const JsonField device_fields[] = {{STR("devicePath"), json_field_str, 0}};

static void read_covers(JsonReader *r, Arena *arena, const JsonField *path_field, GateCoverField field,
                        GateCover *ret) {
        *ret = (GateCover){0}; /* a list that stands twice: the last one counts */
        if (!json_array_begin(r))
                return;
        for (uint32_t i = 0; json_array_next(r); i++) {
                Str path = {0};

                json_field_decode(r, arena, path_field, 1, &path);
                if (ret->field == GATE_COVER_NONE && gate_cover_is_at(path))
                        *ret = (GateCover){field, i, path};
        }
}

static void read_volume_mounts(JsonReader *r, Arena *arena, void *ret_cover) {
        read_covers(r, arena, mount_fields, GATE_COVER_VOLUME_MOUNT, ret_cover);
}

static void read_volume_devices(JsonReader *r, Arena *arena, void *ret_cover) {
        read_covers(r, arena, device_fields, GATE_COVER_VOLUME_DEVICE, ret_cover);
}

static void read_termination_path(JsonReader *r, Arena *arena, void *ret_cover) {
        GateCover *cover = ret_cover;
        Str path = {0};

        json_field_str(r, arena, &path);
        *cover = gate_cover_is_at(path) ? (GateCover){GATE_COVER_TERMINATION_MESSAGE, 0, path}
                                        : (GateCover){0};
}

static GateCover first_cover(const ContainerDraft *c) {
        if (c->mount.field != GATE_COVER_NONE)
                return c->mount;
        return c->device.field != GATE_COVER_NONE ? c->device : c->message;
}

static const JsonField security_fields[] = {
        JSON_FIELD(ContainerDraft, container.privileged, "privileged", json_field_bool),
};
JSON_DECODER(read_security, security_fields)

static const JsonField container_fields[] = {
        JSON_NESTED("securityContext", read_security),
        JSON_FIELD(ContainerDraft, mount, "volumeMounts", read_volume_mounts),
        JSON_FIELD(ContainerDraft, device, "volumeDevices", read_volume_devices),
        JSON_FIELD(ContainerDraft, message, "terminationMessagePath", read_termination_path),
        JSON_FIELD(ContainerDraft, container.name, "name", json_field_str),
        JSON_FIELD(ContainerDraft, restart_policy, "restartPolicy", json_field_str),
        JSON_NESTED("resources", read_resources),
        JSON_NESTED("env", read_environment),
};

static bool list_grow(JsonReader *r, Arena *arena, ContainerList *list) {
        size_t room = list->room > 0 ? 4 * list->room : 4;
        PodContainer *bigger = arena_new(arena, PodContainer, room);

        if (!bigger) {
                json_no_memory(r);
                return false;
        }
        if (list->n > 0)
                memcpy(bigger, list->items, list->n * sizeof *bigger);
        list->items = bigger;
        list->room = room;
        return true;
}

static void read_containers(JsonReader *r, Arena *arena, bool init, ContainerList *list) {
        list->n = 0; /* a list that stands twice: the last one counts, as everywhere */
        JSON_EACH_ELEMENT(r) {
                ContainerDraft c = {.container.index = (uint32_t) list->n};

                if (list->n > CONTAINER_INDEX_MAX) {
                        json_fault(r, "more than 1024 containers");
                        return;
                }
                json_field_decode(r, arena, container_fields, ELEMENTSOF(container_fields), &c);
                c.container.cover = first_cover(&c);
                if (init)
                        c.container.kind =
                                str_eq(c.restart_policy, STR("Always")) ? CONTAINER_SIDECAR : CONTAINER_INIT;
                if (list->n == list->room && !list_grow(r, arena, list))
                        return;
                list->items[list->n++] = c.container;
        }
}

static void read_init_containers(JsonReader *r, Arena *arena, void *ret) {
        read_containers(r, arena, true, ret);
}

static void read_main_containers(JsonReader *r, Arena *arena, void *ret) {
        read_containers(r, arena, false, ret);
}

/* ---- pods ---- */

static const JsonField pod_annotation_fields[] = {
#define FIELD(member, key, ...) JSON_FIELD(Pod, annotations.member, key, json_field_str),
        POD_SYSTEM_KEYS(FIELD) POD_CARD_KEYS(FIELD)
#undef FIELD
                JSON_FIELD(Pod, annotations.mirror, ANNOTATION_MIRROR, json_field_str),
        JSON_FIELD(Pod, annotations.resize_mem, ANNOTATION_RESIZE_MEM, json_field_str),
        JSON_FIELD(Pod, annotations.resize_core, ANNOTATION_RESIZE_CORE, json_field_str),
        JSON_FIELD(Pod, names_gang, ANNOTATION_GANG_NAME, json_field_present),
        JSON_FIELD(Pod, gang_keys.min, ANNOTATION_GANG_MIN, json_field_present),
        JSON_FIELD(Pod, gang_keys.groups, KEY_GANG_GROUPS, json_field_present),
        JSON_FIELD(Pod, gang_keys.groups, ANNOTATION_GANG_GROUPS, json_field_present),
        JSON_FIELD(Pod, gang_keys.match, KEY_GANG_MATCH, json_field_str),
        JSON_FIELD(Pod, gang_keys.match, ANNOTATION_GANG_MATCH, json_field_str),
        JSON_FIELD(Pod, annotations.cpuset, ANNOTATION_CPUSET, json_field_str),
        JSON_FIELD(Pod, annotations.numa_spec, ANNOTATION_NUMA_SPEC, json_field_str),
};
JSON_DECODER(read_pod_annotations, pod_annotation_fields)

static const JsonField pod_label_fields[] = {
        JSON_FIELD(Pod, gpu_count_label, LABEL_POD_COUNT, json_field_str),
        JSON_FIELD(Pod, names_gang, LABEL_GANG_NAME, json_field_present),
        JSON_FIELD(Pod, names_gang, LABEL_GANG, json_field_present),
        JSON_FIELD(Pod, gang_keys.min, LABEL_GANG_MIN, json_field_present),
        JSON_FIELD(Pod, gang_keys.match, KEY_GANG_MATCH, json_field_str),
        JSON_FIELD(Pod, gang_keys.pod_group, LABEL_POD_GROUP, json_field_present),
        JSON_FIELD(Pod, topology_job, LABEL_TOPOLOGY_JOB, json_field_str),
};
JSON_DECODER(read_pod_labels, pod_label_fields)

static const JsonField pod_metadata_fields[] = {
        OBJECT_META_FIELDS(Pod),
        JSON_NESTED("annotations", read_pod_annotations),
        JSON_NESTED("labels", read_pod_labels),
};
JSON_DECODER(read_pod_metadata, pod_metadata_fields)

static const JsonField pod_resources_fields[] = {JSON_FIELD(PodDraft, pod.cpu, "requests", read_cpu)};
JSON_DECODER(read_pod_resources, pod_resources_fields)

static const JsonField selector_fields[] = {
        JSON_FIELD(PodDraft, pod.node_mode, LABEL_SCHEDULE, json_field_str),
};
JSON_DECODER(read_selector, selector_fields)

static const JsonField pod_spec_fields[] = {
        JSON_NESTED("nodeSelector", read_selector),
        JSON_FIELD(PodDraft, pod.affinity, "affinity", json_field_raw),
        JSON_FIELD(PodDraft, pod.has_gates, "schedulingGates", json_field_present),
        JSON_FIELD(PodDraft, pod.gang_keys.native, "schedulingGroup", json_field_present),
        JSON_FIELD(PodDraft, pod.gang_keys.native, "workloadRef", json_field_present),
        JSON_NESTED("resources", read_pod_resources),
        JSON_FIELD(PodDraft, pod.overhead_cpu, "overhead", read_cpu),
        JSON_FIELD(PodDraft, pod.node_name, "nodeName", json_field_str),
        JSON_FIELD(PodDraft, pod.scheduler_name, "schedulerName", json_field_str),
        JSON_FIELD(PodDraft, main, "containers", read_main_containers),
        JSON_FIELD(PodDraft, init, "initContainers", read_init_containers),
};
JSON_DECODER(read_pod_spec, pod_spec_fields)

static const JsonField state_fields[] = {{STR("running"), json_field_present, 0}};
JSON_DECODER(read_state, state_fields)

typedef struct StatusDraft {
        bool running;
        ContainerId id;
} StatusDraft;

static const JsonField container_status_fields[] = {
        JSON_FIELD(StatusDraft, running, "state", read_state),
        JSON_FIELD(StatusDraft, id.name, "name", json_field_str),
        JSON_FIELD(StatusDraft, id.id, "containerID", json_field_str),
};

/* The array grows by doubling: it is full when n is a power of two. More containers than the
 * kubelet can have made are left out. */
static bool add_id(JsonReader *r, Arena *arena, Pod *pod, const ContainerId *id) {
        size_t n = pod->n_ids;
        ContainerId *bigger;

        if (n > CONTAINER_INDEX_MAX)
                return true;
        if ((n & (n - 1)) == 0) {
                bigger = arena_new(arena, ContainerId, n > 0 ? 2 * n : 1);
                if (!bigger) {
                        json_no_memory(r);
                        return false;
                }
                if (n > 0)
                        memcpy(bigger, pod->ids, n * sizeof *bigger);
                pod->ids = bigger;
        }
        pod->ids[pod->n_ids++] = *id;
        return true;
}

static void read_container_statuses(JsonReader *r, Arena *arena, void *ret) {
        Pod *pod = ret;

        JSON_EACH_ELEMENT(r) {
                StatusDraft status = {0};

                json_field_decode(r, arena, container_status_fields, ELEMENTSOF(container_status_fields),
                                  &status);
                if (status.running)
                        pod->containers_ended = false;
                if (status.id.id.len > 0 && !add_id(r, arena, pod, &status.id))
                        return;
        }
}

static const JsonField pod_status_fields[] = {
        JSON_FIELD(Pod, phase, "phase", json_field_str),
        JSON_NESTED("containerStatuses", read_container_statuses),
        JSON_NESTED("initContainerStatuses", read_container_statuses),
        JSON_NESTED("ephemeralContainerStatuses", read_container_statuses),
};
JSON_DECODER(read_pod_status, pod_status_fields)

static const JsonField pod_fields[] = {
        JSON_FIELD(PodDraft, pod, "metadata", read_pod_metadata),
        JSON_NESTED("spec", read_pod_spec),
        JSON_FIELD(PodDraft, pod, "status", read_pod_status),
};

static int join_containers(PodDraft *d, Arena *arena) {
        size_t n = d->init.n + d->main.n;
        PodContainer *all;

        if (d->init.n == 0)
                all = d->main.items;
        else {
                all = arena_new(arena, PodContainer, n);
                if (!all)
                        return -ENOMEM;
                memcpy(all, d->init.items, d->init.n * sizeof *all);
                if (d->main.n > 0)
                        memcpy(all + d->init.n, d->main.items, d->main.n * sizeof *all);
        }
        d->pod.containers = all;
        d->pod.n_containers = n;
        return 0;
}

/* Whether a job's label makes this pod a gang's member: it does so on pods of whole cards only. */
static bool is_of_job(const Pod *pod) {
        for (size_t i = 0; i < pod->n_containers && !str_is_empty(pod->topology_job); i++)
                if (pod->containers[i].gpu.present)
                        return true;
        return false;
}

int pod_decode(Str json, Arena *arena, Pod *ret, Fault *fault) {
        PodDraft d = {.pod.containers_ended = true};
        JsonReader reader;
        int r;

        json_init(&reader, json);
        object_read(&reader, arena, pod_fields, ELEMENTSOF(pod_fields), &d);
        r = json_finish(&reader, fault);
        if (r != 0)
                return object_result(r, "pod", &d.pod.meta, fault);
        r = join_containers(&d, arena);
        if (r < 0)
                return r;
        d.pod.names_gang |= is_of_job(&d.pod);
        *ret = d.pod;
        return 0;
}

bool pod_is_terminal(const Pod *pod) {
        return str_eq(pod->phase, STR("Succeeded")) || str_eq(pod->phase, STR("Failed"));
}

/* ---- system keys ---- */

const Str pod_system_key_names[] = {
#define NAME(member, key) STR(key),
        POD_SYSTEM_KEYS(NAME)
#undef NAME
};

_Static_assert(ELEMENTSOF(pod_system_key_names) == POD_SYSTEM_KEYS_COUNT, "count of POD_SYSTEM_KEYS");

uint32_t pod_system_keys(const Pod *pod) {
        const Str values[] = {
#define VALUE(member, key) pod->annotations.member,
                POD_SYSTEM_KEYS(VALUE)
#undef VALUE
        };
        uint32_t keys = 0;

        for (size_t i = 0; i < ELEMENTSOF(values); i++)
                keys |= (uint32_t) !str_is_empty(values[i]) << i;
        return keys;
}
