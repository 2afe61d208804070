/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A memory object that uvm maps. The driver looks at the object's handle after the gate did, and
 * another thread may have given the handle to another object. The order is: uvm_object_look_up(),
 * the driver, uvm_object_add_mapping(), uvm_object_has_changed(). */

#include "preload/memory/gate.h"

typedef struct UvmObject {
        uint32_t client, memory;
        uint32_t charge;  /* charge, with a reference; 0: no bytes of a card */
        RmObject source;  /* row, card and units of the charge */
        uint32_t objects; /* serial of the newest object when it was looked up */
} UvmObject;

/* Takes a reference of the charge of m->client's object m->memory. An object that the process has
 * not charged is charged by its size, to the card that maps it. ctl: the descriptor that the call
 * names as the client's file. false: it cannot be counted. */
bool uvm_object_look_up(Gate *g, int ctl, uint32_t card, UvmObject *m);
void uvm_object_drop(Gate *g, const UvmObject *m); /* ends the reference */

/* Adds a mapping, which is one more holder. where: file, addresses, kind and card. */
void uvm_object_add_mapping(Gate *g, const UvmObject *m, const UvmNote *where);

/* Whether the driver may have seen another object than the one that was looked up. */
bool uvm_object_has_changed(Gate *g, const UvmObject *m);
