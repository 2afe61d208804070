/* SPDX-License-Identifier: Apache-2.0 */
#include "node/isolation/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/log.h"
#include "slice/container_paths.h"
#include "slice/visible.h"

#define MIB (UINT64_C(1) << 20)

enum { NVIDIA_MAJOR = 195, NVIDIA_CTL = 255 };

int isolation_init(Isolation *i, const IsolationOptions *o) {
        *i = (Isolation){.slicedir = SLICEDIR_NULL,
                         .preload = PRELOAD_FILES_NULL,
                         .ignores_disable = o->ignores_disable,
                         .says_refusals = o->says_refusals,
                         .simulated = SIMULATED_DRIVER_NULL};
        (void) snprintf(i->slicedir.path, sizeof i->slicedir.path, "%s",
                        o->slices); /* mounts name it, even if it cannot be opened */
        i->on_compute_fault = o->on_compute_fault;
        i->userdata = o->userdata;
        node_compute_init(&i->compute, o->policy);
        if (preload_files_init(&i->preload, o->state_dir, o->labels) < 0)
                return -ENOMEM;
        if (simulated_driver_init(&i->simulated, o->simulated, o->state_dir, &i->unavailable) == 0 &&
            preload_files_install(&i->preload, o->library, &i->unavailable) == 0)
                (void) slicedir_open(&i->slicedir, o->slices, true, &i->unavailable);
        i->slicedir.proc = o->proc;
        i->slicedir.labels = o->labels;
        if (i->unavailable.text[0])
                log_warning("isolated containers will not start: %s", i->unavailable.text);
        return 0;
}

void isolation_done(Isolation *i) {
        slicedir_done(&i->slicedir);
        simulated_driver_done(&i->simulated);
        preload_files_done(&i->preload);
        *i = (Isolation){
                .slicedir = SLICEDIR_NULL, .preload = PRELOAD_FILES_NULL, .simulated = SIMULATED_DRIVER_NULL};
}

/* ---- names ---- */

/* Names a slice by its devices. Living containers have different devices, except an init container
 * and later ones of its pod. FNV-1a separates sets that begin alike. */
static void name_of(const DeviceSet *mem, char ret[static SLICEDIR_ID_SIZE]) {
        uint64_t hash = UINT64_C(0xCBF29CE484222325);

        for (size_t i = 0; i < mem->n; i++)
                hash = (hash ^ mem->ids[i]) * UINT64_C(0x100000001B3);
        (void) snprintf(ret, SLICEDIR_ID_SIZE, "gpu%u-%zu-%016llx", mem->n > 0 ? device_card(mem->ids[0]) : 0,
                        mem->n, (unsigned long long) hash);
}

void isolation_slice_name(const RecordContainer *c, char ret[static SLICEDIR_ID_SIZE]) {
        name_of(&c->given[DEVICE_MEM], ret);
}

/* ---- Allocate ---- */

typedef struct Mounts {
        PluginMount *mounts;
        int n;
        Arena *arena;
} Mounts;

static bool add_mount(Mounts *m, bool read_only, const char *inside, const char *format, ...) _printf_(4, 5);
static bool add_mount(Mounts *m, bool read_only, const char *inside, const char *format, ...) {
        char host[4096];
        Str to, from;
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(host, sizeof host, format, ap);
        va_end(ap);
        to = arena_str(m->arena, str_from(inside));
        from = arena_str(m->arena, str_from(host));
        if (!to.data || !from.data)
                return false;
        m->mounts[m->n++] =
                (PluginMount){.container_path = to.data, .host_path = from.data, .read_only = read_only};
        return true;
}

static bool add_card(Mounts *m, const char *folder, const char *slices, const char *id, unsigned number) {
        char pages[64], limits[64], counters[64], doorbell[64];

        (void) snprintf(pages, sizeof pages, SLICE_PAGES "/%u", number);
        (void) snprintf(limits, sizeof limits, SLICE_PAGES "/%u/limits", number);
        (void) snprintf(counters, sizeof counters, SLICE_PAGES "/%u/counters", number);
        (void) snprintf(doorbell, sizeof doorbell, SLICE_PAGES "/%u/" SLICE_DOORBELL, number);
        return add_mount(m, true, pages, "%s/slice/%u", folder, number) &&
               add_mount(m, true, limits, "%s/%s/%u/limits", slices, id, number) &&
               add_mount(m, false, counters, "%s/%s/%u/counters", slices, id, number) &&
               add_mount(m, false, doorbell, "%s/%s/%u/" SLICE_DOORBELL, slices, id, number);
}

/* How many cards have a page. */
static size_t count_cards(const DeviceSet *mem) {
        uint32_t n = device_set_count_cards(mem);

        return n < SLICEDIR_CARDS_MAX ? n : SLICEDIR_CARDS_MAX;
}

int isolation_mounts(const Isolation *i, const Inventory *v, const DeviceSet *mem, Arena *arena,
                     PluginMount ret[static ISOLATION_MOUNTS]) {
        Mounts m = {.mounts = ret, .arena = arena};
        char id[SLICEDIR_ID_SIZE], folder[PRELOAD_FOLDER];
        uint32_t card, count;
        unsigned number = 0;
        size_t at = 0;

        m.n = simulated_driver_mounts(&i->simulated, v, mem, arena, ret);
        if (m.n < 0 || !share_mode_is_isolated(v->mode))
                return m.n;
        name_of(mem, id);
        preload_files_folder(&i->preload, count_cards(mem), folder);
        if (!add_mount(&m, true, SLICE_MOUNT_DIR, "%s", folder) ||
            !add_mount(&m, true, SLICE_PAGES, "%s/slice", folder) ||
            !add_mount(&m, true, SLICE_GATE, "%s", i->preload.library) ||
            !add_mount(&m, true, SLICE_PRELOAD, "%s/%s/" SLICEDIR_PRELOAD, i->slicedir.path, id))
                return -ENOMEM;
        while (number < SLICEDIR_CARDS_MAX && device_set_next_card(mem, &at, &card, &count))
                if (!add_card(&m, folder, i->slicedir.path, id, number++))
                        return -ENOMEM;
        return m.n;
}

/* ---- PreStart ---- */

/* The device /dev/nvidia-uvm. Its major is dynamic, and the file exists only while the module is
 * loaded; rdev 0: it does not. */
static SliceFile uvm_device(void) {
        SliceFile file = {.rdev = 0};
        struct stat st;

        if (stat("/dev/nvidia-uvm", &st) == 0 && S_ISCHR(st.st_mode))
                file.rdev = st.st_rdev;
        return file;
}

/* Identifies the driver's files to the preload library: by device number, and those of a simulated
 * driver by file system and inode. */
static int read_files(const Isolation *i, unsigned minor_, SliceSpec *ret, Fault *fault) {
        char name[32];
        int r;

        if (!i->simulated.dir) {
                ret->ctl = (SliceFile){.rdev = makedev(NVIDIA_MAJOR, NVIDIA_CTL)};
                ret->device = (SliceFile){.rdev = makedev(NVIDIA_MAJOR, minor_)};
                ret->uvm = uvm_device();
                return 0;
        }
        (void) snprintf(name, sizeof name, "nvidia%u", minor_);
        r = simulated_driver_file(&i->simulated, "nvidiactl", &ret->ctl, fault);
        if (r == 0)
                r = simulated_driver_file(&i->simulated, name, &ret->device, fault);
        if (r == 0)
                r = simulated_driver_file(&i->simulated, "nvidia-uvm", &ret->uvm, fault);
        return r == 0 ? 0 : ISOLATION_E_MISSING;
}

/* Units of each card that are in force: the devices, unless the slice was resized. */
static uint32_t units_of(const RecordContainer *given, uint32_t count) {
        uint32_t n = device_set_count_cards(&given->given[DEVICE_MEM]);

        return given->size_mem > 0 && n > 0 ? given->size_mem / n : count;
}

uint64_t isolation_slice_bytes(const Inventory *v, const RecordContainer *given, uint32_t index,
                               uint32_t count) {
        const MachineCard *card = inventory_machine_card(v, index);
        uint32_t dev = card ? memory_unit_count(card->mib, v->unit) : 0;

        return dev > 0 ? MIB * visible_mib(card->mib, units_of(given, count), dev) : 0;
}

/* Writes the container's limit as text, for the sentence of a refusal. */
static void write_asked(const Inventory *v, const RosterContainer *c, const RecordContainer *given,
                        char ret[static SLICE_ASKED]) {
        uint32_t cards = device_set_count_cards(&given->given[DEVICE_MEM]);
        char unit[24] = "", over[24] = "";

        if (v->unit.mib != MEMORY_UNIT_GIB.mib)
                (void) snprintf(unit, sizeof unit, " of %uMiB", v->unit.mib);
        if (cards > 1)
                (void) snprintf(over, sizeof over, " over %u cards", cards);
        (void) snprintf(ret, SLICE_ASKED, "%s: %u%s%s", RESOURCE_GPU_MEM, c->mem * cards, unit, over);
}

/* Describes the container's slice of one card, for its page. count: devices of the card that it was
 * given. */
static int describe_slice(const Isolation *i, const Inventory *v, const RosterContainer *c,
                          const RecordContainer *given, uint32_t index, uint32_t count, SliceSpec *ret,
                          Fault *fault) {
        const MachineCard *card = inventory_machine_card(v, index);
        uint32_t dev = card ? memory_unit_count(card->mib, v->unit) : 0, units = units_of(given, count);
        bool open = c->not_isolated && !i->ignores_disable;

        if (!card || dev == 0 || units > dev || count > dev)
                return fault_set(fault, ISOLATION_E_MISSING, "gpu%u has no %u units here", index, count);
        if (card->minor == CARD_MINOR_UNKNOWN)
                return fault_set(fault, ISOLATION_E_MISSING,
                                 "the device file of gpu%u is another card's by now", index);
        *ret = (SliceSpec){
                .limit = MIB * (open ? card->mib : visible_mib(card->mib, units, dev)),
                .card_bytes = MIB * card->mib,
                .granted = MIB * visible_mib(card->mib, count, dev),
                .granted_percent = v->mode == SHARE_MODE_CORE_MEM ? c->core : 0,
                .group_bytes = SLICE_GROUP_BYTES,
                .card = index,
                .flags = (open ? SLICE_FLAG_OPEN : 0) | (i->says_refusals ? SLICE_FLAG_SAY : 0),
                .uuid = card->uuid,
                .request = c->compute,
        };
        ret->request.percent = ret->granted_percent;
        if (ret->request.percent > 0 && given->size_core > 0)
                ret->request.percent = given->size_core;
        write_asked(v, c, given, ret->asked);
        node_compute_fill(&i->compute, v->mode, ret);
        return read_files(i, card->minor, ret, fault);
}

/* Publishes the policy before the container runs: it depends on what all containers of the card
 * ask. */
static void publish_start(Isolation *i, const Inventory *v, const RosterPod *pod, const RosterContainer *c) {
        i->compute.stale = true;
        isolation_publish_compute(i, v);
        if (c->compute_fault && i->on_compute_fault)
                i->on_compute_fault(i->userdata, pod, c);
}

void isolation_publish_compute(Isolation *i, const Inventory *v) {
        node_compute_publish(&i->compute, &i->slicedir, v->mode);
}

static bool is_file(const char *path) {
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

static int check_available(const Isolation *i, Fault *fault) {
        if (i->unavailable.text[0])
                return fault_set(fault, ISOLATION_E_MISSING, "it cannot be isolated: %s",
                                 i->unavailable.text);
        if (i->unsupported.text[0])
                return fault_set(fault, ISOLATION_E_MISSING, "it cannot be isolated: %s",
                                 i->unsupported.text);
        if (!preload_files_are_complete(&i->preload))
                return fault_set(fault, ISOLATION_E_MISSING, "it cannot be isolated: %s is missing",
                                 i->preload.library);
        return 0;
}

void isolation_container_name(const RosterPod *pod, const char *container,
                              char ret[static ISOLATION_CONTAINER_NAME]) {
        int n = snprintf(ret, ISOLATION_CONTAINER_NAME, "%s/%s/%s", pod->namespace_, pod->name, container);

        if (n >= ISOLATION_CONTAINER_NAME) /* a UID has 36 characters, the other names 63 at most */
                (void) snprintf(ret, ISOLATION_CONTAINER_NAME, "%s/%s/%s", pod->namespace_, pod->uid,
                                container);
}

int isolation_prepare(Isolation *i, const Inventory *v, const RosterPod *pod, const RosterContainer *c,
                      const RecordContainer *given, Fault *fault) {
        const DeviceSet *mem = &given->given[DEVICE_MEM];
        char id[SLICEDIR_ID_SIZE], name[ISOLATION_CONTAINER_NAME], owner[SLICEDIR_OWNER_SIZE];
        SliceSpec specs[SLICEDIR_CARDS_MAX];
        uint32_t card, count;
        size_t at = 0, n = 0;
        int r;

        if (!share_mode_is_isolated(v->mode))
                return 0;
        r = check_available(i, fault);
        if (r == 0)
                r = preload_files_make_folder(&i->preload, count_cards(mem), fault);
        isolation_container_name(pod, c->name, name);
        while (r == 0 && n < SLICEDIR_CARDS_MAX && device_set_next_card(mem, &at, &card, &count)) {
                r = describe_slice(i, v, c, given, card, count, &specs[n], fault);
                specs[n++].container = name;
        }
        if (r == 0)
                r = slicedir_refresh(&i->slicedir, fault);
        if (r != 0)
                return r;
        isolation_slice_name(given, id);
        /* What an earlier holder of these devices left: its counters are not this container's. */
        if (!given->started)
                slicedir_remove(&i->slicedir, id);
        (void) snprintf(owner, sizeof owner, SLICEDIR_AGENT "%s", name);
        r = slicedir_update(&i->slicedir, id, owner, specs, n, fault);
        if (r == 0)
                publish_start(i, v, pod, c);
        return r;
}

int isolation_resize(Isolation *i, const Inventory *v, const RosterContainer *c, const RecordContainer *given,
                     Fault *fault) {
        const DeviceSet *mem = &given->given[DEVICE_MEM];
        char id[SLICEDIR_ID_SIZE];
        uint32_t card, count, number = 0;
        SliceSpec spec;
        size_t at = 0;
        int r = slicedir_refresh(&i->slicedir, fault);

        isolation_slice_name(given, id);
        while (r == 0 && number < SLICEDIR_CARDS_MAX && device_set_next_card(mem, &at, &card, &count)) {
                r = describe_slice(i, v, c, given, card, count, &spec, fault);
                if (r == 0)
                        r = slicedir_resize(&i->slicedir, id, number++, spec.limit, spec.request.percent,
                                            fault);
        }
        return r;
}

bool isolation_is_complete(Isolation *i, const Inventory *v, const RecordContainer *given) {
        const DeviceSet *mem = &given->given[DEVICE_MEM];
        char id[SLICEDIR_ID_SIZE], path[SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE + 32];
        Fault fault = FAULT_NULL;
        uint32_t card, count;
        unsigned number = 0;
        size_t at = 0;

        if (!share_mode_is_isolated(v->mode))
                return true;
        if (i->unavailable.text[0] || !preload_files_are_complete(&i->preload) ||
            preload_files_make_folder(&i->preload, count_cards(mem), &fault) < 0 ||
            slicedir_refresh(&i->slicedir, &fault) < 0)
                return false;
        isolation_slice_name(given, id);
        if (slicedir_write_preload(&i->slicedir, id, &fault) < 0)
                return false;
        while (number < SLICEDIR_CARDS_MAX && device_set_next_card(mem, &at, &card, &count)) {
                (void) snprintf(path, sizeof path, "%s/%s/%u/limits", i->slicedir.path, id, number++);
                if (!is_file(path))
                        return false;
        }
        return true;
}

/* ---- sweep ---- */

static bool is_named(void *userdata, const char *id) {
        const Records *records = userdata;
        char named[SLICEDIR_ID_SIZE];

        for (const Record *record = records->by_uid; record; record = record->hh.next)
                for (size_t k = 0; k < record->n_containers; k++) {
                        isolation_slice_name(&record->containers[k], named);
                        if (strcmp(named, id) == 0)
                                return true;
                }
        return false;
}

void isolation_sweep(Isolation *i, const Records *records) {
        i->compute.stale = true;
        if (i->slicedir.fd >= 0 && slicedir_sweep(&i->slicedir, is_named, (void *) records) < 0)
                log_warning("the slices in %s cannot be read", i->slicedir.path);
}
