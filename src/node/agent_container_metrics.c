/* SPDX-License-Identifier: Apache-2.0 */

/* The metrics of containers, by card. What was given comes from the node's records, because users
 * can change annotations; what is used from the driver, and from the slice page of an isolated
 * container. A scrape reads each page once. */

#include <fcntl.h>
#include <math.h>
#include <stddef.h>

#include "arbiter/tenant_policy.h"
#include "base/metric_text.h"
#include "node/agent-internal.h"
#include "slice/visible.h"

#define MIB_BYTES UINT64_C(0x100000)

/* A container and one of its cards, with the values of the metrics; what is not known is
 * METRIC_UNKNOWN, or NAN. */
typedef struct ContainerCard {
        const Record *record;
        const RecordContainer *container;
        uint32_t card;
        uint64_t mib, core; /* what it was given: MiB of the slice, and percent */
        uint64_t limit;     /* bytes, in force */
        bool has_page;
        TenantPolicy policy;
        double share;
        uint64_t charged, held;    /* ns of the card, ever */
        uint64_t used, peak;       /* bytes, by the slice page */
        uint64_t refused, rowless; /* allocations */
        uint64_t driver_used;      /* bytes */
        bool unclear;              /* processes that may be its hold memory of the card */
        size_t labels, labels_len; /* where its labels are in the text of all */
} ContainerCard;

typedef struct ContainerCards {
        ContainerCard *list;
        size_t n, room;
        Buf labels;
} ContainerCards;

bool agent_metrics_shows(const Agent *a, const Record *record, const RecordContainer *c) {
        const RosterPod *pod = roster_find(&a->roster, str_from(record->uid));

        if (!record->orphan && !(pod && pod->grant))
                return false; /* a pod that has ended holds nothing, although it may have a record */
        for (size_t i = 0; c->init && i < record->n_containers; i++)
                if (!record->containers[i].init && record->containers[i].started)
                        return false; /* the init container has ended, and others have its devices */
        return true;
}

/* ---- collecting ---- */

/* Bounds a number that the container may write. */
static uint64_t at_most(uint64_t value, uint64_t most) {
        return value < most ? value : most;
}

static void read_usage(int directory, uint64_t card_size, ContainerCard *c) {
        SliceUsage usage;

        if (slice_files_read_usage(directory, &usage) != 0)
                return;
        c->used = at_most(usage.used, card_size);
        c->peak = at_most(usage.peak, card_size);
        c->refused = at_most(usage.refused, METRIC_UNKNOWN - 1);
        c->rowless = at_most(usage.rowless, METRIC_UNKNOWN - 1);
}

static void read_page(const Agent *a, uint32_t number, ContainerCard *c) {
        char id[SLICEDIR_ID_SIZE], path[SLICEDIR_ID_SIZE + 16];
        _cleanup_close_ int directory = -1;
        CardCompute compute;
        ComputeRequest request;
        SliceLimits l;

        if (a->isolation.slicedir.fd < 0)
                return;
        isolation_slice_name(c->container, id);
        (void) snprintf(path, sizeof path, "%s/%u", id, number);
        directory = openat(a->isolation.slicedir.fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (directory < 0 || slice_files_read_limits(directory, &l) != 0)
                return;
        compute = slice_files_compute(&l);
        request = slice_files_request(&l);
        c->policy = tenant_policy(&compute, &request);
        c->has_page = true;
        c->limit = l.limit;
        if (c->policy.gated) {
                c->charged = atomic_load_explicit(&l.schedule.used, memory_order_relaxed);
                c->held = atomic_load_explicit(&l.schedule.granted, memory_order_relaxed);
        }
        read_usage(directory, l.card_bytes, c);
}

static ContainerCard *add_card(ContainerCards *all) {
        if (all->n == all->room) {
                size_t room = all->room > 0 ? 2 * all->room : 32;
                ContainerCard *list = realloc(all->list, room * sizeof *list);

                if (!list)
                        return NULL;
                all->list = list;
                all->room = room;
        }
        all->list[all->n] = (ContainerCard){.used = METRIC_UNKNOWN,
                                            .peak = METRIC_UNKNOWN,
                                            .refused = METRIC_UNKNOWN,
                                            .rowless = METRIC_UNKNOWN,
                                            .charged = METRIC_UNKNOWN,
                                            .held = METRIC_UNKNOWN};
        return &all->list[all->n++];
}

static void write_labels(const Agent *a, const Record *record, ContainerCards *all, ContainerCard *c) {
        c->labels = all->labels.len;
        agent_metrics_card_labels(a, inventory_machine_card(&a->inventory, c->card), &all->labels);
        metric_text_label(&all->labels, "NamespaceName", record->namespace_);
        metric_text_label(&all->labels, "PodName", record->name);
        metric_text_label(&all->labels, "ContainerName", c->container->name);
        if (record->orphan) /* a new pod may have the name, and a container on the same card */
                metric_text_label(&all->labels, "DeletedPodUID", record->uid);
        c->labels_len = all->labels.len - c->labels;
}

static void collect_one(const Agent *a, const Record *record, const RecordContainer *given,
                        ContainerCards *all) {
        uint32_t card, count, number = 0;
        size_t at = 0;

        for (; device_set_next_card(&given->given[DEVICE_MEM], &at, &card, &count); number++) {
                const CardInfo *info = inventory_card(&a->inventory, card);
                ContainerCard *c = info && info->units > 0 ? add_card(all) : NULL;

                if (!c) {
                        all->labels.broken |= info && info->units > 0;
                        continue;
                }
                c->record = record;
                c->container = given;
                c->card = card;
                c->mib = count <= info->units ? (uint32_t) visible_mib(info->mib, count, info->units)
                                              : info->mib;
                c->core = device_set_count(&given->given[DEVICE_CORE], card);
                c->limit = c->mib * MIB_BYTES;
                read_page(a, number, c);
                write_labels(a, record, all, c);
        }
}

/* Whether container and card are those of the process: its pod, and the card that it holds. */
static bool is_of_pod(const ContainerCard *c, const ProcessMemory *process) {
        return c->card == process->card && strcmp(c->record->uid, process->uid) == 0;
}

/* The only container of the process's pod on that card; NULL: there are several, or none. */
static ContainerCard *only_one(ContainerCards *all, const ProcessMemory *process) {
        ContainerCard *found = NULL;

        for (size_t i = 0; i < all->n; i++) {
                if (!is_of_pod(&all->list[i], process))
                        continue;
                if (found)
                        return NULL;
                found = &all->list[i];
        }
        return found;
}

/* Adds a process's memory to its container. Where the pod is gone, no status names the container:
 * then it counts if it is the pod's only one on the card. A new pod's status may not name it yet:
 * then it is unclear. */
static void on_process(void *userdata, const ProcessMemory *process) {
        ContainerCards *all = userdata;
        ContainerCard *only = process->pod ? NULL : only_one(all, process);

        for (size_t i = 0; i < all->n; i++) {
                ContainerCard *c = &all->list[i];

                if (!is_of_pod(c, process))
                        continue;
                if (c == only || (process->container && strcmp(c->container->name, process->container) == 0))
                        c->driver_used += process->bytes;
                else if (!process->container)
                        c->unclear = true;
        }
}

/* The container's share of the card. Caps and high priority are served before weights, which
 * divide the rest. */
static double share_of(const ContainerCards *all, const ContainerCard *c) {
        uint64_t rates = 0, weights = 0, share = c->policy.gated ? c->policy.rate : POLICY_PPM;

        if (!c->has_page)
                return NAN;
        for (size_t i = 0; i < all->n; i++) {
                const TenantPolicy *p = &all->list[i].policy;

                if (!all->list[i].has_page || !p->gated || all->list[i].card != c->card)
                        continue;
                if (p->conserving && !p->high)
                        weights += p->weight;
                else
                        rates += p->rate;
        }
        if (weights > 0 && c->policy.gated && c->policy.conserving && !c->policy.high)
                share = rates < POLICY_PPM ? (POLICY_PPM - rates) * c->policy.weight / weights : 0;
        return (double) share / POLICY_PPM;
}

static bool driver_tells(const Agent *a, const ContainerCard *c) {
        uint64_t bytes;

        return agent_metrics_has_census(a) && !c->unclear &&
               (c->driver_used > 0 || memory_audit_card_used(a->audit.memory, c->card, &bytes));
}

static void collect_cards(const Agent *a, ContainerCards *all) {
        for (const Record *record = a->records.by_uid; record; record = record->hh.next)
                for (size_t i = 0; i < record->n_containers; i++)
                        if (agent_metrics_shows(a, record, &record->containers[i]))
                                collect_one(a, record, &record->containers[i], all);
        if (agent_metrics_has_census(a))
                memory_audit_each(a->audit.memory, on_process, all);
        for (size_t i = 0; i < all->n; i++) {
                ContainerCard *c = &all->list[i];

                c->share = share_of(all, c);
                if (!driver_tells(a, c))
                        c->driver_used = METRIC_UNKNOWN;
        }
}

static const MetricRow container_metrics[] = {
        {"DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED", "gauge", "Memory of the container's slice in MiB.",
         offsetof(ContainerCard, mib)},
        {"DCGM_CUSTOM_CONTAINER_CP_ALLOCATED", "gauge",
         "Compute of the container's slice, 0 to 1; 0 when it is not limited.", offsetof(ContainerCard, core),
         METRIC_PERCENT},
        {"aliquot_node_container_memory_limit_bytes", "gauge",
         "Memory of the card that the container may hold.", offsetof(ContainerCard, limit)},
        {"aliquot_node_container_memory_used_bytes", "gauge",
         "Memory of the card that the container's processes hold, by the driver.",
         offsetof(ContainerCard, driver_used)},
        {"aliquot_node_container_memory_charged_bytes", "gauge",
         "Memory that is counted against the limit, by the container's slice page.",
         offsetof(ContainerCard, used)},
        {"aliquot_node_container_memory_peak_bytes", "gauge",
         "The most that was counted at one time, by the container's slice page.",
         offsetof(ContainerCard, peak)},
        {"aliquot_node_container_memory_refusals_total", "counter",
         "Allocations that were refused, by the container's slice page, which the container can write.",
         offsetof(ContainerCard, refused)},
        {"aliquot_node_container_rowless_refusals_total", "counter",
         "Allocations that were refused because all rows of the container's slice page were taken.",
         offsetof(ContainerCard, rowless)},
        {"aliquot_node_container_compute_share_ratio", "gauge",
         "Part of the card's time that the container gets while all containers want the card, 0 to 1.",
         offsetof(ContainerCard, share), METRIC_RATIO},
        {"aliquot_node_container_compute_used_seconds_total", "counter",
         "Time of the card that the arbiter charged to the container.", offsetof(ContainerCard, charged),
         METRIC_NSEC},
        {"aliquot_node_container_compute_held_seconds_total", "counter",
         "Time for which the arbiter let the container have the card.", offsetof(ContainerCard, held),
         METRIC_NSEC},
};

static void write_line(const ContainerCards *all, const ContainerCard *c, size_t metric, Buf *out) {
        const MetricRow *row = &container_metrics[metric];

        if (!metric_text_known(row, c))
                return;
        buf_append_str(out, str_from(row->name));
        buf_append(out, all->labels.data + c->labels, c->labels_len);
        if (metric <= 1) /* the first two are ACK's, which have one label more */
                metric_text_label(out, "AllocateMode", "share");
        buf_append_str(out, STR("} "));
        metric_text_value(out, row, c);
}

void agent_metrics_containers(const Agent *a, Buf *out) {
        ContainerCards all = {.labels = BUF_NULL};

        collect_cards(a, &all);
        for (size_t m = 0; m < ELEMENTSOF(container_metrics) && buf_result(&all.labels) == 0; m++) {
                metric_text_head(out, container_metrics[m].name, container_metrics[m].type,
                                 container_metrics[m].help);
                for (size_t i = 0; i < all.n; i++)
                        write_line(&all, &all.list[i], m, out);
        }
        out->broken |= buf_result(&all.labels) < 0;
        buf_done(&all.labels);
        free(all.list);
}
