/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For the parts of this library that see libcuda before it calls the driver. */

#include <stdbool.h>

/* From now on all driver calls of libcuda arrive at this library, whatever comes before it in the
 * search order (preload/inject/slots.h). true, too: nothing is isolated here. false: they cannot be
 * redirected, and libcuda must not start. */
bool hook_redirect_driver(void);
