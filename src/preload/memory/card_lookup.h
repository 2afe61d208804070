/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "preload/memory/gate.h"

/* Returns the card of a device or subdevice, by its UUID in the driver. GATE_NO_CARD: this
 * container has no slice of it. If the driver does not report the UUID and there is one slice: that
 * card. Queries through fd with objects of its own, which are freed again, and records the answer
 * in parent. */
int gate_card(Gate *g, int fd, RmParent *parent);
