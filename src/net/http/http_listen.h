/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"

/* Opens a listening TCP socket, non-blocking and close-on-exec. address: "127.0.0.1:8080",
 * "[::1]:0" or ":9443" (every address, IPv6 and IPv4). Port 0 takes a free port; *ret_port is the
 * port taken. Returns the descriptor, or negative errno with a fault that names the address:
 * -EINVAL when it is malformed. */
int http_listen(const char *address, uint16_t *ret_port, Fault *fault);

/* Whether such an address is of the loopback: 127.0.0.0/8 without brackets, or [::1]. False also
 * where it is malformed. */
bool http_listen_is_loopback(const char *address);
