/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The time constants of the room. No value was measured on a real card: each is a guess, most of
 * them tuned on the simulated card, until a trace says better. */

#include <stdint.h>

/* ---- accounts ---- */

/* Unreported work that one process is charged at most. guess: the longest kernel that is legitimate. */
#define ACCOUNT_DEBT_NS INT64_C(10000000000)
/* The debt of a container at most, so that sums fit. guess: SLICE_ROWS processes. */
#define ACCOUNT_TOTAL_NS (256 * ACCOUNT_DEBT_NS)
/* The credit of an idle tenant at most. guess; tuned on the simulated card. */
#define ACCOUNT_BURST_NS INT64_C(5000000)
/* The waiting time that a tenant which wants the card keeps as credit at most. guess; tuned on the simulated card. */
#define ACCOUNT_CREDIT_NS INT64_C(200000000)
/* When all tenants are behind by this, the card cannot give more and none earns. guess; tuned on the simulated card. */
#define ACCOUNT_SATURATED_NS INT64_C(100000000)

/* ---- windows ---- */

/* The time that the work of a window may run after its close. guess; tuned on the simulated card. */
#define DRAIN_NS UINT64_C(350000)
/* Others wait for work to drain this long at most. guess. */
#define MAX_DRAIN_NS UINT64_C(1000000000)
/* A switch between contexts, with the start of the next kernel. guess: 40 to 250 us in publications. */
#define SWITCH_NS UINT64_C(100000)
/* Contexts of one tenant that count, at most. guess. */
#define MAX_CONTEXTS UINT64_C(16)
/* Work in OVERRUN gets a window for a launch that waits after this without progress. guess. */
#define BACKLOG_WAIT_NS UINT64_C(1000000000)
/* The same where nothing of that work has begun. guess. */
#define BLOCKED_WAIT_NS UINT64_C(50000000)

/* The length of a window. guess; tuned on the simulated card. */
#define QUANTUM_NS UINT64_C(4500000)
/* The length of a window for which no other tenant waits. guess; tuned on the simulated card. */
#define SOLE_WINDOW_NS UINT64_C(20000000)
/* From one process that writes something to another process that acts on it. guess; tuned on the simulated card. */
#define NOTIFY_LATENCY_NS UINT64_C(50000)
/* The next window opens this long before the one before it is over. guess; tuned on the simulated card. */
#define PREOPEN_NS UINT64_C(70000)
/* A reported pause of this length ends a window for which others wait. guess; tuned on the simulated card. */
#define IDLE_CLOSE_NS UINT64_C(50000)
/* Without a launch by then, the window counts as not used. guess; tuned on the simulated card. */
#define NO_START_NS UINT64_C(3000000)
/* Without a change of what a tenant with work in flight reports, its window is not extended. guess. */
#define NO_PROGRESS_NS UINT64_C(2000000000)
/* Before a window closes, it is decided whether it is extended. guess; tuned on the simulated card. */
#define EXTEND_MARGIN_NS UINT64_C(400000)
/* Work that is in flight for longer than this is reported. guess: longer than any legitimate kernel. */
#define OVERRUN_REPORT_NS UINT64_C(10000000000)

/* ---- containers with several cards ---- */

/* A pause of this length ends a joined window for which others wait. guess; tuned on the model. */
#define JOINED_IDLE_NS UINT64_C(500000)
/* A card idles for a set at most so long, before and after its window. guess: two windows. */
#define JOINED_DRAIN_NS (2 * QUANTUM_NS)

/* ---- charges ---- */

/* The part of a window that its tenant may report as unused. guess; tuned on the simulated card. */
#define UNUSED_SLACK_NS UINT64_C(250000)
/* The same of a short one; a report of less than this part is not credible. guess: 5 us per 55 us are. */
#define CREDIBLE_PART 16
/* Charged per 5 ms for the change between windows, so that tenants take turns. guess; tuned on the simulated card. */
#define SWITCH_CHARGE_NS UINT64_C(20000)
/* A step that comes later than this is the arbiter's delay, and not charged. guess; tuned on the simulated card. */
#define STEP_TOLERANCE_NS UINT64_C(200000)

/* ---- tenants that pause, or do not use their windows ---- */

/* A tenant that has work again within this was not idle. guess; tuned on the simulated card. */
#define ACTIVE_GRACE_NS UINT64_C(5000000)
/* A tenant of high priority that had work within this is expected again. guess; tuned on the simulated card. */
#define HIGH_RECENT_NS UINT64_C(1000000000)
/* Windows in a row that nothing was launched in, without a pause. guess. */
#define EMPTY_FORGIVEN 2
/* The pause after windows that were not used: at first, and at most. guess; tuned on the simulated card. */
#define EMPTY_BACKOFF_NS UINT64_C(2000000)
#define MAX_BACKOFF_NS   UINT64_C(250000000) /* guess; tuned on the simulated card */

/* ---- reports ---- */

/* In flight at most, so that the sum of SLICE_ROWS rows does not wrap. guess. */
#define MAX_IN_FLIGHT_NS UINT64_C(3600000000000)
/* Work that a row reports between two readings at most. guess. */
#define MAX_ROW_BUSY_NS UINT64_C(10000000000)
/* A row is silent after four times what it has in flight, and this. guess; tuned on the simulated card. */
#define SILENT_AFTER_NS UINT64_C(100000000)
/* Charged for a process that died, beyond four times what it had in flight. guess. */
#define MAX_UNREPORTED_NS UINT64_C(1000000000)

/* ---- the daemon ---- */

/* The arbiter's time is written into each page this often; SCHED_STALE_NSEC is more than twice that. guess. */
#define HEARTBEAT_NS UINT64_C(100000000)
/* All rows are read this often: of a tenant without work, with work, and one that rang. guess. */
#define SWEEP_IDLE_NS UINT64_C(100000000)
#define SWEEP_BUSY_NS UINT64_C(250000000) /* guess */
#define SWEEP_RUNG_NS UINT64_C(20000000)  /* guess */
/* The locks of rows are looked at this often: of silent ones, and of all. guess. */
#define LIVENESS_SILENT_NS UINT64_C(5000000)
#define LIVENESS_ALL_NS    UINT64_C(1000000000) /* guess */
/* Processor time of one such look at most; the pause after a longer one, at least. guess. */
#define MAX_LIVENESS_COST_NS UINT64_C(50000)
#define LIVENESS_REST_NS     UINT64_C(1000000000) /* guess */
/* The directory is read this often without a change, and this long after one. guess. */
#define RESCAN_NS          UINT64_C(1000000000)
#define SCAN_DELAY_NS      UINT64_C(10000000) /* guess: a slice is made of several files */
#define DOORBELL_PERIOD_NS UINT64_C(10000000) /* of SLICE_CHANNEL_RINGS; guess */
/* Between two readings of an idle tenant's report. guess; tuned on the simulated card. */
#define IDLE_POLL_NS UINT64_C(500000)
/* Before an arbiter that ended is started again. guess. */
#define RESPAWN_PAUSE_MS 100
/* The arbiter runs at most so long without a pause at real-time priority. guess. */
#define MAX_RUN_US 200000
