/* SPDX-License-Identifier: Apache-2.0 */

/* The state directory: the agent's files and folders, and what an earlier run left there. */

#include <errno.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/selinux.h"
#include "node/agent-internal.h"
#include "node/state_version.h"
#include "slicedir/slicedir_tmpfs.h"

enum { STATE_MAX = 1 << 20 };

static int read_state(const char *path, Buf *into) {
        int r = file_read(path, STATE_MAX, into);

        if (r < 0 && r != -ENOENT)
                log_warning("cannot read %s: %s", path, strerror(-r));
        return r;
}

static void remember_fences(const char *path, CardFences *ret) {
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;

        if (read_state(path, &text) == 0 && card_fences_read(buf_str(&text), ret, &fault) != 0)
                log_warning("passed over %s: %s", path, fault.text);
}

/* A new agent registers with the cards that the old one knew, because NVML is slow and the kubelet
 * refuses pods until then. */
int agent_load_state(Agent *a) {
        _cleanup_buf_ Buf cards = BUF_NULL;
        _cleanup_(card_list_done) CardList list = {0};
        Fault fault = FAULT_NULL;

        if (read_state(a->paths.cards, &cards) < 0)
                return 0;
        if (card_list_read(buf_str(&cards), &list, &fault) != 0) {
                log_warning("passed over %s: %s", a->paths.cards, fault.text);
                return 0;
        }
        remember_fences(a->paths.fences, &a->cards.fences);
        for (size_t i = 0; i < list.n; i++)
                if (!list.cards[i].healthy)
                        /* the earlier run has reported it */
                        card_indexes_add(&a->events.told_out, list.cards[i].index);
        a->allocate.context.cards_are_old = true;
        return agent_set_cards(a, &list);
}

static char *path_of(const char *directory, const char *name) {
        Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%s", directory, name);
        return buf_take(&path);
}

static int make_paths(AgentPaths *p, const AgentOptions *o) {
        p->checkpoint = path_of(o->kubelet_dir, "device-plugins/kubelet_internal_checkpoint");
        p->pod_resources = path_of(o->kubelet_dir, "pod-resources/kubelet.sock");
        p->records = path_of(o->state_dir, "records");
        p->cards = path_of(o->state_dir, "cards.json");
        p->fences = path_of(o->state_dir, "fences.json");
        p->node_config = path_of(o->state_dir, "terms.json");
        p->cdi = path_of(o->cdi_dir, "aliquot.dev-gpu.json");
        return p->checkpoint && p->pod_resources && p->records && p->cards && p->fences && p->node_config &&
                               p->cdi
                       ? 0
                       : -ENOMEM;
}

static int make_directory(const char *path, mode_t mode, Fault *fault) {
        if (mkdir(path, mode) < 0 && errno != EEXIST)
                return fault_set(fault, -errno, "cannot make %s: %s", path, strerror(errno));
        return 0;
}

/* Mounts the tmpfs for slice pages. Faults of the directory itself are reported by
 * isolation_init(). Returns the host's proc if each slice can have a mount that the host sees; else
 * NULL. */
static const char *mount_slicedir(const AgentOptions *o, NodeEvents *events) {
        const char *proc = o->proc ? o->proc : "/proc";
        Fault why = FAULT_NULL;
        bool apart = false;

        if (o->slices_mib > 0 &&
            slicedir_tmpfs_mount(o->slices, o->slices_mib, proc, &apart, &why) == SLICEDIR_TMPFS_E_MISSING)
                node_events_once(events, REASON_SLICE_DIR_UNBOUNDED, &why);
        return apart ? proc : NULL;
}

static void load_node_config(Agent *a) {
        _cleanup_buf_ Buf config = BUF_NULL;
        Fault fault = FAULT_NULL;

        node_config_init(&a->node.config, a->o.unit);
        if (read_state(a->paths.node_config, &config) < 0)
                return;
        a->node.config_saved = node_config_read(buf_str(&config), &a->node.config, &fault) == 0;
        if (!a->node.config_saved)
                log_warning("passed over %s: %s", a->paths.node_config, fault.text);
        /* a start may come before the Node was read, and the Node may have a wrong value by now */
        node_keys_recall(&a->node.keys, NODE_KEY_MEMORY_ISOLATION, str_from(a->node.config.memory_isolation));
}

int agent_open_state(Agent *a, Fault *fault) {
        const char *proc;
        int r;

        r = make_paths(&a->paths, &a->o);
        if (r == 0)
                r = make_directory(a->o.state_dir, 0700, fault);
        if (r == 0)
                r = state_version_settle(a->o.state_dir, a->o.slices, a->o.cgroup_root, fault);
        if (r == 0 && a->o.access == DEVICE_ACCESS_CDI)
                r = make_directory(a->o.cdi_dir, 0755, fault);
        if (r < 0)
                return r;
        load_node_config(a);
        proc = mount_slicedir(&a->o, &a->events.node);
        r = isolation_init(&a->isolation,
                           &(IsolationOptions){.slices = a->o.slices,
                                               .proc = proc,
                                               .labels = selinux_is_on(a->o.proc ? a->o.proc : "/proc"),
                                               .state_dir = a->o.state_dir,
                                               .library = a->o.library,
                                               .simulated = a->o.simulate_dir,
                                               .ignores_disable = a->o.ignores_disable,
                                               .says_refusals = a->o.says_refusals,
                                               .policy = a->o.policy,
                                               .on_compute_fault = agent_tell_compute_refused,
                                               .userdata = &a->events});
        return r < 0 ? r : records_open(&a->records, a->paths.records, fault);
}
