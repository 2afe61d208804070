/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet-model.h"

#include <errno.h>

#include "kube/api.h"
#include "node/kubelet/checkpoint.h"
#include "node/kubelet/pod_processes.h"
#include "scratch.h"
#include "test.h"
#include "wire/annotation.h"
#include "wire/card_info.h"
#include "wire/json_write.h"
#include "wire/node.h"
#include "wire/pod.h"

Model model;

static char directory[64], pods_directory[96];
static sd_event *event;
static Roster roster;
static Records records;
static Inventory inventory;
static NodeContext node;
static Resolver *resolver;
static StartVerifier *start_verifier;
static Orphans *orphans;

uint32_t model_random(uint32_t below) {
        return random_below(&model.random, below);
}

/* ---- answers of the agent ---- */

static struct {
        enum { OPEN, ANSWERED, FAILED } state;
        DeviceSet preferred;
        DeviceKind kind;
        char idx[64], units[16], text[512];
} answer;

void rpc_fail(RpcCall *call, RpcStatus status, const char *text) {
        ASSERT_INT(answer.state, OPEN);
        answer.state = FAILED;
        (void) snprintf(answer.text, sizeof answer.text, "%s", text);
}

void rpc_call_on_close(RpcCall *call, void (*on_close)(void *userdata), void *userdata) {
}

void plugin_answer_preferred(RpcCall *call, const Str *ids, size_t n) {
        ASSERT_INT(answer.state, OPEN);
        device_set_done(&answer.preferred);
        ASSERT_OK(device_set_parse(ids, n, answer.kind, &answer.preferred, NULL));
        answer.state = ANSWERED;
}

void plugin_answer_allocate(RpcCall *call, const PluginAllocation *a) {
        ASSERT_INT(answer.state, OPEN);
        for (size_t i = 0; i < a->n_environment; i++) {
                Str value = a->environment[i].value;

                if (strcmp(a->environment[i].name, "ALIYUN_COM_GPU_MEM_IDX") == 0)
                        (void) snprintf(answer.idx, sizeof answer.idx, "%.*s", STR_ARG(value));
                if (strcmp(a->environment[i].name, "ALIYUN_COM_GPU_MEM_CONTAINER") == 0)
                        (void) snprintf(answer.units, sizeof answer.units, "%.*s", STR_ARG(value));
        }
        answer.state = ANSWERED;
}

void plugin_answer_prestart(RpcCall *call) {
        ASSERT_INT(answer.state, OPEN);
        answer.state = ANSWERED;
}

size_t plugin_message_size(const PluginDevice *devices, size_t n) {
        return 20 * n;
}

/* ---- List ---- */

static struct {
        PodResourcesDone done;
        void *userdata;
} list_call;

int pod_resources_list(PodResources *p, usec_t timeout, PodResourcesDone done, void *userdata,
                       PodResourcesCall **ret) {
        ASSERT_TRUE(list_call.done == NULL);
        list_call.done = done;
        list_call.userdata = userdata;
        *ret = (PodResourcesCall *) &list_call;
        return 0;
}

PodResourcesCall *pod_resources_call_free(PodResourcesCall *c) {
        if (c)
                list_call.done = NULL;
        return NULL;
}

static Str *write_ids(const DeviceSet *set, DeviceKind kind, Arena *arena) {
        Str *ids = arena_new(arena, Str, set->n + 1);

        for (size_t i = 0; i < set->n; i++) {
                char text[DEVICE_TEXT_MAX];

                device_format(set->ids[i], kind, text);
                ids[i] = arena_str(arena, str_from(text));
        }
        return ids;
}

static void list_container(const ModelContainer *c, Arena *arena, ListedContainer *ret) {
        *ret = (ListedContainer){.name = str_from(c->name),
                                 .devices = arena_new(arena, HeldDevices, DEVICE_KINDS_)};
        for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                if (c->held[kind].n > 0)
                        ret->devices[ret->n_devices++] = (HeldDevices){
                                str_from(device_resource((DeviceKind) kind)),
                                write_ids(&c->held[kind], (DeviceKind) kind, arena), c->held[kind].n};
}

static void answer_list(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodResourcesDone done = list_call.done;
        PodList list = {.pods = arena_new(&arena, ListedPod, MODEL_PODS)};

        list_call.done = NULL;
        model.lists++;
        if (model.never_lists || model_random(60) == 0) { /* it fails until the deadline */
                done(list_call.userdata, NULL, &(Fault){.text = "rejected by rate limit"});
                return;
        }
        for (size_t i = 0; i < model.n_pods; i++) {
                const ModelPod *pod = &model.pods[i];
                ListedPod *listed = &list.pods[list.n];

                if (!pod->active)
                        continue;
                list.n++;
                *listed = (ListedPod){.namespace_ = STR("d"),
                                      .name = str_from(pod->name),
                                      .containers = arena_new(&arena, ListedContainer, MODEL_CONTAINERS)};
                for (size_t k = 0; k < pod->n; k++)
                        if (pod->containers[k].kind != CONTAINER_INIT)
                                list_container(&pod->containers[k], &arena,
                                               &listed->containers[listed->n_containers++]);
        }
        done(list_call.userdata, &list, NULL);
}

/* ---- the checkpoint, cgroups, and the API server ---- */

int checkpoint_load(const char *path, Str prefix, Arena *arena, Checkpoint *ret, Fault *fault) {
        Checkpoint c = {
                .entries = arena_new(arena, CheckpointEntry, MODEL_PODS * MODEL_CONTAINERS * DEVICE_KINDS_)};

        if (model.checkpoint_gone)
                return fault_set(fault, CHECKPOINT_E_NONE, "no such file");
        for (size_t i = 0; i < model.n_pods; i++)
                for (size_t k = 0; model.pods[i].active && model.pods[i].admitted && k < model.pods[i].n; k++)
                        for (int kind = 0; kind < DEVICE_KINDS_; kind++) {
                                const ModelContainer *m = &model.pods[i].containers[k];

                                if (m->held[kind].n > 0)
                                        c.entries[c.n++] = (CheckpointEntry){
                                                str_from(model.pods[i].uid), str_from(m->name),
                                                str_from(device_resource((DeviceKind) kind)),
                                                write_ids(&m->held[kind], (DeviceKind) kind, arena),
                                                m->held[kind].n};
                        }
        *ret = c;
        return 0;
}

int memory_limits_start(MemoryLimits *m, const Record *record, Fault *fault) {
        return 0; /* the model's node has no limits of the driver */
}

void memory_limits_end(MemoryLimits *m, const char *uid) {
}

PodProcesses pod_processes(const char *root, Str uid) {
        for (size_t i = 0; i < model.n_pods; i++)
                if (str_eq(str_from(model.pods[i].uid), uid) && model.pods[i].processes)
                        return POD_PROCESSES_SOME;
        return POD_PROCESSES_NONE;
}

int kube_merge_patch(KubeClient *c, const char *path, const char *subresource, Str patch,
                     Str resource_version, KubeDone done, void *userdata, KubeCall **ret) {
        return -ENOMEM; /* never written: the agent tries again, and no caller waits */
}

int kube_get_pod(KubeClient *c, Str namespace_, Str name, KubeDone done, void *userdata, KubeCall **ret) {
        return -ENOMEM;
}

KubeCall *kube_call_free(KubeCall *call) {
        return NULL;
}

sd_event *kube_client_event(const KubeClient *c) {
        return event;
}

usec_t kube_backoff(unsigned attempt, usec_t base, usec_t cap, usec_t retry_after) {
        return 3600 * USEC_PER_SEC;
}

static void write_containers(const ModelPod *pod, bool init, JsonWriter *w) {
        json_write_array(w, init ? "initContainers" : "containers");
        for (size_t i = 0; i < pod->n; i++) {
                const ModelContainer *c = &pod->containers[i];

                if ((c->kind != CONTAINER_MAIN) != init)
                        continue;
                json_write_object(w, NULL);
                json_write_text(w, "name", c->name);
                if (c->kind == CONTAINER_SIDECAR)
                        json_write_text(w, "restartPolicy", "Always");
                json_write_object(w, "resources");
                json_write_object(w, "limits");
                if (c->mem > 0)
                        json_write_u64(w, RESOURCE_GPU_MEM, c->mem);
                if (c->core > 0)
                        json_write_u64(w, RESOURCE_GPU_CORE, c->core);
                json_write_object_end(w);
                json_write_object_end(w);
                json_write_object_end(w);
        }
        json_write_array_end(w);
}

static void write_place(const ModelPod *pod, bool init, bool core, JsonWriter *w, const char *key) {
        _cleanup_buf_ Buf text = BUF_NULL;
        size_t index = 0;

        for (size_t i = 0; i < pod->n; i++) {
                const ModelContainer *c = &pod->containers[i];
                uint32_t amount = core ? c->core : c->mem / pod->cards;

                if ((c->kind != CONTAINER_MAIN) != init)
                        continue;
                if (amount > 0) {
                        buf_appendf(&text, "%s\"%zu\":{", text.len > 0 ? "," : "{", index);
                        for (uint32_t k = 0; k < pod->cards; k++)
                                buf_appendf(&text, "%s\"%u\":%u", k > 0 ? "," : "", pod->place[k], amount);
                        buf_append_char(&text, '}');
                }
                index++;
        }
        if (text.len == 0)
                return;
        buf_append_char(&text, '}');
        json_write_str(w, key, buf_str(&text));
}

static void show(const ModelPod *pod, ReflectorEvent what) {
        _cleanup_buf_ Buf text = BUF_NULL;
        char cards[16];
        JsonWriter w;

        (void) snprintf(cards, sizeof cards, "%u", pod->cards);
        json_write_init(&w, &text);
        json_write_object(&w, NULL);
        json_write_object(&w, "metadata");
        json_write_text(&w, "name", pod->name);
        json_write_text(&w, "namespace", "d");
        json_write_text(&w, "uid", pod->uid);
        json_write_object(&w, "labels");
        if (pod->cards > 1)
                json_write_text(&w, LABEL_POD_COUNT, cards);
        json_write_object_end(&w);
        json_write_object(&w, "annotations");
        if (pod->placed) {
                write_place(pod, false, false, &w, ANNOTATION_ALLOCATION);
                write_place(pod, true, false, &w, ANNOTATION_INIT_ALLOCATION);
                write_place(pod, false, true, &w, ANNOTATION_CORE);
        }
        json_write_object_end(&w);
        json_write_object_end(&w);
        json_write_object(&w, "spec");
        json_write_text(&w, "nodeName", "n");
        write_containers(pod, true, &w);
        write_containers(pod, false, &w);
        json_write_object_end(&w);
        json_write_object_end(&w);
        ASSERT_OK(buf_result(&text));
        ASSERT_OK(roster_pod(&roster, what, buf_str(&text)));
}

/* ---- the agent ---- */

static void on_pod(void *userdata, Str uid, RosterPod *pod) {
        if (!roster.synced)
                return;
        orphans_look(orphans, uid, pod);
        if (pod)
                start_verifier_recall(start_verifier, pod);
}

static void on_orphans(void *userdata) {
}

static void start_node(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf cards = BUF_NULL, text = BUF_NULL;
        MachineCard list[MODEL_CARDS];
        JsonWriter w;
        Node object;

        for (uint32_t i = 0; i < MODEL_CARDS; i++) {
                list[i] = (MachineCard){
                        .index = i, .minor = i, .mib = MODEL_UNITS * 1024, .numa = -1, .healthy = true};
                (void) snprintf(list[i].uuid, sizeof list[i].uuid, "GPU-%u", i);
        }
        ASSERT_OK(inventory_set(&inventory, &(CardList){list, MODEL_CARDS}, SHARE_MODE_CORE_MEM,
                                MEMORY_UNIT_GIB));
        card_info_format(inventory.infos, MODEL_CARDS, &cards);
        json_write_init(&w, &text);
        json_write_object(&w, NULL);
        json_write_object(&w, "metadata");
        json_write_text(&w, "name", "n");
        json_write_object(&w, "labels");
        json_write_text(&w, LABEL_SCHEDULE, "core_mem");
        json_write_object_end(&w);
        json_write_object(&w, "annotations");
        json_write_str(&w, ANNOTATION_CARDS, buf_str(&cards));
        json_write_text(&w, ANNOTATION_ALLOW_MIXED, "true");
        json_write_text(&w, ANNOTATION_MAX_PODS, "0");
        json_write_object_end(&w);
        json_write_object_end(&w);
        json_write_object_end(&w);
        ASSERT_OK(node_decode(buf_str(&text), &arena, &object, NULL));
        ASSERT_OK(roster_node(&roster, &object, NULL));
}

static void start_agent(void) {
        ASSERT_OK(roster_init(&roster, "n"));
        ASSERT_OK(records_open(&records, pods_directory, NULL));
        node = (NodeContext){.event = event, .roster = &roster, .records = &records, .inventory = &inventory};
        ASSERT_OK(pod_patcher_new(NULL, &roster, &node.pod_patcher));
        ASSERT_OK(orphans_new(&(OrphansOptions){.node = &node, .on_change = on_orphans}, &orphans));
        ASSERT_OK(resolver_new(&(ResolverOptions){.node = &node}, &resolver));
        ASSERT_OK(start_verifier_new(
                &(StartVerifierOptions){.node = &node, .orphans = orphans, .wait_max = 1}, &start_verifier));
        start_node();
        roster.on_pod = on_pod;
        roster_list_begin(&roster);
        for (size_t i = 0; i < model.n_pods; i++)
                if (model.pods[i].in_api)
                        show(&model.pods[i], REFLECTOR_LISTED);
        roster_list_end(&roster);
        start_verifier_adopt(start_verifier);
        orphans_sweep(orphans);
}

static void stop_agent(void) {
        start_verifier = start_verifier_free(start_verifier);
        resolver = resolver_free(resolver);
        orphans = orphans_free(orphans);
        node.pod_patcher = pod_patcher_free(node.pod_patcher);
        roster.on_pod = NULL;
        roster_done(&roster);
        records_done(&records);
        inventory_done(&inventory);
        list_call.done = NULL;
}

void model_restart_agent(void) {
        stop_agent();
        start_agent();
}

void model_start(uint64_t seed) {
        model = (Model){.random = {seed}};
        (void) snprintf(directory, sizeof directory, "/tmp/aliquot-model-XXXXXX");
        scratch_make(directory);
        (void) snprintf(pods_directory, sizeof pods_directory, "%s/pods", directory);
        ASSERT_TRUE(sd_event_new(&event) >= 0);
        start_agent();
}

void model_end(void) {
        stop_agent();
        event = sd_event_unref(event);
        for (size_t i = 0; i < model.n_pods; i++)
                for (size_t k = 0; k < MODEL_CONTAINERS; k++)
                        for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                                device_set_done(&model.pods[i].containers[k].held[kind]);
        device_set_done(&answer.preferred);
        scratch_remove(directory);
}

size_t model_records(void) {
        return HASH_COUNT(records.by_uid);
}

size_t model_orphans(void) {
        return orphans_count(orphans);
}

/* ---- the device manager ---- */

static bool in_use(DeviceKind kind, DeviceId id) {
        for (size_t i = 0; i < model.n_pods; i++)
                for (size_t k = 0; model.pods[i].active && k < model.pods[i].n; k++)
                        if (device_set_has(&model.pods[i].containers[k].held[kind], id))
                                return true;
        return false;
}

static void all_free(DeviceKind kind, const DeviceSet *and, DeviceSet *ret) {
        uint32_t per_card = kind == DEVICE_MEM ? MODEL_UNITS : 100;

        ret->ids = calloc(MODEL_CARDS * per_card, sizeof *ret->ids);
        ret->n = 0;
        for (uint32_t card = 0; card < MODEL_CARDS; card++)
                for (uint32_t i = 0; i < per_card; i++)
                        if (!in_use(kind, device_id(card, i)) || device_set_has(and, device_id(card, i)))
                                ret->ids[ret->n++] = device_id(card, i);
}

static int compare_ids(const void *a, const void *b) {
        const DeviceId *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static void random_part(const DeviceSet *from, size_t n, DeviceSet *ret) {
        DeviceSet pool;

        ASSERT_OK(device_set_copy(from, &pool));
        for (size_t i = 0; i < n; i++) {
                size_t k = i + model_random((uint32_t) (pool.n - i));
                DeviceId swap = pool.ids[i];

                pool.ids[i] = pool.ids[k];
                pool.ids[k] = swap;
        }
        qsort(pool.ids, n, sizeof *pool.ids, compare_ids);
        *ret = (DeviceSet){pool.ids, n};
}

/* The devices of ordinary init containers that no later container has been given. */
static void reusable(const ModelPod *pod, size_t before, DeviceKind kind, DeviceSet *ret) {
        ret->ids = calloc(MODEL_CARDS * 100, sizeof *ret->ids);
        ret->n = 0;
        for (size_t i = 0; i < before; i++) {
                if (pod->containers[i].kind != CONTAINER_INIT)
                        continue;
                for (size_t k = 0; k < pod->containers[i].held[kind].n; k++) {
                        DeviceId id = pod->containers[i].held[kind].ids[k];
                        bool taken = device_set_has(ret, id);

                        for (size_t m = 0; m < before; m++)
                                if (pod->containers[m].kind != CONTAINER_INIT)
                                        taken |= device_set_has(&pod->containers[m].held[kind], id);
                        if (!taken) {
                                ret->ids[ret->n++] = id;
                                qsort(ret->ids, ret->n, sizeof *ret->ids, compare_ids);
                        }
                }
        }
}

static void pump(void) {
        for (unsigned i = 0; answer.state == OPEN; i++) {
                ASSERT_TRUE(i < 10000);
                if (list_call.done)
                        answer_list();
                else
                        ASSERT_TRUE(sd_event_run(event, UINT64_C(50000)) >= 0);
        }
}

static Str *texts_of(const DeviceSet *set, DeviceKind kind, Arena *arena) {
        return write_ids(set, kind, arena);
}

static bool ask_preferred(DeviceKind kind, const DeviceSet *available, const DeviceSet *must, uint32_t n) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PreferredRequest request = {{texts_of(available, kind, &arena), available->n},
                                    {texts_of(must, kind, &arena), must->n},
                                    n};

        answer.state = OPEN;
        answer.kind = kind;
        resolver_preferred(resolver, kind, (RpcCall *) &answer, &request);
        pump();
        return answer.state == ANSWERED;
}

static bool call_allocate(DeviceKind kind, const DeviceSet *set) {
        _cleanup_arena_ Arena arena = ARENA_NULL;

        answer.state = OPEN;
        answer.idx[0] = answer.units[0] = '\0';
        resolver_allocate(resolver, kind, (RpcCall *) &answer,
                          (PluginIds){texts_of(set, kind, &arena), set->n});
        ASSERT_TRUE(answer.state != OPEN); /* at once: the kubelet's main loop stands still */
        return answer.state == ANSWERED;
}

static bool give(ModelPod *pod, size_t index, DeviceKind kind, uint32_t n) {
        _cleanup_devices_ DeviceSet available = DEVICE_SET_NULL, must = DEVICE_SET_NULL,
                                    chosen = DEVICE_SET_NULL;
        ModelContainer *c = &pod->containers[index];

        reusable(pod, index, kind, &must);
        if (must.n >= n)
                random_part(&must, n, &chosen); /* the kubelet asks for no preference */
        else {
                all_free(kind, &must, &available);
                if (available.n < n || !ask_preferred(kind, &available, &must, n))
                        return false;
                if (!model.ignore_preference && answer.preferred.n == n &&
                    device_set_covers(&available, &answer.preferred))
                        ASSERT_OK(device_set_copy(&answer.preferred, &chosen));
                else
                        random_part(&available, n, &chosen);
        }
        if (!call_allocate(kind, &chosen))
                return false;
        if (kind == DEVICE_MEM) {
                (void) snprintf(c->idx, sizeof c->idx, "%s", answer.idx);
                (void) snprintf(c->units, sizeof c->units, "%s", answer.units);
        }
        c->held[kind] = chosen;
        chosen = DEVICE_SET_NULL;
        return true;
}

static void release(ModelPod *pod) {
        pod->active = false;
        for (size_t i = 0; i < pod->n; i++)
                for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                        device_set_done(&pod->containers[i].held[kind]);
}

bool model_admit(ModelPod *pod, bool kill_agent) {
        size_t kill_at = kill_agent ? model_random((uint32_t) (2 * pod->n)) : SIZE_MAX, step = 0;

        model.admissions++;
        pod->active = true;
        for (size_t i = 0; i < pod->n; i++) {
                DeviceKind first = (DeviceKind) model_random(DEVICE_KINDS_);

                for (int k = 0; k < DEVICE_KINDS_; k++) {
                        DeviceKind kind = k == 0 ? first : !first;
                        uint32_t n = kind == DEVICE_MEM ? pod->containers[i].mem : pod->containers[i].core;

                        if (step++ == kill_at)
                                model_restart_agent(); /* between two calls, so that the kubelet does not notice */
                        if (n > 0 && !give(pod, i, kind, n)) {
                                release(pod);
                                model.rejected++;
                                return false;
                        }
                }
        }
        pod->admitted = true;
        return true;
}

bool model_prestart(ModelPod *pod) {
        _cleanup_arena_ Arena arena = ARENA_NULL;

        for (size_t i = 0; i < pod->n; i++)
                for (int kind = 0; kind < DEVICE_KINDS_; kind++) {
                        ModelContainer *c = &pod->containers[i];

                        if (c->held[kind].n == 0)
                                continue;
                        answer.state = OPEN;
                        start_verifier_prestart(
                                start_verifier, (DeviceKind) kind, (RpcCall *) &answer,
                                (PluginIds){texts_of(&c->held[kind], (DeviceKind) kind, &arena),
                                            c->held[kind].n});
                        pump();
                        if (answer.state == FAILED) {
                                model.waits++;
                                return false;
                        }
                        c->proved[kind] = true;
                }
        pod->processes = true;
        return true;
}

/* ---- pods ---- */

static uint64_t promised(uint32_t card, bool core) {
        uint64_t sum = 0;

        for (size_t i = 0; i < model.n_pods; i++) {
                const ModelPod *pod = &model.pods[i];
                uint64_t steady = 0, peak = 0;
                bool here = false;

                for (uint32_t k = 0; k < pod->cards; k++)
                        here |= pod->place[k] == card;
                if (!here || (!pod->in_api && !pod->processes))
                        continue;
                for (size_t k = 0; k < pod->n; k++) {
                        uint64_t n = core ? pod->containers[k].core : pod->containers[k].mem / pod->cards;

                        if (pod->containers[k].kind == CONTAINER_INIT)
                                peak = steady + n > peak ? steady + n : peak;
                        else
                                steady += n;
                }
                sum += steady > peak ? steady : peak;
        }
        return sum;
}

static bool fits(const ModelPod *pod, uint32_t card) {
        uint64_t mem = 0, core = 0;

        for (size_t i = 0; i < pod->n; i++) {
                mem += pod->containers[i].mem /
                       pod->cards; /* with init containers this is more than it needs */
                core += pod->containers[i].core;
        }
        return promised(card, false) + mem <= MODEL_UNITS && promised(card, true) + core <= 100;
}

static void shape(ModelPod *pod) {
        bool core = model_random(3) == 0;

        pod->cards = !core && model_random(6) == 0 ? 2 : 1;
        pod->n = 1 + model_random(3);
        for (size_t i = 0; i < pod->n; i++) {
                ModelContainer *c = &pod->containers[i];

                (void) snprintf(c->name, sizeof c->name, "c%u", (unsigned) i & 0xff);
                c->kind = CONTAINER_MAIN;
                if (i + 1 < pod->n && pod->cards == 1 && model_random(2) == 0)
                        c->kind = model_random(3) == 0 ? CONTAINER_SIDECAR : CONTAINER_INIT;
                if (i > 0 && pod->containers[i - 1].kind == CONTAINER_MAIN)
                        c->kind = CONTAINER_MAIN;
                c->mem = (1 + model_random(4)) * pod->cards;
                c->core = core ? 5 * (1 + model_random(4)) : 0;
        }
}

ModelPod *model_make_pod(void) {
        static unsigned serial;
        ModelPod *pod = NULL;
        uint32_t found = 0, from = model_random(MODEL_CARDS);

        for (size_t i = 0; i < model.n_pods && !pod; i++)
                if (!model.pods[i].in_api && !model.pods[i].processes && !model.pods[i].active)
                        pod = &model.pods[i];
        if (!pod && model.n_pods < MODEL_PODS)
                pod = &model.pods[model.n_pods++];
        if (!pod)
                return NULL;
        *pod = (ModelPod){0};
        (void) snprintf(pod->uid, sizeof pod->uid, "uid-%u", ++serial);
        (void) snprintf(pod->name, sizeof pod->name, "pod-%u", model_random(4) == 0 ? serial - 1 : serial);
        for (size_t i = 0; i < model.n_pods; i++)
                if (&model.pods[i] != pod && model.pods[i].in_api &&
                    strcmp(model.pods[i].name, pod->name) == 0)
                        (void) snprintf(pod->name, sizeof pod->name, "pod-%u", serial);
        shape(pod);
        for (uint32_t i = 0; i < MODEL_CARDS && found < pod->cards; i++)
                if (fits(pod, (from + i) % MODEL_CARDS))
                        pod->place[found++] = (from + i) % MODEL_CARDS;
        if (found < pod->cards)
                return NULL;
        pod->placed = true;
        pod->in_api = true;
        show(pod, REFLECTOR_ADDED);
        return pod;
}

void model_check(const ModelPod *pod) {
        ASSERT_TRUE(pod->cards > 0);
        for (size_t i = 0; i < pod->n; i++) {
                const ModelContainer *c = &pod->containers[i];
                char idx[64] = "", units[16];
                uint32_t cards[4], n = pod->cards;

                memcpy(cards, pod->place, sizeof cards);
                if (n == 2 && cards[0] > cards[1]) {
                        cards[0] = pod->place[1];
                        cards[1] = pod->place[0];
                }
                for (uint32_t k = 0; k < n; k++)
                        (void) snprintf(idx + strlen(idx), sizeof idx - strlen(idx), "%s%u", k > 0 ? "," : "",
                                        cards[k]);
                (void) snprintf(units, sizeof units, "%u", c->mem / pod->cards);
                ASSERT_TEXT(c->idx, idx);
                ASSERT_TEXT(c->units, units);
                for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                        for (size_t k = 0; k < c->held[kind].n; k++) {
                                uint32_t card = device_card(c->held[kind].ids[k]);

                                ASSERT_TRUE(card == cards[0] || (n == 2 && card == cards[1]));
                        }
        }
}

void model_finish(ModelPod *pod) {
        pod->processes = false;
        release(pod);
        pod->in_api = false;
        show(pod, REFLECTOR_DELETED);
}

void model_force_delete(ModelPod *pod) {
        pod->in_api = false;
        show(pod, REFLECTOR_DELETED);
        release(pod);
}

void model_end_processes(ModelPod *pod) {
        pod->processes = false;
        orphans_sweep(orphans);
}
