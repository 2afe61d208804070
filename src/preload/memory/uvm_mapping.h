/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls of uvm that map a memory object (uvm_call.h). */

#include "preload/memory/uvm_call.h"

long uvm_mapping_external(const UvmCall *u); /* UVM_MAP_EXTERNAL_ALLOCATION */
long uvm_mapping_p2p(const UvmCall *u);      /* UVM_ALLOC_DEVICE_P2P */
