/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The time constants of the launch hooks. No value was measured on a real card: each is a guess
 * until a trace of one gives a better value. "tuned": chosen by results on the simulated card. */

#include <stdint.h>

/* ---- admission: launches that wait ---- */

/* The longest sleep of a waiting launch before it checks admission again. guess, tuned. */
#define WINDOW_POLL_NS UINT64_C(20000000)
/* The longest sleep where the window's time is over and the arbiter has not written so. guess,
 * tuned. */
#define LATE_POLL_NS UINT64_C(2000000)
/* The sleep where work in flight blocks the launch: at least, and at most. guess, tuned. */
#define MIN_DEPTH_POLL_NS UINT64_C(100000)
#define MAX_DEPTH_POLL_NS UINT64_C(1000000) /* guess, tuned */
/* The shortest sleep where the balance is spent. guess. */
#define MIN_BALANCE_POLL_NS UINT64_C(250000)
/* A waiting launch checks this long before the closed batches are expected to end. guess, tuned. */
#define DEPTH_LEAD_NS UINT64_C(400000)
/* The work in flight of a process while the arbiter is away, at most. guess, tuned. */
#define LOCAL_DEPTH_NS UINT64_C(4000000)
/* The largest length that is assumed for unmeasured work. guess, tuned. */
#define MAX_COLD_NS UINT64_C(4000000)
/* The largest time of a page that counts, so that sums do not overflow. guess. */
#define MAX_ROOM_NS UINT64_C(60000000000)
/* A launch is let through after this time in which nothing of its process ended: that work may wait
 * for it. For each process of the container. guess. */
#define STUCK_NS   UINT64_C(1000000000)
#define BLOCKED_NS UINT64_C(2000000) /* while a host function runs. guess, tuned */
/* The share of the card that pays for such a launch where the container has no cap. guess. */
#define UNKNOWN_SHARE_PERCENT 10
/* A launch after a pause of this length may be of other work than those before. guess. */
#define RESTART_PAUSE_NS UINT64_C(10000000)
/* Work in flight without a batch on the card is of a thread that ended after this. guess. */
#define LOST_AFTER_NS UINT64_C(2000000000)
/* A waiter that has not looked for this long is a thread that ended. guess: many times
 * WINDOW_POLL_NS. */
#define WAITER_LOST_NS UINT64_C(1000000000)

/* ---- the duty cycle without an arbiter ---- */

/* The balance of one period is kept at most. guess. */
#define DUTY_PERIOD_NS UINT64_C(40000000)
/* The shortest interval between two fillings of the balance. guess. */
#define DUTY_FILL_NS     UINT64_C(20000)
#define PEERS_COUNT_NS   UINT64_C(100000000)   /* interval of the process counts; guess */
#define MAX_DUTY_FILL_NS UINT64_C(60000000000) /* most time that one filling counts; guess */

/* ---- batches ---- */

/* A batch of this much work has its end marked. guess, tuned. */
#define MARK_WORK_NS UINT64_C(200000)
/* The interval at which a batch is marked even if nothing asks for it; the second where none is on
 * the card. guess. */
#define MARK_PAUSE_NS UINT64_C(1000000)
#define MARK_QUIET_NS UINT64_C(150000) /* guess, tuned */
/* The most callbacks of a context in the driver's queue, with a wait each. guess: a queue of
 * 1,024. */
#define MAX_CALLBACKS 384
/* An open batch is polled this long after its estimated end. guess, tuned. */
#define POLL_SLACK_NS UINT64_C(200000)
/* As POLL_SLACK_NS, for a stream about which only its own thread can ask. guess. */
#define FOREIGN_LATE_NS UINT64_C(10000000)
/* The card's time slice of a process. guess: what libcuda asks for in a trace of driver 580. */
#define TIME_SLICE_NS UINT64_C(2048000)
/* Work that has not ended this long after its estimated end was estimated wrongly. guess: a time
 * slice. */
#define LATE_NS UINT64_C(2048000)
/* Before a stream is destroyed: sleeps while another thread uses one of its batches, at most, and
 * ns of each. guess. */
#define MAX_HOLDER_WAITS 5000
#define HOLDERS_POLL_NS  20000 /* guess */
/* The oldest event that times are counted from: a float of ms has 24 bits, 60 ns of a second.
 * guess. */
#define MAX_ORIGIN_AGE_MS 500.0F
/* ---- estimates, and launches without a batch ---- */

/* The length of unmeasured work. guess, tuned. */
#define ESTIMATE_COLD_NS UINT64_C(50000)
/* A thread waits for its own launch without a batch this long at most. guess. */
#define MAX_FOLLOW_NS  UINT64_C(250000000)
#define FOLLOW_POLL_NS 50000 /* guess */

/* ---- what the arbiter is told ---- */

/* Within this time the doorbell rings for one pause only. guess, tuned. */
#define DOORBELL_PAUSE_NS UINT64_C(2000000)
/* A heartbeat that is further ahead of CLOCK_MONOTONIC comes from another clock. guess. */
#define HEARTBEAT_AHEAD_NS UINT64_C(10000000000)
