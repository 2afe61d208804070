/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For the parts of this library that see libcuda before it calls the driver. */

#include <stdbool.h>

/* Makes all further driver calls of libcuda arrive at this library, whatever comes before it in the
 * search order (preload/inject/slots.h). Returns true also if nothing is isolated here; false if
 * they cannot be redirected, and libcuda must not start. */
bool hook_redirect_driver(void);
