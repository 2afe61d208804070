/* SPDX-License-Identifier: Apache-2.0 */

/* The state directory: the agent's files and folders, and what an earlier run left there. */

#include <errno.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
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

static void remember_fences(Agent *a) {
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;

        if (read_state(a->paths.fences, &text) == 0 &&
            card_fences_read(buf_str(&text), &a->cards.fences, &fault) != 0)
                log_warning("passed over %s: %s", a->paths.fences, fault.text);
}

/* A new agent registers with the cards that the old one knew, because NVML is slow and the kubelet
 * refuses pods until then. */
int agent_load_state(Agent *a) {
        _cleanup_buf_ Buf config = BUF_NULL, cards = BUF_NULL;
        _cleanup_(card_list_done) CardList list = {0};
        Fault fault = FAULT_NULL;

        node_config_init(&a->node.config, a->o.unit);
        if (read_state(a->paths.node_config, &config) == 0) {
                a->node.config_saved = node_config_read(buf_str(&config), &a->node.config, &fault) == 0;
                if (!a->node.config_saved)
                        log_warning("passed over %s: %s", a->paths.node_config, fault.text);
        }
        if (read_state(a->paths.cards, &cards) < 0)
                return 0;
        if (card_list_read(buf_str(&cards), &list, &fault) != 0) {
                log_warning("passed over %s: %s", a->paths.cards, fault.text);
                return 0;
        }
        remember_fences(a);
        for (size_t i = 0; i < list.n; i++)
                if (!list.cards[i].healthy)
                        card_indexes_add(&a->events.told_out, list.cards[i].index); /* by the earlier run */
        return agent_set_cards(a, &list);
}

static char *path_of(const char *directory, const char *name) {
        Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%s", directory, name);
        return buf_take(&path);
}

static int make_paths(Agent *a) {
        a->paths.checkpoint = path_of(a->o.kubelet_dir, "device-plugins/kubelet_internal_checkpoint");
        a->paths.pod_resources = path_of(a->o.kubelet_dir, "pod-resources/kubelet.sock");
        a->paths.records = path_of(a->o.state_dir, "records");
        a->paths.cards = path_of(a->o.state_dir, "cards.json");
        a->paths.fences = path_of(a->o.state_dir, "fences.json");
        a->paths.node_config = path_of(a->o.state_dir, "terms.json");
        a->paths.cdi = path_of(a->o.cdi_dir, "aliquot.dev-gpu.json");
        return a->paths.checkpoint && a->paths.pod_resources && a->paths.records && a->paths.cards &&
                               a->paths.fences && a->paths.node_config && a->paths.cdi
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
static const char *mount_slicedir(Agent *a) {
        const char *proc = a->o.proc ? a->o.proc : "/proc";
        Fault why = FAULT_NULL;
        bool apart = false;

        if (a->o.slices_mib > 0 && slicedir_tmpfs_mount(a->o.slices, a->o.slices_mib, proc, &apart, &why) ==
                                           SLICEDIR_TMPFS_E_MISSING)
                node_events_once(&a->events.node, REASON_SLICE_DIR_UNBOUNDED, &why);
        return apart ? proc : NULL;
}

int agent_open_state(Agent *a, Fault *fault) {
        const char *proc;
        int r;

        r = make_paths(a);
        if (r == 0)
                r = make_directory(a->o.state_dir, 0700, fault);
        if (r == 0)
                r = state_version_settle(a->o.state_dir, a->o.slices, a->o.cgroup_root, fault);
        if (r == 0 && a->o.access == DEVICE_ACCESS_CDI)
                r = make_directory(a->o.cdi_dir, 0755, fault);
        if (r < 0)
                return r;
        proc = mount_slicedir(a);
        r = isolation_init(&a->isolation, &(IsolationOptions){.slices = a->o.slices,
                                                              .proc = proc,
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
