/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_handshake.h"

#include <gnutls/gnutls.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "net/http/http_socket.h"

static void running_remove(HttpHandshake *x) {
        if (!x->link)
                return;
        *x->link = x->next;
        if (x->next)
                x->next->link = x->link;
        x->link = NULL;
}

static void running_add(HttpHandshake *x) {
        HttpHandshakes *h = x->owner;

        x->link = &h->running;
        x->next = h->running;
        if (x->next)
                x->next->link = &x->next;
        h->running = x;
}

static gnutls_session_t session_of(struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

        return info ? info->tls_session : NULL;
}

/* After the peer's Finished, the server has nothing more to wait for: RFC 8446 section 4.4.4, RFC
 * 5246 section 7.4.9. */
static int on_finished(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                       const gnutls_datum_t *message) {
        HttpHandshake *x = gnutls_db_get_ptr(session);

        if (incoming && x) {
                running_remove(x);
                x->owner = NULL;
        }
        return 0;
}

/* Sessions are in no database here, so that its pointer is free for the hook. */
void http_handshake_begin(HttpHandshakes *h, HttpHandshake *x, struct MHD_Connection *connection) {
        gnutls_session_t session = session_of(connection);

        if (!session)
                return;
        x->owner = h;
        x->connection = connection;
        running_add(x);
        gnutls_db_set_ptr(session, x);
        gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST, on_finished);
}

static void resume(HttpHandshake *x) {
        if (!x->watch)
                return;
        x->watch = sd_event_source_disable_unref(x->watch);
        MHD_resume_connection(x->connection);
        x->owner->wake(x->owner->userdata);
}

void http_handshake_end(HttpHandshake *x) {
        running_remove(x);
        resume(x);
        x->owner = NULL;
}

static int on_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        HttpHandshake *x = userdata;

        running_add(x);
        resume(x);
        return 0;
}

void http_handshakes_suspend(HttpHandshakes *h) {
        while (h->running) {
                HttpHandshake *x = h->running;
                bool writes = gnutls_record_get_direction(session_of(x->connection)) == 1;

                running_remove(x);
                if (sd_event_add_io(h->event, &x->watch, http_socket_of(x->connection),
                                    writes ? EPOLLIN | EPOLLOUT : EPOLLIN, on_ready, x) >= 0)
                        MHD_suspend_connection(x->connection);
        }
}
