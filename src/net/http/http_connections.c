/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/hash.h"
#include "net/http/http_socket.h"

#define DRAIN_IDLE (1 * USEC_PER_SEC)
#define TELL_EVERY (60 * USEC_PER_SEC)

/* An address with connections. Colliding hashes can be made, but the table has no more addresses
 * than connections. */
typedef struct HttpPeer {
        struct in6_addr address; /* an IPv4 address is mapped */
        unsigned n[HTTP_CONNECTION_STATES_];
        unsigned all; /* all its connections, those that are closing as well */
        UT_hash_handle hh;
} HttpPeer;

typedef struct HttpConnection {
        struct HttpConnection *next, **link;
        struct MHD_Connection *connection;
        HttpPeer *peer;
        HttpHandshake handshake;
        usec_t since;
        HttpConnectionState state;
        bool closing; /* it is in no list: libmicrohttpd will find its socket shut down */
} HttpConnection;

const char *http_connections_closed_to_string(HttpClosed rule) {
        static const char *const labels[HTTP_CLOSED_MAX_] = {
#define X(name, label) [HTTP_CLOSED_##name] = (label),
                HTTP_CLOSED_LIST(X)
#undef X
        };

        return labels[rule];
}

void http_connections_init(HttpConnections *c, const HttpConnectionsOptions *options) {
        *c = (HttpConnections){.o = *options};
        for (int i = 0; i < HTTP_CONNECTION_STATES_; i++)
                c->lists[i].end = &c->lists[i].first;
}

/* ---- addresses ---- */

static struct in6_addr address_of(struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        struct in6_addr address = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

        if (info && info->client_addr->sa_family == AF_INET6)
                return ((const struct sockaddr_in6 *) (const void *) info->client_addr)->sin6_addr;
        if (info && info->client_addr->sa_family == AF_INET)
                memcpy(&address.s6_addr[12],
                       &((const struct sockaddr_in *) (const void *) info->client_addr)->sin_addr, 4);
        return address;
}

/* Returns NULL when out of memory. */
static HttpPeer *peer_of(HttpConnections *c, struct in6_addr address) {
        HttpPeer *p;

        HASH_FIND(hh, c->peers, &address, sizeof address, p);
        if (p)
                return p;
        p = calloc(1, sizeof *p);
        if (!p)
                return NULL;
        p->address = address;
        HASH_ADD(hh, c->peers, address, sizeof p->address, p);
        if (hash_added(p, hh))
                return p;
        free(p);
        return NULL;
}

static void peer_release(HttpConnections *c, HttpPeer *p) {
        if (--p->all > 0)
                return;
        HASH_DEL(c->peers, p);
        free(p);
}

static unsigned count_of(const HttpConnections *c, const HttpPeer *p, HttpConnectionState state) {
        return p ? p->n[state] : c->lists[state].n;
}

/* Connections of an address that are not closing. p NULL: of all addresses. */
static unsigned count_open(const HttpConnections *c, const HttpPeer *p) {
        unsigned n = 0;

        for (int i = 0; i < HTTP_CONNECTION_STATES_; i++)
                n += count_of(c, p, (HttpConnectionState) i);
        return n;
}

/* ---- lists and deadlines ---- */

static usec_t patience_in(const HttpConnections *c, HttpConnectionState state) {
        switch (state) {
        case HTTP_CONNECTION_FRESH:
                return c->o.first;
        case HTTP_CONNECTION_IDLE:
                return c->draining && c->o.idle > DRAIN_IDLE ? DRAIN_IDLE : c->o.idle;
        case HTTP_CONNECTION_RECEIVING:
                return c->o.next;
        case HTTP_CONNECTION_SENDING:
        case HTTP_CONNECTION_BUSY:
        case HTTP_CONNECTION_STATES_:
                break;
        }
        return 0;
}

/* Sets the timer for the first deadline of a state. It is only moved to an earlier time: otherwise
 * it fires too early and is set again. So a request costs no system call for it. */
static void arm_timer(HttpConnections *c, HttpConnectionState state) {
        const HttpConnection *first = c->lists[state].first;
        usec_t when = first ? first->since + patience_in(c, state) : 0;

        if (!first || !c->source || patience_in(c, state) == 0 || (c->armed > 0 && c->armed <= when))
                return;
        c->armed = when;
        /* these fail only for sources that do not exist */
        (void) sd_event_source_set_time(c->source, when);
        (void) sd_event_source_set_enabled(c->source, SD_EVENT_ONESHOT);
}

static void list_remove(HttpConnections *c, HttpConnection *x) {
        *x->link = x->next;
        if (x->next)
                x->next->link = x->link;
        else
                c->lists[x->state].end = x->link;
        c->lists[x->state].n--;
        x->peer->n[x->state]--;
}

static void list_add(HttpConnections *c, HttpConnection *x, HttpConnectionState state) {
        struct HttpConnectionList *list = &c->lists[state];

        x->state = state;
        x->since = clock_monotonic_usec();
        x->next = NULL;
        x->link = list->end;
        *list->end = x;
        list->end = &x->next;
        list->n++;
        x->peer->n[state]++;
        arm_timer(c, state);
}

/* ---- closing ---- */

/* Shuts the socket down, which makes it ready, so that libmicrohttpd closes the connection in its
 * next turn. */
static void cut_socket(struct MHD_Connection *connection) {
        (void) shutdown(http_socket_of(connection), SHUT_RDWR); /* the peer may be gone */
}

static void connection_close(HttpConnections *c, HttpConnection *x) {
        list_remove(c, x);
        x->closing = true;
        cut_socket(x->connection);
        http_handshake_end(&x->handshake);
}

/* Whether the kernel has bytes of a request that libmicrohttpd has not read yet. */
static bool has_unread(const HttpConnection *x) {
        int n = 0;

        return ioctl(http_socket_of(x->connection), FIONREAD, &n) == 0 && n > 0;
}

/* ---- limits ---- */

static HttpConnection *oldest_in(const HttpConnections *c, const HttpPeer *p, HttpConnectionState state) {
        HttpConnection *x = c->lists[state].first;

        if (count_of(c, p, state) == 0)
                return NULL;
        while (x && ((p && x->peer != p) || (state == HTTP_CONNECTION_IDLE && has_unread(x))))
                x = x->next;
        return x;
}

static HttpConnection *older_of(HttpConnection *a, HttpConnection *b) {
        return !b || (a && a->since <= b->since) ? a : b;
}

/* The connection to close in favour of a new one. p NULL: of all addresses. Returns NULL when all
 * are busy. */
static HttpConnection *choose_victim(const HttpConnections *c, const HttpPeer *p, unsigned max) {
        HttpConnection *fresh = oldest_in(c, p, HTTP_CONNECTION_FRESH);
        HttpConnection *used = older_of(oldest_in(c, p, HTTP_CONNECTION_IDLE),
                                        older_of(oldest_in(c, p, HTTP_CONNECTION_RECEIVING),
                                                 oldest_in(c, p, HTTP_CONNECTION_SENDING)));

        return used && count_of(c, p, HTTP_CONNECTION_FRESH) <= (max + 1) / 2 ? used : fresh;
}

static const HttpPeer *largest_peer(const HttpConnections *c) {
        const HttpPeer *most = c->peers;

        for (const HttpPeer *p = c->peers; p; p = p->hh.next)
                if (count_open(c, p) > count_open(c, most))
                        most = p;
        return most;
}

static void tell_limit(HttpConnections *c, const HttpPeer *p, HttpClosed rule) {
        _cleanup_buf_ Buf text = BUF_NULL;
        char address[INET6_ADDRSTRLEN] = "";
        uint64_t closed = c->closed[HTTP_CLOSED_ADDRESS] + c->closed[HTTP_CLOSED_LISTENER] +
                          c->closed[HTTP_CLOSED_REFUSED];

        if (!c->o.on_limit || !told_is_news(&c->told, STR(""), clock_monotonic_usec(), TELL_EVERY))
                return;
        if (IN6_IS_ADDR_V4MAPPED(&p->address))
                (void) inet_ntop(AF_INET, &p->address.s6_addr[12], address, sizeof address);
        else
                (void) inet_ntop(AF_INET6, &p->address, address, sizeof address);
        buf_appendf(
                &text,
                "connections at the limit listener=%s rule=%s address=%s of_address=%u all=%u closed=%llu",
                c->o.name ? c->o.name : "", http_connections_closed_to_string(rule), address,
                count_open(c, p), count_open(c, NULL), (unsigned long long) closed);
        if (buf_result(&text) == 0)
                c->o.on_limit(c->o.userdata, text.data);
}

static void make_room(HttpConnections *c, const HttpConnection *new) {
        const HttpPeer *p = new->peer;
        HttpClosed rule = HTTP_CLOSED_ADDRESS;
        HttpConnection *victim;

        if (count_open(c, p) - p->n[HTTP_CONNECTION_BUSY] > c->o.max_of_address)
                victim = choose_victim(c, p, c->o.max_of_address);
        else if (count_open(c, NULL) > c->o.max) {
                rule = HTTP_CLOSED_LISTENER;
                victim = choose_victim(c, NULL, c->o.max);
                p = largest_peer(c);
        } else
                return;
        if (victim == new)
                rule = HTTP_CLOSED_REFUSED;
        c->closed[rule]++;
        tell_limit(c, p, rule);
        connection_close(c, victim);
}

/* ---- what happens to a connection ---- */

static HttpConnection *connection_new(HttpConnections *c, struct MHD_Connection *connection) {
        HttpConnection *x = calloc(1, sizeof *x);

        if (!x)
                return NULL;
        x->connection = connection;
        x->peer = peer_of(c, address_of(connection));
        if (!x->peer) {
                free(x);
                return NULL;
        }
        x->peer->all++;
        http_handshake_begin(&c->handshakes, &x->handshake, connection);
        list_add(c, x, HTTP_CONNECTION_FRESH);
        make_room(c, x);
        return x;
}

static void connection_free(HttpConnections *c, HttpConnection *x) {
        http_handshake_end(&x->handshake);
        if (!x->closing)
                list_remove(c, x);
        peer_release(c, x->peer);
        free(x);
}

void http_connections_notify(void *userdata, struct MHD_Connection *connection, void **context,
                             enum MHD_ConnectionNotificationCode code) {
        HttpConnections *c = userdata;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                *context = connection_new(c, connection);
                if (!*context)
                        cut_socket(connection);
        } else if (*context) {
                connection_free(c, *context);
                *context = NULL;
        }
}

void http_connections_set(HttpConnections *c, struct MHD_Connection *connection, HttpConnectionState state) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        HttpConnection *x = info ? info->socket_context : NULL;

        if (!x || x->closing || (x->state == HTTP_CONNECTION_FRESH && state != HTTP_CONNECTION_BUSY))
                return;
        list_remove(c, x);
        list_add(c, x, state);
}

/* ---- time ---- */

/* Closes connections that are too long in this state. An idle one with bytes to read is about to
 * have a request, and stays. */
static void close_overdue(HttpConnections *c, HttpConnectionState state, usec_t now) {
        HttpConnection *x;

        while ((x = c->lists[state].first) && x->since + patience_in(c, state) <= now) {
                if (state == HTTP_CONNECTION_IDLE && has_unread(x)) {
                        list_remove(c, x);
                        list_add(c, x, state);
                        continue;
                }
                if (state != HTTP_CONNECTION_IDLE)
                        c->closed[HTTP_CLOSED_LATE]++;
                connection_close(c, x);
        }
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        usec_t now = clock_monotonic_usec();
        HttpConnections *c = userdata;

        c->armed = 0;
        for (int i = 0; i < HTTP_CONNECTION_STATES_; i++) {
                HttpConnectionState state = (HttpConnectionState) i;

                if (patience_in(c, state) > 0)
                        close_overdue(c, state, now);
                arm_timer(c, state);
        }
        return 0;
}

void http_connections_drain(HttpConnections *c, bool drain) {
        c->draining = drain;
        arm_timer(c, HTTP_CONNECTION_IDLE);
}

void http_connections_resume(HttpConnections *c) {
        for (HttpConnection *x = c->lists[HTTP_CONNECTION_FRESH].first; x; x = x->next)
                http_handshake_end(&x->handshake);
}

int http_connections_join(HttpConnections *c, sd_event *event, void (*wake)(void *userdata), void *userdata) {
        int r = sd_event_add_time_relative(event, &c->source, CLOCK_MONOTONIC, 0, USEC_PER_SEC / 10,
                                           on_deadline, c);

        c->handshakes = (HttpHandshakes){.event = event, .wake = wake, .userdata = userdata};
        return r < 0 ? r : 0;
}

void http_connections_done(HttpConnections *c) {
        c->source = sd_event_source_disable_unref(c->source);
}
