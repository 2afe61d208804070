/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The simulated driver: a context per process on the simulated card, and the calls of libcuda that
 * the hooks make, each at its cost. */

#include "card.h"
#include "preload/launch/real.h"

typedef struct DriverContext DriverContext;

void driver_begin(const CardCosts *costs);
DriverContext *driver_context(void *owner); /* starts the driver's thread as a fiber of the owner */
void driver_end(DriverContext *c);          /* the process was killed */
uint64_t driver_ran(const DriverContext *c);
DriverContext *driver_current(void); /* of the fiber that runs */

void driver_launch(DriverContext *c, unsigned stream, uint64_t ns);
void driver_copy(DriverContext *c, unsigned stream, bool up, uint64_t ns);
void driver_wait(DriverContext *c, unsigned stream);
unsigned driver_stream(DriverContext *c);
CuHandle driver_handle(unsigned stream); /* the handle that a program passes to the driver */
void driver_stream_wait(DriverContext *c, unsigned stream, unsigned other);
void driver_host_func(DriverContext *c, unsigned stream, void (*run)(void *data), void *data);
