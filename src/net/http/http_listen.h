/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/fault.h"

/* A listening TCP socket, non-blocking and close-on-exec, for "127.0.0.1:8080", "[::1]:0" or ":9443" (every
 * address, IPv6 and IPv4). Port 0 takes a free one; *ret_port is the one taken. Returns the descriptor,
 * -EINVAL for a malformed address, or the errno of the call that failed; fault names the address. */
int http_listen(const char *address, uint16_t *ret_port, Fault *fault);
