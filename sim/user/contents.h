/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the real driver has no need of: here memory of a card is a file of the process that made it
 * (a memfd), and whoever imports the memory wants that, too. So the server keeps the file beside
 * what was exported to an nvidiactl, as long as that is open. Both calls are made on that
 * nvidiactl; 0, or -1 with errno. Linux 5.6. */

#include <sys/ioctl.h>

#define SIM_KEEP_CONTENTS _IOW('q', 0xA2, int) /* a memfd of the caller's */
#define SIM_GIVE_CONTENTS                                                                                    \
        _IOW('q', 0xA3,                                                                                      \
             int) /* a local socket of the caller's, into which the descriptor is sent; ENOENT: none is kept */
