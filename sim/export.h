/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Exports of objects to open files: rmobjexportimport.c. An exported object is a duplicate with a
 * client of the driver's own, until it is dropped or its file is closed. Functions that return a
 * uint32_t return the driver's status. */

#include "gpu/rm/export_mem.h"
#include "gpu/rm/multicast.h"
#include "sim/sim.h"

/* Makes a duplicate for the driver's own client, and returns the instance of its device. */
uint32_t sim_export(SimClient *c, uint32_t object, uint32_t *ret_handle, uint32_t *ret_device);
void sim_export_drop(Sim *s, uint32_t handle); /* handle: from sim_export() */
/* Makes a duplicate of an exported object below `parent` of c. */
uint32_t sim_import(SimClient *c, uint32_t parent, uint32_t wanted, uint32_t handle, SimObject **ret);
/* Makes room for exports in a file that has none. OBJECT_NOT_FOUND and INVALID_PARAMETER: device (0
 * for none) is not a device of c. */
uint32_t sim_exports_init(SimFile *f, const SimClient *c, uint32_t device, uint16_t n,
                          const uint8_t *metadata);
void sim_exports_done(SimFile *f);

/* The controls of class 0xE0, and the end of such an object. */
uint32_t sim_export_object(SimObject *o, const RmExportMem *p);
uint32_t sim_import_object(const SimObject *o, RmImportMem *p);
uint32_t sim_attach_object(SimObject *o, const RmAttachMulticast *p); /* class 0xFD */
uint32_t sim_detach_object(SimObject *o, const RmDetachMulticast *p);
void sim_export_object_done(SimObject *o);
