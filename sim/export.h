/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Objects that travel as a descriptor: rmobjexportimport.c. What is exported is a duplicate with a
 * client of the driver's own, until it is dropped, or the file closed in whose places it is.
 * Functions that answer a uint32_t answer the driver's status. */

#include "sim/sim.h"

/* A duplicate of an object in the driver's own hands, and the instance of its device. */
uint32_t sim_export(SimClient *c, uint32_t object, uint32_t *ret_handle, uint32_t *ret_device);
void sim_export_drop(Sim *s, uint32_t handle); /* as sim_export() gave it */
/* A duplicate of that below `parent` of c. */
uint32_t sim_import(SimClient *c, uint32_t parent, uint32_t wanted, uint32_t handle, SimObject **ret);
/* Makes places in a file that has none. OBJECT_NOT_FOUND and INVALID_PARAMETER: device (0 for none)
 * is not a device of c. */
uint32_t sim_exports_init(SimFile *f, const SimClient *c, uint32_t device, uint16_t n,
                          const uint8_t *metadata);
void sim_exports_done(SimFile *f);
