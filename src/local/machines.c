/* SPDX-License-Identifier: Apache-2.0 */
#include "local/machines.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "arbiter/respawn.h"
#include "base/simulator.h"
#include "local/machine_parts.h"
#include "slice/container_paths.h"
#include "slice/visible.h"
#include "slicedir/slice_policy.h"
#include "wire/annotation.h"
#include "wire/card_info.h"

#define MIB (UINT64_C(1) << 20)

#define NODE_PATH MACHINE_PARTS "/node%zu"

enum { PATH_SIZE = 128 };

struct MachineNode {
        const json_t *node;
        pid_t pid; /* 0: not started, or ended */
        bool started;
        const char *without; /* why its containers have no cards; NULL when they have */
        char devices[PATH_SIZE];
};

/* ---- a node ---- */

static MachineNode *find_node(Machines *m, const json_t *node) {
        MachineNode *more;

        for (size_t i = 0; i < m->n_nodes; i++)
                if (m->nodes[i].node == node)
                        return &m->nodes[i];
        more = reallocarray(m->nodes, m->n_nodes + 1, sizeof *more);
        if (!more)
                return NULL;
        m->nodes = more;
        more += m->n_nodes++;
        *more = (MachineNode){.node = node};
        return more;
}

static int make_directory(const char *path, Fault *fault) {
        return mkdir(path, 0755) < 0 ? fault_set(fault, -errno, "cannot make %s: %s", path, strerror(errno))
                                     : 0;
}

static int start_node(const Machines *m, MachineNode *n, const char *cards, Fault *fault) {
        int r;

        if (n->started)
                return 0;
        /* it fits */
        (void) snprintf(n->devices, sizeof n->devices, NODE_PATH, (size_t) (n - m->nodes));
        r = make_directory(n->devices, fault);
        if (r == 0)
                r = simulator_start(&(SimulatorSpec){.cards = cards,
                                                     .name = tree_text(n->node, "metadata", "name", NULL),
                                                     .devices = n->devices},
                                    &n->pid, fault);
        n->started = r == 0;
        return r;
}

/* ---- a container ---- */

typedef struct Attachment {
        Machines *m;
        const MachineNode *node;
        const PodSlices *slices;
        const char *id, *name;
        Arena *arena;
        MachineMounts *gift;
        bool no_memory;
} Attachment;

static void append_mount(Attachment *g, bool read_only, const char *from, const char *format, ...)
        _printf_(4, 5);
static void append_mount(Attachment *g, bool read_only, const char *from, const char *format, ...) {
        char to[PATH_SIZE];
        Str from_text, to_text;
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(to, sizeof to, format, ap); /* it fits */
        va_end(ap);
        from_text = arena_str(g->arena, str_from(from));
        to_text = arena_str(g->arena, str_from(to));
        if (!from_text.data || !to_text.data || g->gift->n == SANDBOX_MOUNTS)
                g->no_memory = true;
        else
                g->gift->mounts[g->gift->n++] =
                        (SandboxMount){.from = from_text.data, .to = to_text.data, .read_only = read_only};
}

static void add_device(Attachment *g, const char *name) {
        char from[PATH_SIZE + 32];

        (void) snprintf(from, sizeof from, "%s/%s", g->node->devices, name); /* it fits */
        append_mount(g, false, from, "/dev/%s", name);
}

static void add_devices(Attachment *g) {
        char name[32];

        add_device(g, "nvidiactl");
        add_device(g, "nvidia-uvm");
        add_device(g, "nvidia-uvm-tools");
        for (size_t i = 0; i < g->slices->n; i++) {
                /* it fits */
                (void) snprintf(name, sizeof name, "nvidia%u", g->slices->own[i].card);
                add_device(g, name);
        }
        append_mount(g, true, MACHINE_PROGRAMS, MACHINE_PROGRAMS);
        if (access(MACHINE_CACHE, F_OK) == 0)
                append_mount(g, true, MACHINE_CACHE, "/etc/ld.so.cache");
}

static int add_pages(Attachment *g) {
        append_mount(g, true, MACHINE_LIBRARY, SLICE_RUN_GATE);
        append_mount(g, true, MACHINE_PRELOAD, SLICE_PRELOAD);
        for (size_t i = 0; i < g->slices->n; i++) {
                char from[SLICEDIR_ID_SIZE + PATH_SIZE];

                /* both fit */
                (void) snprintf(from, sizeof from, MACHINE_SLICES "/%s/%zu/limits", g->id, i);
                append_mount(g, true, from, SLICE_RUN_PAGES "/%zu/limits", i);
                (void) snprintf(from, sizeof from, MACHINE_SLICES "/%s/%zu/counters", g->id, i);
                append_mount(g, false, from, SLICE_RUN_PAGES "/%zu/counters", i);
                (void) snprintf(from, sizeof from, MACHINE_SLICES "/%s/%zu/" SLICE_DOORBELL, g->id,
                                i); /* it fits */
                append_mount(g, false, from, SLICE_RUN_PAGES "/%zu/" SLICE_DOORBELL, i);
        }
        return 0;
}

/* Identifies one of the driver's files to the preload library. Simulated ones are no character
 * devices, so device and inode are used. */
static int identify_file(const Attachment *g, const char *name, SliceFile *ret, Fault *fault) {
        char path[PATH_SIZE + 32];
        struct stat st;

        (void) snprintf(path, sizeof path, "%s/%s", g->node->devices, name); /* it fits */
        if (stat(path, &st) < 0)
                return fault_set(fault, MACHINES_E_REFUSED, "its node's simulated driver: %s",
                                 strerror(errno));
        *ret = (SliceFile){.dev = st.st_dev, .ino = st.st_ino};
        return 0;
}

static int describe_slice(const Attachment *g, const Slice *slice, SliceSpec *ret, Fault *fault) {
        const CardInfo *card = pod_slices_card(g->slices, slice->card);
        bool open = g->slices->not_isolated && !g->m->ignores_disable;
        char name[32];
        int r;

        if (!card || card->units == 0 || slice->mem > card->units)
                return fault_set(fault, MACHINES_E_REFUSED, "gpu%u has no %u units here", slice->card,
                                 slice->mem);
        *ret = (SliceSpec){
                .limit = MIB * (open ? card->mib : visible_mib(card->mib, slice->mem, card->units)),
                .card_bytes = MIB * card->mib,
                .group_bytes = SLICE_GROUP_BYTES,
                .card = slice->card,
                .flags = open ? SLICE_FLAG_OPEN : 0,
                .container = g->name,
                .compute = g->slices->compute,
                .request = g->slices->request,
        };
        ret->request.percent = g->slices->mode == SHARE_MODE_CORE_MEM ? slice->core : 0;
        (void) snprintf(name, sizeof name, "nvidia%u", slice->card); /* it fits */
        r = identify_file(g, name, &ret->device, fault);
        if (r == 0)
                r = identify_file(g, "nvidiactl", &ret->ctl, fault);
        return r == 0 ? identify_file(g, "nvidia-uvm", &ret->uvm, fault) : r;
}

/* Sets policies as the node agent does: a weight applies to the whole card. */
static int set_policy(const Attachment *g, const SliceSpec *specs, Fault *fault) {
        int r = 0;

        for (size_t i = 0; i < g->slices->n && r == 0; i++)
                r = slice_policy_apply(&g->m->slicedir, &g->slices->compute, specs[i].uuid, fault);
        return r;
}

/* Starts one arbiter for all nodes of the run. Their cards have different UUIDs, which are made
 * from the node's name. */
static void start_arbiter(Machines *m) {
        int stop, r;

        if (m->arbiter != -1)
                return;
        r = respawn_daemon(MACHINE_SLICES, -1, 0, &stop);
        m->arbiter = r < 0 ? r : stop;
}

static void ignore_grown(void *userdata, const SlicedirCard *grown) {
}

static int write_pages(const Attachment *g, Fault *fault) {
        SliceSpec specs[SLICEDIR_CARDS_MAX];
        char owner[600];
        int r = 0;

        for (size_t i = 0; i < g->slices->n && r == 0; i++) {
                const CardInfo *card = pod_slices_card(g->slices, g->slices->own[i].card);
                Str uuid;

                r = describe_slice(g, &g->slices->own[i], &specs[i], fault);
                uuid = r == 0 ? arena_str(g->arena, card->uuid) : (Str){0};
                if (r == 0 && !uuid.data)
                        return -ENOMEM;
                specs[i].uuid = uuid.data;
        }
        if (r != 0)
                return r;
        /* cut when it is too long */
        (void) snprintf(owner, sizeof owner, SLICEDIR_AGENT "%s", g->name);
        r = slicedir_update(&g->m->slicedir, g->id, owner, specs, g->slices->n, fault);
        if (r == -ENOSPC &&
            /* a container wrote to its counters */
            slicedir_trim(&g->m->slicedir, ignore_grown, NULL) == 0)
                r = slicedir_update(&g->m->slicedir, g->id, owner, specs, g->slices->n, fault);
        if (r == 0)
                r = set_policy(g, specs, fault);
        start_arbiter(g->m);
        return r != 0 ? MACHINES_E_REFUSED : 0; /* the fault is set */
}

static int add_mount(Attachment *g, Fault *fault) {
        int r = 0;

        if (g->slices->n > SLICEDIR_CARDS_MAX)
                return fault_set(fault, MACHINES_E_REFUSED, "it has slices of more than %d cards",
                                 SLICEDIR_CARDS_MAX);
        add_devices(g);
        if (share_mode_is_isolated(g->slices->mode)) {
                r = write_pages(g, fault);
                if (r == 0)
                        r = add_pages(g);
        }
        return r == 0 && g->no_memory ? -ENOMEM : r;
}

/* Returns why a node's containers have no cards, or NULL. They then run as without cards. */
static const char *cards_of(Machines *m, const BoundPod *place, const PodSlices *slices) {
        const char *cards =
                tree_text(place->node, "metadata", "annotations", ANNOTATION_SIMULATED_CARDS, NULL);

        if (slices->n == 0 || !share_mode_is_served(slices->mode))
                return NULL;
        if (cards && !m->asked) {
                m->asked = true;
                if (machine_parts_enter(&m->trouble) == 0)
                        (void) slicedir_open(&m->slicedir, MACHINE_SLICES, true, &m->trouble);
        }
        return cards;
}

static const char *why_not(const char *cards, const PodSlices *slices) {
        if (!cards)
                return "it has no " ANNOTATION_SIMULATED_CARDS;
        return slices->n_cards > SLICEDIR_CARDS_MAX ? "a simulated driver has at most 32 cards" : NULL;
}

int machines_attach(Machines *m, const BoundPod *place, const PodSlices *slices, const char *id,
                    const char *name, Arena *arena, MachineMounts *ret, Fault *fault) {
        Attachment g = {.m = m, .slices = slices, .id = id, .name = name, .arena = arena, .gift = ret};
        const char *cards = cards_of(m, place, slices);
        MachineNode *node;

        ret->n = 0;
        if (slices->n == 0 || !share_mode_is_served(slices->mode) || m->trouble.text[0])
                return 0;
        node = find_node(m, place->node);
        if (!node)
                return -ENOMEM;
        node->without = why_not(cards, slices);
        if (node->without)
                return 0;
        if (start_node(m, node, cards, &m->trouble) < 0)
                return 0;
        g.node = node;
        return add_mount(&g, fault);
}

void machines_print_troubles(Machines *m, Buf *out) {
        if (m->trouble.text[0])
                buf_appendf(out,
                            "aliquot local: no simulated cards: %s; containers run without any, and nothing "
                            "holds their memory\n",
                            m->trouble.text);
        if (m->arbiter < -1)
                buf_appendf(out, "aliquot local: there is no arbiter of compute: %s\n",
                            strerror(-m->arbiter));
        for (size_t i = 0; i < m->n_nodes; i++) {
                MachineNode *n = &m->nodes[i];
                const char *name = tree_text(n->node, "metadata", "name", NULL);

                if (n->without)
                        buf_appendf(out, "aliquot local: the containers of node %s run without cards: %s\n",
                                    name, n->without);
                else if (n->started && simulator_ended(&n->pid))
                        buf_appendf(out,
                                    "aliquot local: the simulated driver of node %s ended before its "
                                    "containers\n",
                                    name);
        }
}

void machines_done(Machines *m) {
        for (size_t i = 0; i < m->n_nodes; i++)
                simulator_stop(&m->nodes[i].pid);
        free(m->nodes);
        if (m->arbiter >= 0)
                (void) close(m->arbiter);
        slicedir_done(&m->slicedir);
        *m = MACHINES_NULL;
}
