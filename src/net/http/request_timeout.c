/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/request_timeout.h"

#include <stdlib.h>
#include <sys/socket.h>

/* A connection; in the list while it has no whole request. */
typedef struct Incoming {
        struct Incoming *next, **link; /* link is NULL: a request is being answered */
        struct MHD_Connection *connection;
        usec_t until;
} Incoming;

void request_timeout_init(RequestTimeout *t, usec_t timeout) {
        *t = (RequestTimeout){.timeout = timeout};
        t->end = &t->first;
}

static void incoming_remove(RequestTimeout *t, Incoming *c) {
        if (!c->link)
                return;
        *c->link = c->next;
        if (c->next)
                c->next->link = c->link;
        else
                t->end = c->link;
        c->link = NULL;
}

/* A timer that is set is not moved: it fires too early and is set again. So a request costs no
 * system call for it. */
static void incoming_add(RequestTimeout *t, Incoming *c) {
        incoming_remove(t, c);
        c->until = clock_monotonic_usec() + t->timeout;
        c->next = NULL;
        c->link = t->end;
        *t->end = c;
        t->end = &c->next;
        if (t->armed)
                return;
        t->armed = true;
        /* these fail only for sources that do not exist */
        (void) sd_event_source_set_time(t->source, c->until);
        (void) sd_event_source_set_enabled(t->source, SD_EVENT_ONESHOT);
}

static Incoming *incoming_of(struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

void request_timeout_start(RequestTimeout *t, struct MHD_Connection *connection) {
        Incoming *c = incoming_of(connection);

        if (c)
                incoming_add(t, c);
}

void request_timeout_stop(RequestTimeout *t, struct MHD_Connection *connection) {
        Incoming *c = incoming_of(connection);

        if (c)
                incoming_remove(t, c);
}

void request_timeout_on_connection(void *userdata, struct MHD_Connection *connection, void **context,
                                   enum MHD_ConnectionNotificationCode code) {
        RequestTimeout *t = userdata;
        Incoming *c = *context;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                c = calloc(1, sizeof *c); /* without it the connection has no deadline */
                *context = c;
                if (!c)
                        return;
                c->connection = connection;
                incoming_add(t, c);
        } else if (c) {
                incoming_remove(t, c);
                free(c);
                *context = NULL;
        }
}

/* The shutdown makes the socket ready, and libmicrohttpd reads the end of the request there. */
static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        usec_t now = clock_monotonic_usec();
        RequestTimeout *t = userdata;
        int r;

        while (t->first && t->first->until <= now) {
                const union MHD_ConnectionInfo *info =
                        MHD_get_connection_info(t->first->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

                if (info)
                        (void) shutdown(info->connect_fd, SHUT_RDWR); /* the peer may be gone */
                incoming_remove(t, t->first);
        }
        t->armed = t->first != NULL;
        if (!t->armed)
                return 0;
        r = sd_event_source_set_time(source, t->first->until);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int request_timeout_join(RequestTimeout *t, sd_event *event) {
        int r = sd_event_add_time(event, &t->source, CLOCK_MONOTONIC, 0, USEC_PER_SEC, on_deadline, t);

        if (r >= 0)
                r = sd_event_source_set_enabled(t->source, SD_EVENT_OFF);
        return r < 0 ? r : 0;
}

void request_timeout_done(RequestTimeout *t) {
        t->source = sd_event_source_disable_unref(t->source);
}
