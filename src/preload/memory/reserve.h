/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bytes of a slice. Before a reservation fails, charges are given back that have lost their holder:
 * of clients that are gone with their open file, and of exports to closed files. */

#include "preload/memory/gate.h"

/* Reserves bytes in a row of the card, for a call of the client on fd. Returns 0 or -ENOMEM: no
 * room, or the process gets no row. */
int gate_reserve(Gate *g, int card, GateRow row, uint64_t bytes, int fd, uint32_t client);

/* Reserves bytes in the process's own row of a usable card, without a file or client at hand. Stale
 * clients are found through a file of this process on which one of its clients lives, and closed
 * exports through any file of the driver. 0 or -ENOMEM. */
int gate_reserve_managed(Gate *g, int card, uint64_t bytes);

/* Call it before an answer about memory: releases what killed processes, stale clients and closed
 * exports still count, at most once in a millisecond. */
void gate_refresh(Gate *g, int card, int fd, uint32_t client);
