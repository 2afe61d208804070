/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "preload/memory/gate.h"

/* The card of a device or subdevice, by the UUID that the driver tells. GATE_NO_CARD: this
 * container has no slice of it. If the driver does not tell and there is only one slice: that card.
 * Asks through fd with objects of its own, which are freed again, and notes the answer in
 * parent. */
int gate_card(Gate *g, int fd, RmParent *parent);
