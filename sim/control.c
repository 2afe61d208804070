/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "gpu/rm/export.h"
#include "gpu/rm/fifo.h"
#include "gpu/rm/query.h"
#include "sim/call.h"
#include "sim/export.h"
#include "sim/links.h"
#include "sim/user/limits.h"

/* The controls about cards, memory and processes. Each takes parameters of the release's size, for
 * an object of one class; others are NOT_SUPPORTED. */

typedef struct Control {
        SimCall *call;
        Sim *sim;
        SimClient *client;
        SimObject *object;
        SimCard *card; /* of the object; NULL: none */
} Control;

/* ---- cards ---- */

static uint32_t attached_ids(Control *k, void *params) {
        RmAttachedIds *p = params;

        for (uint32_t i = 0; i < RM_ATTACHED_MAX; i++)
                p->gpus[i] = i < k->sim->n_cards ? sim_gpu_id(i) : RM_GPU_ID_NONE;
        return RM_OK;
}

static uint32_t probed_ids(Control *k, void *params) {
        RmProbedIds *p = params;

        for (uint32_t i = 0; i < RM_ATTACHED_MAX; i++) {
                p->gpus[i] = i < k->sim->n_cards ? sim_gpu_id(i) : RM_GPU_ID_NONE;
                p->excluded[i] = RM_GPU_ID_NONE;
                p->flags[i] = 0;
        }
        return RM_OK;
}

static bool has_device(const Sim *s, uint32_t card) {
        for (const SimClient *c = s->clients; c; c = c->hh.next)
                for (const SimObject *o = c->root->children; o; o = o->next)
                        if (o->class_ == RM_CLASS_DEVICE && o->card == card)
                                return true;
        return false;
}

/* gpumgrGetGpuIdInfoV2() */
static uint32_t id_info_v2(Control *k, void *params) {
        RmIdInfoV2 *p = params;
        uint32_t gpu = p->gpu;

        for (uint32_t i = 0; i < k->sim->n_cards; i++)
                if (sim_gpu_id(i) == gpu) {
                        *p = (RmIdInfoV2){.gpu = gpu,
                                          .flags = has_device(k->sim, i),
                                          .device = i,
                                          .board = gpu,
                                          .instance = i,
                                          .numa = -1};
                        return RM_OK;
                }
        return RM_ERR_INVALID_ARGUMENT;
}

static uint32_t id_info(Control *k, void *params) {
        RmIdInfo *p = params;
        RmIdInfoV2 v2 = {.gpu = p->gpu};
        uint32_t status = id_info_v2(k, &v2);

        if (status == RM_OK)
                *p = (RmIdInfo){.gpu = v2.gpu,
                                .flags = v2.flags,
                                .device = v2.device,
                                .subdevice = v2.subdevice,
                                .name = p->name,
                                .sli = v2.sli,
                                .board = v2.board,
                                .instance = v2.instance,
                                .numa = v2.numa};
        return status;
}

/* subdeviceCtrlCmdGpuGetGidInfo(), gpuGetGidInfo() */
static uint32_t gid_info(Control *k, void *params) {
        enum { TYPE_SHA256 = 4, MODE_MASK = 7 << 3 };
        RmGidInfo *p = params;

        if (p->flags & MODE_MASK)
                return RM_ERR_INVALID_PARAMETER;
        if (p->flags & TYPE_SHA256)
                return RM_ERR_INVALID_FLAGS;
        if ((p->flags & RM_GID_FORMAT_MASK) == RM_GID_BINARY) {
                sim_uuid_bytes(k->card, p->data);
                p->length = 16;
                return RM_OK;
        }
        p->length = (uint32_t) strlen(k->card->about.uuid) + 1;
        memcpy(p->data, k->card->about.uuid, p->length);
        return RM_OK;
}

/* deviceCtrlCmdGpuGetFindSubDeviceHandle_IMPL(), subdeviceGetByInstance_IMPL() */
static uint32_t find_subdevice(Control *k, void *params) {
        RmFindSubdevice *p = params;

        for (const SimObject *o = k->object->children; o && p->subdevice == 0; o = o->next)
                if (o->class_ == RM_CLASS_SUBDEVICE) {
                        p->handle = o->handle;
                        return RM_OK;
                }
        return RM_ERR_OBJECT_NOT_FOUND;
}

static uint32_t name_string(Control *k, void *params) {
        RmNameString *p = params;
        size_t len = strlen(k->card->about.model);

        memset(p->name, 0, sizeof p->name);
        memcpy(p->name, k->card->about.model, len < sizeof p->name ? len : sizeof p->name - 1);
        return RM_OK;
}

/* A card that is joined to a switch has no other links. */
static uint32_t links(Control *k, void *params) {
        const MachineCard *c = &k->card->about;
        SimLinks *p = params;

        p->switch_links = c->switch_links;
        memcpy(p->peers, c->peers, sizeof p->peers);
        for (size_t i = 0; c->switch_links > 0 && i < CARD_PEERS_MAX; i++)
                p->peers[i].links = 0;
        return RM_OK;
}

/* c may be NULL. */
static SimObject *find_channel(const SimClient *c, uint32_t handle) {
        SimObject *o = c ? sim_object_find(c, handle) : NULL;

        return o && (o->class_ == RM_CLASS_CHANNEL_GROUP || rm_class_is_channel(o->class_)) ? o : NULL;
}

static uint32_t ctx_buffer_size(Control *k, void *params) {
        RmCtxBufferSize *p = params;

        if (!find_channel(k->client, p->channel))
                return RM_ERR_INVALID_CHANNEL;
        p->bytes = SIM_GROUP_BYTES;
        return RM_OK;
}

/* ---- memory ---- */

/* Numbers of the simulator's own, so that one mistake is not in both. */
enum { CTRL_UGPU_MEMORY = 0x20801362, CTRL_FB_STATS = 0x2080132F };

/* Indices that move within a branch: free memory (HEAP_RECLAIMABLE), or a mask. Of 595.99.02,
 * 610.57.04 and 615.71.09 as a third party's tables of NVIDIA's headers have them. That of
 * 620.70.06, whose headers are not known, is made up. */
static bool fb_moved(const Control *k, RmFbEntry *e) {
        static const struct {
                const char *version;
                uint32_t index;
                bool is_free;
        } moved[] = {{"595.99.02", 60, true},
                     {"610.57.04", 60, false},
                     {"615.71.09", 68, true},
                     {"620.70.06", 80, true}};

        for (size_t i = 0; i < ELEMENTSOF(moved); i++) {
                if (moved[i].index != e->index || strcmp(moved[i].version, k->sim->release.version) != 0)
                        continue;
                e->data = moved[i].is_free ? (uint32_t) (sim_card_free(k->card) >> 10) : UINT32_MAX << 8;
                return true;
        }
        return false;
}

/* kern_mem_sys_ctrl.c, in KiB. An index that is not a size has 0. An unknown index ends the list in
 * releases without the conversion; in the others it keeps its data. */
static uint32_t fb_entry(const Control *k, RmFbEntry *e) {
        const SimRelease *release = &k->sim->release;
        const SimCard *c = k->card;
        uint64_t bytes = 0;

        if (fb_moved(k, e))
                return RM_OK;
        if (e->index > release->facts->fb_index_max)
                return release->converts_fb_info ? RM_OK : RM_ERR_INVALID_ARGUMENT;

        switch (e->index) {
        case RM_FB_RAM_SIZE:
        case RM_FB_TOTAL_RAM_SIZE:
                bytes = c->bytes;
                break;
        case RM_FB_HEAP_SIZE:
        case RM_FB_MAPPABLE_HEAP_SIZE:
        case RM_FB_USABLE_RAM_SIZE:
                bytes = c->bytes - c->reserved;
                break;
        case RM_FB_HEAP_FREE:
                bytes = sim_card_free(c);
                break;
        case RM_FB_HEAP_BASE:
        case RM_FB_HEAP_START:
                bytes = c->reserved;
                break;
        case RM_FB_LARGEST_FREE_REGION:
                bytes = sim_card_largest(c).bytes;
                break;
        case RM_FB_LARGEST_FREE_REGION_BASE:
                bytes = sim_card_largest(c).start;
                break;
        default:
                break;
        }
        e->data = bytes >> 10 <= UINT32_MAX ? (uint32_t) (bytes >> 10) : UINT32_MAX;
        return RM_OK;
}

static uint32_t fb_entries(const Control *k, RmFbEntry *list, uint32_t n) {
        uint32_t status = RM_OK;

        for (uint32_t i = 0; i < n && status == RM_OK; i++)
                status = fb_entry(k, &list[i]);
        return status;
}

static uint32_t fb_info_v2(Control *k, void *params) {
        RmFbInfoV2 *p = params;

        if (p->n == 0 || p->n > k->sim->release.facts->fb_list_max)
                return RM_ERR_INVALID_ARGUMENT;
        return fb_entries(k, p->list, p->n);
}

/* With the conversion this list is no longer than the other one; without it, it has 1 MiB at most
 * (RMAPI_PARAM_COPY_MAX_PARAMS_SIZE). Either way it is copied as a whole. */
static uint32_t fb_info(Control *k, void *params) {
        enum { LIST_MAX = (1 << 20) / sizeof(RmFbEntry) };
        const SimRelease *release = &k->sim->release;
        const RmFbInfo *p = params;
        SimCaller *c = k->call->caller;
        RmFbEntry *list;
        uint32_t status;

        if (p->n == 0)
                return RM_ERR_INVALID_ARGUMENT;
        if (release->converts_fb_info && p->n > release->facts->fb_list_max)
                return RM_ERR_OUT_OF_RANGE;
        if (p->n > LIST_MAX)
                return RM_ERR_INVALID_ARGUMENT;
        list = malloc(p->n * sizeof *list);
        if (!list)
                return RM_ERR_NO_MEMORY;
        status = c->read(c, p->list, list, p->n * sizeof *list) < 0 ? RM_ERR_INVALID_ADDRESS
                                                                    : fb_entries(k, list, p->n);
        if (status == RM_OK && c->write(c, p->list, list, p->n * sizeof *list) < 0)
                status = RM_ERR_INVALID_ADDRESS;
        free(list);
        return status;
}

/* GET_UGPU_MEMORY_INFO (ctrl2080fb.h of 590): total and free bytes, and those of two halves. As on
 * a card whose memory has a part that is near to each half. */
static uint32_t ugpu_memory(Control *k, void *params) {
        uint64_t *words = params, free = sim_card_free(k->card);

        if (k->sim->release.facts->branch < 590)
                return RM_ERR_NOT_SUPPORTED;
        words[0] = k->card->bytes - k->card->reserved;
        words[1] = free;
        words[2] = words[3] = words[0] / 2;
        words[4] = words[5] = free / 2;
        return RM_OK;
}

/* FB_STATS_GET of 615, as the structure of 595 begins: a version, six sums, and owners. */
static uint32_t fb_stats(Control *k, void *params) {
        uint64_t *words = params, free = sim_card_free(k->card);

        if (k->sim->release.facts->branch < 615)
                return RM_ERR_NOT_SUPPORTED;
        words[0] = 1;
        words[1] = words[3] = k->card->bytes;
        words[2] = words[4] = words[5] = k->card->reserved;
        words[6] = free;
        words[7] = words[9] = k->card->bytes - k->card->reserved - free;
        words[8] = 1;
        return RM_OK;
}

/* Older releases have shorter regions: they end where the newest have more flags. */
static void pack_regions(const Control *k, RmFbRegions *p) {
        size_t bytes = k->sim->release.facts->fb_region;

        for (uint32_t i = 1; i < p->n && bytes < sizeof(RmFbRegion); i++)
                memmove((uint8_t *) p->regions + i * bytes, &p->regions[i], bytes);
}

static uint32_t fb_region_info(Control *k, void *params) {
        RmFbRegions *p = params;

        *p = (RmFbRegions){.n = 1};
        p->regions[0] = (RmFbRegion){.base = k->card->reserved,
                                     .limit = k->card->bytes - 1,
                                     .performance = 100,
                                     .compressed = 1,
                                     .iso = 1};
        if (k->card->reserved == 0)
                return RM_OK;
        p->regions[p->n++] = (RmFbRegion){.limit = k->card->reserved - 1, .reserved = k->card->reserved};
        pack_regions(k, p);
        return RM_OK;
}

/* ---- processes: gpu_rmapi.c ---- */

static bool has_object(const SimClient *c, uint32_t card, uint32_t class_) {
        for (const SimObject *o = c->objects; o; o = o->hh.next)
                if (o->card == card && o->class_ == class_)
                        return true;
        return false;
}

static bool is_saved(const RmPids *p, uint32_t pid) {
        for (uint32_t i = 0; i < p->n; i++)
                if (p->pids[i] == pid)
                        return true;
        return false;
}

static uint32_t pids(Control *k, void *params) {
        SimCaller *caller = k->call->caller;
        RmPids *p = params;

        if (p->type > 1)
                return RM_ERR_INVALID_ARGUMENT;
        p->n = 0;
        if (p->type != RM_PIDS_BY_CLASS) /* guests of a virtual card: none */
                return RM_OK;
        for (const SimClient *c = k->sim->clients; c && p->n < RM_PIDS_MAX; c = c->hh.next) {
                uint32_t seen;

                if (!has_object(c, k->object->card, p->id))
                        continue;
                seen = caller->pid_seen(caller, c->pid);
                if (seen != 0 && !is_saved(p, seen))
                        p->pids[p->n++] = seen;
        }
        return RM_OK;
}

/* _gpuCollectMemInfo() */
static void collect(const SimClient *c, uint32_t card, RmPidInfo *p) {
        for (const SimObject *o = c->objects; o; o = o->hh.next) {
                if (o->card != card || o->class_ != RM_CLASS_MEMORY_LOCAL)
                        continue;
                if (o->block->refs == 1)
                        p->exclusive += o->block->bytes;
                else if (o->owner)
                        p->shared_owned += o->block->bytes;
                else
                        p->shared_duped += o->block->bytes;
        }
}

static void pid_info_entry(Control *k, RmPidInfo *p) {
        *p = (RmPidInfo){
                .pid = p->pid, .index = p->index, .compute_instance = UINT32_MAX, .gpu_instance = UINT32_MAX};
        if (p->index != RM_PID_INFO_VIDMEM || p->pid == 0) {
                p->result = RM_ERR_INVALID_ARGUMENT;
                return;
        }
        for (const SimClient *c = k->sim->clients; c; c = c->hh.next)
                if (c->seen == p->pid)
                        collect(c, k->object->card, p);
}

static uint32_t pid_info(Control *k, void *params) {
        SimCaller *caller = k->call->caller;
        RmPidInfos *p = params;

        if (p->n == 0 || p->n > RM_PID_INFO_MAX)
                return RM_ERR_INVALID_ARGUMENT;
        for (SimClient *c = k->sim->clients; c; c = c->hh.next)
                c->seen = caller->pid_seen(caller, c->pid);
        for (uint32_t i = 0; i < p->n; i++)
                pid_info_entry(k, &p->list[i]);
        return RM_OK;
}

/* ---- memory objects ---- */

enum {
        SURFACE_ATTRS = 1,
        SURFACE_COMPR_COVERAGE = 5,
        SURFACE_PHYS_ATTR = 8,
};

static uint32_t surface_entry(const Control *k, RmFbEntry *e) {
        uint64_t bytes = k->object->block ? k->object->block->bytes : 0;

        if ((e->index == RM_SURFACE_SIZE_LO || e->index == RM_SURFACE_SIZE_HI) &&
            !k->sim->release.facts->surface_bytes)
                return RM_ERR_INVALID_ARGUMENT;
        switch (e->index) {
        case RM_SURFACE_SIZE_LO:
                e->data = (uint32_t) bytes;
                return RM_OK;
        case RM_SURFACE_SIZE_HI:
                e->data = (uint32_t) (bytes >> 32);
                return RM_OK;
        case RM_SURFACE_SIZE:
                e->data = (uint32_t) (bytes / RM_SURFACE_UNIT);
                return bytes / RM_SURFACE_UNIT <= UINT32_MAX ? RM_OK : RM_ERR_OUT_OF_RANGE;
        case RM_SURFACE_ADDR_SPACE:
                e->data = RM_ADDR_SPACE_VIDMEM;
                return RM_OK;
        case SURFACE_ATTRS:
        case SURFACE_COMPR_COVERAGE:
        case SURFACE_PHYS_ATTR:
                e->data = 0;
                return RM_OK;
        default:
                return RM_ERR_INVALID_ARGUMENT;
        }
}

/* memCtrlCmdGetSurfaceInfoLvm(): a list at a pointer, of the length in the parameters. It ends at
 * the first failure. */
static uint32_t surface_info(Control *k, void *params) {
        const RmSurfaceInfo *p = params;
        SimCaller *caller = k->call->caller;
        RmFbEntry entry;
        uint32_t status;

        for (uint32_t i = 0; i < p->n; i++) {
                uint64_t at = p->list + i * sizeof entry;

                if (i >= RM_FB_LIST_MAX || caller->read(caller, at, &entry, sizeof entry) < 0)
                        return RM_ERR_INVALID_ADDRESS;
                status = surface_entry(k, &entry);
                if (status != RM_OK)
                        return status;
                if (caller->write(caller, at, &entry, sizeof entry) < 0)
                        return RM_ERR_INVALID_ADDRESS;
        }
        return RM_OK;
}

/* ---- how the card's time is shared ---- */

static uint32_t group_schedule(Control *k, void *params) {
        const RmGroupSchedule *p = params;

        k->object->timeshare.scheduled = p->enable;
        return RM_OK;
}

static uint32_t set_timeslice(Control *k, void *params) {
        const RmTimeslice *p = params;

        k->object->timeshare.timeslice_usec = p->usec;
        return RM_OK;
}

static uint32_t get_timeslice(Control *k, void *params) {
        RmTimeslice *p = params;

        p->usec = k->object->timeshare.timeslice_usec;
        return RM_OK;
}

static uint32_t preempt(Control *k, void *params) {
        const RmPreempt *p = params;

        if (p->manual_timeout && p->timeout_usec > RM_PREEMPT_MAX_USEC)
                return RM_ERR_INVALID_ARGUMENT;
        k->object->timeshare.preempts++;
        return RM_OK;
}

static uint32_t preemption_mode(Control *k, void *params) {
        const RmPreemptionMode *p = params;
        SimObject *o = find_channel(k->client, p->channel);

        if (!o)
                return RM_ERR_INVALID_CHANNEL;
        if (p->compute > RM_PREEMPT_COMPUTE_CILP)
                return RM_ERR_INVALID_ARGUMENT;
        if (p->flags & RM_PREEMPT_FLAG_COMPUTE)
                o->timeshare.compute_mode = p->compute;
        return RM_OK;
}

/* subdeviceCtrlCmdFifoDisableChannels_IMPL(); the rest is the firmware's, and closed. */
static uint32_t disable_channels(Control *k, void *params) {
        const RmDisableChannels *p = params;

        if (p->event != 0)
                return RM_ERR_INSUFFICIENT_PERMISSIONS;
        if (p->n > RM_DISABLE_CHANNELS_MAX)
                return RM_ERR_INVALID_ARGUMENT;
        for (uint32_t i = 0; i < p->n; i++) {
                SimObject *o = find_channel(sim_client_find(k->sim, p->clients[i]), p->channels[i]);

                if (!o)
                        return RM_ERR_INVALID_CHANNEL;
                o->timeshare.disabled = p->disable;
        }
        return RM_OK;
}

static uint32_t export_mem(Control *k, void *params) {
        return sim_export_object(k->object, params);
}

static uint32_t import_mem(Control *k, void *params) {
        return sim_import_object(k->object, params);
}

static uint32_t attach_multicast(Control *k, void *params) {
        return sim_attach_object(k->object, params);
}

static uint32_t detach_multicast(Control *k, void *params) {
        return sim_detach_object(k->object, params);
}

/* ---- limits of memory by cgroup: os.c of 615.71.09 ---- */

static bool has_limits(const Control *k) {
        return k->sim->release.facts->branch >= SIM_RELEASE_WITH_LIMITS;
}

static uint32_t find_cgroup(Control *k, int32_t fd, SimCgroup *ret) {
        SimCaller *c = k->call->caller;
        bool found = false;

        if (c->cgroup && fd == SIM_LIMITS_CURRENT_PROCESS)
                found = c->cgroup(c, k->client->pid, k->client->started, ret);
        else if (c->cgroup_at)
                found = c->cgroup_at(c, fd, ret);
        return found ? RM_OK : RM_ERR_INVALID_ARGUMENT;
}

static uint32_t set_limits(Control *k, void *params) {
        const SimSetLimits *p = params;
        SimCgroup g;
        uint32_t status, card = 0;

        if (!has_limits(k))
                return RM_ERR_NOT_SUPPORTED;
        if (k->call->caller->uid != 0)
                return RM_ERR_INSUFFICIENT_PERMISSIONS;
        status = find_cgroup(k, p->cgroup, &g);
        while (card < k->sim->n_cards && sim_gpu_id(card) != p->gpu)
                card++;
        if (status == RM_OK && card == k->sim->n_cards && k->sim->account.o.kind == SIM_LIMITS_MISC)
                status = RM_ERR_OBJECT_NOT_FOUND;
        return status == RM_OK ? sim_account_set(&k->sim->account, card, &g, p->soft, p->hard) : status;
}

static uint32_t get_limits(Control *k, void *params) {
        SimGetLimits *p = params;
        SimCgroup g;
        uint32_t status;

        if (!has_limits(k))
                return RM_ERR_NOT_SUPPORTED;
        p->n = 0;
        status = find_cgroup(k, p->cgroup, &g);
        for (uint32_t i = 0; i < k->sim->n_cards && status == RM_OK; i++) {
                SimLimit *l = &p->list[p->n];

                if (sim_account_get(&k->sim->account, i, &g, l) != RM_OK)
                        continue;
                l->gpu = sim_gpu_id(i);
                p->n++;
        }
        return status == RM_OK && p->n == 0 ? RM_ERR_NOT_SUPPORTED : status;
}

static uint32_t limits_impl(Control *k, void *params) {
        SimLimitsImpl *p = params;

        if (!has_limits(k))
                return RM_ERR_NOT_SUPPORTED;
        p->kind = k->sim->account.o.kind;
        return RM_OK;
}

/* ---- which is which ---- */

static const struct {
        uint32_t cmd, class_;
        uint32_t size; /* in the newest release */
        uint32_t (*run)(Control *k, void *params);
} controls[] = {
        {RM_CTRL_ATTACHED_IDS, RM_CLASS_ROOT_CLIENT, sizeof(RmAttachedIds), attached_ids},
        {RM_CTRL_PROBED_IDS, RM_CLASS_ROOT_CLIENT, sizeof(RmProbedIds), probed_ids},
        {RM_CTRL_ID_INFO, RM_CLASS_ROOT_CLIENT, sizeof(RmIdInfo), id_info},
        {RM_CTRL_ID_INFO_V2, RM_CLASS_ROOT_CLIENT, sizeof(RmIdInfoV2), id_info_v2},
        {SIM_CTRL_SET_LIMITS, RM_CLASS_ROOT_CLIENT, sizeof(SimSetLimits), set_limits},
        {SIM_CTRL_GET_LIMITS, RM_CLASS_ROOT_CLIENT, sizeof(SimGetLimits), get_limits},
        {SIM_CTRL_LIMITS_IMPL, RM_CLASS_ROOT_CLIENT, sizeof(SimLimitsImpl), limits_impl},
        {RM_CTRL_FIND_SUBDEVICE, RM_CLASS_DEVICE, sizeof(RmFindSubdevice), find_subdevice},
        {RM_CTRL_NAME_STRING, RM_CLASS_SUBDEVICE, sizeof(RmNameString), name_string},
        {RM_CTRL_GID_INFO, RM_CLASS_SUBDEVICE, sizeof(RmGidInfo), gid_info},
        {SIM_CTRL_LINKS, RM_CLASS_SUBDEVICE, sizeof(SimLinks), links},
        {RM_CTRL_PIDS, RM_CLASS_SUBDEVICE, sizeof(RmPids), pids},
        {RM_CTRL_PID_INFO, RM_CLASS_SUBDEVICE, sizeof(RmPidInfos), pid_info},
        {RM_CTRL_CTX_BUFFER_SIZE, RM_CLASS_SUBDEVICE, sizeof(RmCtxBufferSize), ctx_buffer_size},
        {RM_CTRL_FB_INFO, RM_CLASS_SUBDEVICE, sizeof(RmFbInfo), fb_info},
        {RM_CTRL_FB_INFO_V2, RM_CLASS_SUBDEVICE, sizeof(RmFbInfoV2), fb_info_v2},
        {RM_CTRL_FB_REGION_INFO, RM_CLASS_SUBDEVICE, sizeof(RmFbRegions), fb_region_info},
        {CTRL_UGPU_MEMORY, RM_CLASS_SUBDEVICE, 48, ugpu_memory},
        {CTRL_FB_STATS, RM_CLASS_SUBDEVICE, 9728, fb_stats},
        {RM_CTRL_GROUP_SCHEDULE, RM_CLASS_CHANNEL_GROUP, sizeof(RmGroupSchedule), group_schedule},
        {RM_CTRL_SET_TIMESLICE, RM_CLASS_CHANNEL_GROUP, sizeof(RmTimeslice), set_timeslice},
        {RM_CTRL_GET_TIMESLICE, RM_CLASS_CHANNEL_GROUP, sizeof(RmTimeslice), get_timeslice},
        {RM_CTRL_PREEMPT, RM_CLASS_CHANNEL_GROUP, sizeof(RmPreempt), preempt},
        {RM_CTRL_PREEMPTION_MODE, RM_CLASS_SUBDEVICE, sizeof(RmPreemptionMode), preemption_mode},
        {RM_CTRL_DISABLE_CHANNELS, RM_CLASS_SUBDEVICE, sizeof(RmDisableChannels), disable_channels},
        {RM_CTRL_SURFACE_INFO, RM_CLASS_MEMORY_LOCAL, sizeof(RmSurfaceInfo), surface_info},
        {RM_CTRL_EXPORT_MEM, RM_CLASS_MEMORY_EXPORT, sizeof(RmExportMem), export_mem},
        {RM_CTRL_IMPORT_MEM, RM_CLASS_MEMORY_EXPORT, sizeof(RmImportMem), import_mem},
        {RM_CTRL_ATTACH_MULTICAST, RM_CLASS_MULTICAST, sizeof(RmAttachMulticast), attach_multicast},
        {RM_CTRL_DETACH_MULTICAST, RM_CLASS_MULTICAST, sizeof(RmDetachMulticast), detach_multicast},
};

enum {
        CONTROLS = sizeof controls / sizeof *controls,
        PARAMS_MAX = sizeof(RmPidInfos),
};

static size_t find(uint32_t cmd) {
        size_t i = 0;

        while (i < CONTROLS && controls[i].cmd != cmd)
                i++;
        return i;
}

/* Whether parameters of a wrong size are refused before the object is looked up. Lists at a pointer
 * are, in every release (embedded_param_copy.c). */
static bool is_checked_first(const SimRelease *release, uint32_t cmd) {
        return release->wrong_size == RM_ERR_INVALID_ARGUMENT || cmd == RM_CTRL_FB_INFO ||
               cmd == RM_CTRL_SURFACE_INFO;
}

static bool is_size_right(const SimRelease *release, const RmControl *p, size_t which) {
        if (which == CONTROLS || (p->cmd == RM_CTRL_FB_INFO && release->converts_fb_info))
                return true;
        return p->params_size == rm_release_params(release->facts, p->cmd, controls[which].size);
}

static uint32_t execute(SimCall *k, const RmControl *p, size_t which) {
        _Alignas(8) uint8_t params[PARAMS_MAX] = {0};
        Control control = {.call = k, .sim = k->file->sim};
        const SimRelease *release = &control.sim->release;
        uint32_t status, size;

        status = sim_call_client(k, p->client, &control.client);
        if (status != RM_OK)
                return status;
        control.object = sim_object_find(control.client, p->object);
        if (!control.object)
                return RM_ERR_OBJECT_NOT_FOUND;
        if (control.object->class_ == RM_CLASS_MEMORY_FABRIC) /* memoryfabricControl_IMPL() */
                return p->cmd >> 16 == RM_CLASS_MEMORY_FABRIC ? RM_ERR_NOT_SUPPORTED
                                                              : RM_ERR_INVALID_ARGUMENT;
        if (which == CONTROLS || control.object->class_ != controls[which].class_)
                return RM_ERR_NOT_SUPPORTED;
        if (!is_size_right(release, p, which))
                return release->wrong_size;
        if (control.object->card < control.sim->n_cards)
                control.card = &control.sim->cards[control.object->card];
        size = rm_release_params(release->facts, p->cmd, controls[which].size);
        if (k->caller->read(k->caller, p->params, params, size) < 0)
                return RM_ERR_INVALID_ADDRESS;
        status = controls[which].run(&control, params);
        if (status == RM_OK && k->caller->write(k->caller, p->params, params, size) < 0)
                return RM_ERR_INVALID_ADDRESS;
        return status;
}

/* _rmapiRmControl() in control.c. A command without category and index does nothing, for any
 * object. */
int sim_call_control(SimCall *k, void *params, size_t n) {
        const SimRelease *release = &k->file->sim->release;
        RmControl *p = params;
        size_t which = find(p->cmd);
        bool converted = p->cmd == RM_CTRL_FB_INFO && release->converts_fb_info;

        if ((p->cmd & 0x3FFF) == 0)
                p->status = RM_OK;
        else if (!sim_client_find(k->file->sim, p->client))
                p->status = RM_ERR_INVALID_CLIENT;
        else if (sim_call_is_export(p->cmd))
                p->status = sim_call_export(k, p);
        else if (!converted && (p->params_size != 0) != (p->params != 0))
                p->status = RM_ERR_INVALID_ARGUMENT;
        else if (is_checked_first(release, p->cmd) && !is_size_right(release, p, which))
                p->status = RM_ERR_INVALID_ARGUMENT;
        else
                p->status = execute(k, p, which);
        return 0;
}
