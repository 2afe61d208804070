/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <microhttpd.h>

/* The descriptor of a connection; -1: it has none.
 *
 * What MHD_get_connection_info() returns is valid until it is called again (microhttpd.h): 1.0.10
 * has one place per connection for all answers. So the value is taken out at once. */
static inline int http_socket_of(struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        return info ? info->connect_fd : -1;
}
