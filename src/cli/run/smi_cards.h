/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards of this machine for aliquot-smi. */

#include "cli/run/host_cards.h"

enum { SMI_CARDS_MSEC = 5000 }; /* how long a driver may take to answer */

/* Reads the cards in a child process, because a driver that hangs would hang its caller. Returns 0,
 * or HOST_CARDS_E_NONE or negative errno with a fault. */
int smi_cards_read(HostCards *ret, Fault *fault);
