/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mechanism `both` of memory isolation: beside the library, a limit of the driver on the cgroup
 * of each pod with isolated slices. The amount is that of the pod's record, never of an
 * environment. PreStart has it set and read back before a container exists. Limits that differ from
 * the record are set again each second. All are read every three seconds and at each session of
 * NVML (docs/internals/memory-limits.md).
 *
 * A limit below the use is not in force, so a shrinking slice follows its use down. When a pod's
 * record is gone, or the node wants the library alone, limits are lifted.
 *
 * Whether the driver can do it is tried at each session on a cgroup of its own, and decided by
 * nothing else. A trial that failed is repeated twice a minute. Where the driver cannot, no
 * isolated container starts. */

#include <systemd/sd-event.h>

#include "gpu/cards/card_source.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"

typedef struct MemoryLimits MemoryLimits;

typedef enum MemoryMechanism {
        MEMORY_PRELOAD, /* the library alone; the default */
        MEMORY_UNTRIED, /* both are wanted, and the driver has not been tried */
        MEMORY_BOTH,
        MEMORY_UNAVAILABLE, /* both are wanted, and the driver cannot */
} MemoryMechanism;

typedef struct MemoryLimitsOptions { /* what it points to outlives it */
        sd_event *event;
        const CardList *cards; /* the cards as the driver lists them */
        const Inventory *inventory;
        const Roster *roster;
        const Records *records;
        const char *cgroup_root;           /* where this process sees the tree of cgroups */
        bool ignores_disable;              /* CGPU_DISABLE is not honoured on this node */
        bool both;                         /* the node's default, until memory_limits_want() */
        bool no_driver;                    /* the cards are a list, and nothing can be asked */
        void (*on_change)(void *userdata); /* the mechanism changed: any start may go on */
        /* memory_limits_start() of this pod has an answer now; not called while it runs */
        void (*on_start)(void *userdata, const char *uid);
        /* A limit had vanished, or another one was in force, and it was set again: at most once a
         * minute. */
        void (*on_restored)(void *userdata, Str uid, const Fault *note);
        /* Whether the limit of a pod is in force is not known, or it cannot be set or has no
         * effect: once for each cause, at most once a minute. note NULL: that has ended. */
        void (*on_failed)(void *userdata, Str uid, const Fault *note);
        void *userdata;
} MemoryLimitsOptions;

int memory_limits_new(const MemoryLimitsOptions *options, MemoryLimits **ret); /* 0 or negative errno */
/* call it before card_source_free() */
MemoryLimits *memory_limits_free(MemoryLimits *m);

/* call it before memory_limits_session() */
void memory_limits_set_source(MemoryLimits *m, CardSource *source);
/* both: as the node's annotation asks */
void memory_limits_want(MemoryLimits *m, bool both);
/* call it when a session of NVML has begun */
void memory_limits_session(MemoryLimits *m);

/* Sets the pod's limit before one of its containers starts. Where slices are not isolated, the pod
 * is set to no limit, because its cgroup may have that of a removed one. Nothing is refused then.
 * Returns 0 when it is in force, or none is needed; -ENOMEM; or with a fault:
 * MEMORY_LIMITS_E_ASKED: the driver was asked. on_start is called with its answer, and the next
 * call returns it.
 * MEMORY_LIMITS_E_LATER: too many requests wait, or the driver has not been tried. A later call
 * asks; on_change is called after the trial.
 * MEMORY_LIMITS_E_REFUSED: it cannot be set. */
enum { MEMORY_LIMITS_E_ASKED = 1, MEMORY_LIMITS_E_LATER, MEMORY_LIMITS_E_REFUSED };
int memory_limits_start(MemoryLimits *m, const Record *record, Fault *fault);

/* Lifts the pod's limit at once, because its record goes: the kubelet removes the cgroup soon. */
void memory_limits_end(MemoryLimits *m, const char *uid);

/* Returns the mechanism in force. ret_backend: "dmem", "driver" or "". ret_why: of
 * MEMORY_UNAVAILABLE. */
MemoryMechanism memory_limits_mechanism(const MemoryLimits *m, const char **ret_backend,
                                        const Fault **ret_why);

/* Bytes of that card that the driver charges the pod for, by the last answer. false: not known. */
bool memory_limits_charged(const MemoryLimits *m, const char *uid, const char *uuid, uint64_t *ret_bytes);

typedef struct MemoryLimitsCounters {
        /* limits that had to be set again; calls of the driver that failed or had no effect */
        uint64_t restored, failed;
        size_t pods; /* pods that have a limit now */
} MemoryLimitsCounters;
MemoryLimitsCounters memory_limits_counters(const MemoryLimits *m);

DEFINE_CLEANUP(MemoryLimits *, memory_limits_free)
