/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Contents of exported memory, which the real driver does not need. In the simulator, memory of a
 * card is a memfd of the process that made it. A process that imports the memory needs that file,
 * so the server keeps it beside the exports of an nvidiactl while that is open. Both calls are made
 * on that nvidiactl; 0, or -1 with errno. Linux 5.6. */

#include <sys/ioctl.h>

#define SIM_KEEP_CONTENTS _IOW('q', 0xA2, int) /* a memfd of the caller's */
#define SIM_GIVE_CONTENTS                                                                                    \
        _IOW('q', 0xA3,                                                                                      \
             int) /* a local socket of the caller's, into which the descriptor is sent; ENOENT: none is kept */
