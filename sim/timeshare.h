/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The share of the card's time that a channel group has. */

#include <stdbool.h>
#include <stdint.h>

struct SimObject;

/* What was asked about a channel or a channel group. The engines do not follow it. */
typedef struct SimTimeshare {
        uint64_t timeslice_usec;
        uint32_t compute_mode; /* RM_PREEMPT_COMPUTE_... */
        uint32_t preempts;     /* how often */
        bool scheduled, disabled;
} SimTimeshare;

/* Listens for channel groups that get a slot on their card's engines, or leave it. */
typedef struct SimListener {
        void (*enter)(void *data, uint32_t card, uint32_t slot, const struct SimObject *group);
        void (*leave)(void *data, uint32_t card, uint32_t slot);
        void *data;
} SimListener;
