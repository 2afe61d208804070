/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The CDI specification file by which a container runtime gives a container its card: device nodes
 * and the driver's libraries, no runtime hook and no nvidia-container-toolkit
 * (cncf-tags/container-device-interface). Version 0.3.0, the first one, carries all that is used:
 * paths of nodes and mounts, and environment.
 *
 * Libraries are mounted under their SONAME in the folders that the loaders of Debian's and Red
 * Hat's families search without a cache, so nothing has to run ldconfig. There is no device "all":
 * a container gets the cards that it was granted. */

#include "base/buf.h"
#include "gpu/cards/card_list.h"
#include "gpu/cards/driver.h"

#define CDI_KIND "aliquot.dev/gpu"

/* In the environment of a container with a simulated card: the card's UUID. */
#define CDI_SIMULATED_VARIABLE "ALIQUOT_SIMULATED_CARD"

/* The file's text: one device per card, named by UUID. driver: NULL for none. simulated: an
 * environment variable instead of device nodes. Without cards `out` stays as it is, because a
 * specification without devices is refused by runtimes: the file is to be removed then. */
void cdi_write(const CardList *cards, const DriverFiles *driver, bool simulated, Buf *out);
