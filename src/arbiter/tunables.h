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

/* The length of a window. guess; tuned on the simulated card. */
#define QUANTUM_NS UINT64_C(4500000)
/* The length of a window for which no other tenant waits. guess; tuned on the simulated card. */
#define SOLE_WINDOW_NS UINT64_C(20000000)
/* From one process that writes something to another process that acts on it. guess; tuned on the simulated card. */
#define NOTIFY_LATENCY_NS UINT64_C(50000)
/* The next window opens this long before the one before it is over. guess; tuned on the simulated card. */
#define PREOPEN_NS UINT64_C(70000)
/* A longer pause within a window is idle time and not the way to the next kernel. guess; tuned on the simulated card. */
#define IDLE_CLOSE_NS UINT64_C(200000)
/* The delay from a window's opening to its first launch that is forgiven at most. guess; tuned on the simulated card. */
#define MAX_START_DELAY_NS UINT64_C(2000000)
/* Without a launch by then, the window counts as not used. guess; tuned on the simulated card. */
#define NO_START_NS UINT64_C(3000000)
/* Without a change of what a tenant with work in flight reports, its window is not extended. guess. */
#define NO_PROGRESS_NS UINT64_C(2000000000)
/* Before a window closes, it is decided whether it is extended. guess; tuned on the simulated card. */
#define EXTEND_MARGIN_NS UINT64_C(400000)
/* The time that the work of a window may run after its close, at least. guess; tuned on the simulated card. */
#define MIN_DRAIN_NS UINT64_C(350000)
/* Others wait for work to drain this long at most. guess; tuned on the simulated card. */
#define MAX_DRAIN_TIMEOUT_NS UINT64_C(1000000000)
/* Work that is in flight for longer than this is reported. guess: longer than any legitimate kernel. */
#define OVERRUN_REPORT_NS UINT64_C(10000000000)

/* ---- charges ---- */

/* The part of a window that its tenant may report as unused. guess; tuned on the simulated card. */
#define UNUSED_SLACK_NS UINT64_C(250000)
/* Charged per 5 ms for the change between windows, so that tenants take turns. guess; tuned on the simulated card. */
#define SWITCH_CHARGE_NS UINT64_C(20000)
/* Late starts that are not charged, in all. guess; tuned on the simulated card. */
#define MAX_LATE_ALLOWANCE_NS UINT64_C(50000000)
/* How long the card stays with one context while another one has work. guess: the simulated card's value. */
#define TIMESLICE_NS UINT64_C(1000000)
/* How exactly arrivals and departures are known. guess; tuned on the simulated card. */
#define ARRIVAL_TOLERANCE_NS (3 * NOTIFY_LATENCY_NS)
/* A step that comes later than this is the arbiter's delay, and not charged. guess; tuned on the simulated card. */
#define STEP_TOLERANCE_NS UINT64_C(200000)

/* ---- tenants that pause, or do not use their windows ---- */

/* A tenant that has work again within this was not idle. guess; tuned on the simulated card. */
#define ACTIVE_GRACE_NS UINT64_C(5000000)
/* A tenant that was idle within this needs half of a window's tokens only. guess; tuned on the simulated card. */
#define BRIEF_IDLE_NS UINT64_C(50000000)
/* A tenant of high priority that had work within this is expected again. guess; tuned on the simulated card. */
#define HIGH_RECENT_NS UINT64_C(1000000000)
/* The pause after windows that were not used: at first, and at most. guess; tuned on the simulated card. */
#define EMPTY_BACKOFF_NS UINT64_C(2000000)
#define MAX_BACKOFF_NS   UINT64_C(250000000) /* guess; tuned on the simulated card */

/* ---- work in flight that may wait for a launch: windows behind it ---- */

/* The first one, and the next ones, where the gate says that nothing has begun. guess; tuned on the simulated card. */
#define BLOCKED_FIRST_NS UINT64_C(250000000)
#define BLOCKED_NEXT_NS  UINT64_C(20000000)   /* guess; tuned on the simulated card */
#define RUNNING_FIRST_NS UINT64_C(1000000000) /* where a kernel may just be long, at least; guess */

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
#define RESCAN_NS UINT64_C(1000000000)
/* guess: a slice is made of several files. */
#define SCAN_DELAY_NS      UINT64_C(10000000)
#define DOORBELL_PERIOD_NS UINT64_C(10000000) /* of SLICE_CHANNEL_RINGS; guess */
/* After this the doorbell of a window's end does not come any more. guess; tuned on the simulated card. */
#define DOORBELL_LOST_NS UINT64_C(1000000)
/* Between two readings of an idle tenant's report. guess; tuned on the simulated card. */
#define IDLE_POLL_NS UINT64_C(500000)
/* Before an arbiter that ended is started again. guess. */
#define RESPAWN_PAUSE_MS 100
/* The arbiter runs at most so long without a pause at real-time priority. guess. */
#define MAX_RUN_US 200000
