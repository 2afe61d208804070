/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The time constants of the arbiter. No value was measured on a real card: each is a guess until a
 * trace of one gives a better value. "tuned": chosen by results on the simulated card. */

#include <stdint.h>

/* ---- accounts ---- */

/* What one process is charged at most for unreported work. guess: the longest real kernel. */
#define ACCOUNT_DEBT_NS INT64_C(10000000000)
/* The largest debt of a container, so that sums do not overflow. guess: SLICE_ROWS processes. */
#define ACCOUNT_TOTAL_NS (256 * ACCOUNT_DEBT_NS)
/* The largest credit of an idle tenant. guess, tuned. */
#define ACCOUNT_BURST_NS INT64_C(5000000)
/* The longest waiting time that a tenant with work keeps as credit. guess, tuned. */
#define ACCOUNT_CREDIT_NS INT64_C(200000000)

/* ---- windows ---- */

/* How long the work of a window may run after its close. guess, tuned. */
#define DRAIN_NS UINT64_C(350000)
/* Other tenants wait at most this long for a window to drain. guess. */
#define MAX_DRAIN_NS UINT64_C(1000000000)
/* A switch between contexts and the next kernel's start. guess: 40 to 250 us were published. */
#define SWITCH_NS UINT64_C(100000)
/* The most contexts of one tenant that are counted (window_contexts()). guess. */
#define MAX_CONTEXTS UINT64_C(16)
/* The longest interval between two looks at work in OVERRUN. guess. */
#define OVERRUN_POLL_NS UINT64_C(50000000)

/* The length of a window. guess, tuned. */
#define QUANTUM_NS UINT64_C(4500000)
/* The length of a window for which no other tenant waits. guess, tuned. */
#define SOLE_WINDOW_NS UINT64_C(20000000)
/* From a write of one process to the reaction of another one. guess, tuned. */
#define NOTIFY_LATENCY_NS UINT64_C(50000)
/* The next window opens this long before the predicted drain of the last one. guess, tuned. */
#define PREOPEN_NS UINT64_C(70000)
/* A pause of this length closes a window for which another tenant waits. guess, tuned. */
#define IDLE_CLOSE_NS UINT64_C(50000)
/* A tenant's work in flight without progress for this long counts as stalled. guess. */
#define NO_PROGRESS_NS UINT64_C(2000000000)
/* A window is extended at most this long before its close. guess, tuned. */
#define EXTEND_MARGIN_NS UINT64_C(400000)
/* Work that is overdue for longer is reported. guess: longer than any legitimate kernel. */
#define OVERRUN_REPORT_NS UINT64_C(10000000000)

/* ---- containers with several cards ---- */

/* A pause of this length closes a joined window for which another tenant waits. guess, tuned. */
#define JOINED_IDLE_NS UINT64_C(500000)
/* A card idles at most this long for a joined set, before and after a window. guess: 2 windows. */
#define JOINED_DRAIN_NS (2 * QUANTUM_NS)
/* A set under caps may owe this much on a card while it has work in OVERRUN. guess, tuned. */
#define JOINED_DEBT_NS (16 * QUANTUM_NS)

/* ---- charges ---- */

/* The unused time of a window that its tenant may report. guess, tuned. */
#define UNUSED_SLACK_NS UINT64_C(250000)
/* 1/16 of the time held: as UNUSED_SLACK_NS for a short window, and the least busy time that is
 * credible. guess. */
#define CREDIBLE_PART 16
/* Charged per 5 ms of a window for the switch, so that equals take turns. guess, tuned. */
#define SWITCH_CHARGE_NS UINT64_C(20000)

/* ---- tenants that pause, or do not use their windows ---- */

/* A tenant that has work again within this was not idle. guess, tuned. */
#define ACTIVE_GRACE_NS UINT64_C(5000000)
/* A tenant of high priority that had work within this is expected again. guess, tuned. */
#define HIGH_RECENT_NS UINT64_C(1000000000)
/* Unused windows in a row before a tenant has to back off. guess. */
#define EMPTY_FORGIVEN 2
/* The back-off after unused windows: the first, and the longest. guess, tuned. */
#define EMPTY_BACKOFF_NS UINT64_C(2000000)
#define MAX_BACKOFF_NS   UINT64_C(250000000) /* guess, tuned */

/* ---- reports ---- */

/* The most work in flight of a row, so that the sum of SLICE_ROWS rows does not wrap. guess. */
#define MAX_IN_FLIGHT_NS UINT64_C(3600000000000)
/* The most work that a row reports between two readings. guess. */
#define MAX_ROW_BUSY_NS UINT64_C(10000000000)
/* A row is silent after four times its work in flight plus this. guess, tuned. */
#define SILENT_AFTER_NS UINT64_C(100000000)
/* Charged at most for an ended process, beyond four times its work in flight. guess. */
#define MAX_UNREPORTED_NS UINT64_C(1000000000)

/* ---- the daemon ---- */

/* Each page gets the arbiter's time this often; SCHED_STALE_NSEC is more than twice that. guess. */
#define HEARTBEAT_NS UINT64_C(100000000)
/* All rows are read this often: of a tenant without work, with work, and one that rang. guess. */
#define SWEEP_IDLE_NS UINT64_C(100000000)
#define SWEEP_BUSY_NS UINT64_C(250000000) /* guess */
#define SWEEP_RUNG_NS UINT64_C(20000000)  /* guess */
/* Intervals between two checks of the rows' locks: of silent rows, and of all. guess. */
#define LIVENESS_SILENT_NS UINT64_C(5000000)
#define LIVENESS_ALL_NS    UINT64_C(1000000000) /* guess */
/* The most processor time of one check; the shortest pause after a longer one. guess. */
#define MAX_LIVENESS_COST_NS UINT64_C(50000)
#define LIVENESS_REST_NS     UINT64_C(1000000000) /* guess */
/* The directory is read this often without a change, and this long after one. guess. */
#define RESCAN_NS          UINT64_C(1000000000)
#define SCAN_DELAY_NS      UINT64_C(10000000) /* guess: a slice is made of several files */
#define DOORBELL_PERIOD_NS UINT64_C(10000000) /* of SLICE_CHANNEL_RINGS; guess */
/* Interval between two readings of an idle tenant's report. guess, tuned. */
#define IDLE_POLL_NS UINT64_C(500000)
/* Pause before an arbiter that ended is started again. guess. */
#define RESPAWN_PAUSE_MS 100
/* The arbiter runs at most so long without a pause at real-time priority. guess. */
#define MAX_RUN_US 200000
