/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For those parts of this library that see the driver's library before it asks the driver for
 * anything. */

#include <stdbool.h>

/* Whatever libcuda does from now on arrives here, whoever comes before this library in the search
 * order (preload/inject/slots.h). true, too: nothing is isolated here. false: that cannot be had,
 * and it must not begin. */
bool hook_holds_driver(void);
