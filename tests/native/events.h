/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Interrupts of the card, as a program waits for them: poll() of a descriptor of the driver for
 * which it has an event of class NV01_EVENT_OS_EVENT (cl0005.h). The simulator's files are always
 * ready. */

#include <stdint.h>

typedef struct EventsParams { /* NV0005_ALLOC_PARAMETERS */
        uint32_t client, source, class_, index;
        uint64_t fd;
} EventsParams;

void events_add(const EventsParams *p);
void events_closed(int fd); /* its event has ended */

/* Work of a channel asked for an interrupt: events with NV01_EVENT_NONSTALL_INTR. */
void events_interrupt(void);
/* A channel has failed: all other events. */
void events_error(void);
