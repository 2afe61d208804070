/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Closes connections whose request does not come whole in time. libmicrohttpd closes a connection
 * on which no byte came for some time; a peer that sends a byte now and then would keep it open for
 * ever. Connections without a whole request are in a list. All have the same time, so that the list
 * is in the order of their deadlines. */

#include <microhttpd.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/clock.h"

typedef struct RequestTimeout {
        sd_event_source *source; /* at the first deadline of the list, or earlier */
        struct Incoming *first, **end;
        usec_t timeout;
        bool armed; /* the source is set */
} RequestTimeout;

/* timeout: of each request. The list is ready for connections; none is closed before _join(). */
void request_timeout_init(RequestTimeout *t, usec_t timeout);
/* Returns 0, or the negative errno of sd-event. */
int request_timeout_join(RequestTimeout *t, sd_event *event);
/* Call it after libmicrohttpd has stopped, and so has ended all connections. */
void request_timeout_done(RequestTimeout *t);

/* For MHD_OPTION_NOTIFY_CONNECTION, with the RequestTimeout as userdata: the time of a connection
 * runs from its beginning. A connection for which there is no memory has no deadline. */
void request_timeout_on_connection(void *userdata, struct MHD_Connection *connection, void **context,
                                   enum MHD_ConnectionNotificationCode code);

/* The connection waits for its next request, whose time begins now. */
void request_timeout_start(RequestTimeout *t, struct MHD_Connection *connection);
/* The request is whole: its answer may take any time. */
void request_timeout_stop(RequestTimeout *t, struct MHD_Connection *connection);
