/* SPDX-License-Identifier: Apache-2.0 */

/* The certificate changes for clients that are connected, are connecting, and connect later. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "net/http/http_server.h"
#include "net/http/reload.h"
#include "net/http/tls.h"
#include "test.h"

typedef struct Fixture {
        sd_event *event;
        HttpServer *server;
} Fixture;

typedef struct Client {
        int fd;
        gnutls_session_t session;
        gnutls_certificate_credentials_t credentials;
} Client;

static void handle(void *userdata, HttpExchange *x, const HttpRequest *r) {
        http_respond(x, 200, "text/plain", r->body);
}

static void fixture_begin(Fixture *f) {
        Fault fault = FAULT_NULL;

        *f = (Fixture){0};
        ASSERT_OK(sd_event_new(&f->event));
        ASSERT_OK(http_server_new(
                f->event, &(HttpServerOptions){.listen = "127.0.0.1:0", .max_body = 1000, .tls = true},
                handle, f, &f->server, &fault));
}

static void fixture_end(Fixture *f) {
        f->server = http_server_free(f->server);
        f->event = sd_event_unref(f->event);
}

/* A certificate that signs itself, for `name`. */
static void make_pair(const char *name, TlsPair *ret) {
        gnutls_x509_privkey_t key;
        gnutls_x509_crt_t crt;
        gnutls_datum_t pem;

        ASSERT_OK(gnutls_x509_privkey_init(&key));
        ASSERT_OK(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                               GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
        ASSERT_OK(gnutls_x509_crt_init(&crt));
        ASSERT_OK(gnutls_x509_crt_set_version(crt, 3));
        ASSERT_OK(gnutls_x509_crt_set_serial(crt, "\1", 1));
        ASSERT_OK(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                                (unsigned) strlen(name)));
        ASSERT_OK(gnutls_x509_crt_set_activation_time(crt, time(NULL) - 60));
        ASSERT_OK(gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 3600));
        ASSERT_OK(gnutls_x509_crt_set_key(crt, key));
        ASSERT_OK(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0));
        ASSERT_OK(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem));
        ret->cert = str_dup((Str){(char *) pem.data, pem.size});
        gnutls_free(pem.data);
        ASSERT_OK(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, 0, &pem));
        ret->key = str_dup((Str){(char *) pem.data, pem.size});
        gnutls_free(pem.data);
        gnutls_x509_crt_deinit(crt);
        gnutls_x509_privkey_deinit(key);
}

static void client_begin(const Fixture *f, Client *c) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(http_server_port(f->server))};

        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ASSERT_TRUE(c->fd >= 0);
        ASSERT_OK(connect(c->fd, (struct sockaddr *) &to, sizeof to));
        ASSERT_OK(fcntl(c->fd, F_SETFL, O_NONBLOCK));
        ASSERT_OK(gnutls_init(&c->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK));
        ASSERT_OK(gnutls_certificate_allocate_credentials(&c->credentials));
        ASSERT_OK(gnutls_set_default_priority(c->session));
        ASSERT_OK(gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, c->credentials));
        gnutls_transport_set_int(c->session, c->fd);
}

static void client_end(Client *c) {
        gnutls_deinit(c->session);
        gnutls_certificate_free_credentials(c->credentials);
        (void) close(c->fd);
}

/* Turns the loop until the handshake is over: 0, or what GnuTLS says. */
static int shake(Fixture *f, Client *c) {
        usec_t end = clock_monotonic_usec() + 100 * USEC_PER_SEC;
        int r;

        while ((r = gnutls_handshake(c->session)) == GNUTLS_E_AGAIN || r == GNUTLS_E_INTERRUPTED) {
                ASSERT_TRUE(clock_monotonic_usec() < end);
                ASSERT_TRUE(sd_event_run(f->event, 10000) >= 0);
        }
        return r;
}

static void assert_peer_is(const Client *c, const char *name) {
        unsigned n;
        const gnutls_datum_t *chain = gnutls_certificate_get_peers(c->session, &n);
        char found[64];
        size_t size = sizeof found;
        gnutls_x509_crt_t crt;

        ASSERT_TRUE(chain && n == 1);
        ASSERT_OK(gnutls_x509_crt_init(&crt));
        ASSERT_OK(gnutls_x509_crt_import(crt, chain, GNUTLS_X509_FMT_DER));
        ASSERT_OK(gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, found, &size));
        gnutls_x509_crt_deinit(crt);
        ASSERT_TEXT(found, name);
}

static void assert_serves(Fixture *f, Client *c) {
        static const char request[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
        usec_t end = clock_monotonic_usec() + 100 * USEC_PER_SEC;
        char got[4096] = "";
        size_t n = 0;

        ASSERT_INT(gnutls_record_send(c->session, request, sizeof request - 1), (ssize_t) sizeof request - 1);
        while (!strstr(got, "hello")) {
                ssize_t r = gnutls_record_recv(c->session, got + n, sizeof got - 1 - n);

                if (r > 0)
                        n += (size_t) r;
                else
                        ASSERT_INT(r, GNUTLS_E_AGAIN);
                got[n] = '\0';
                ASSERT_TRUE(clock_monotonic_usec() < end);
                ASSERT_TRUE(sd_event_run(f->event, 10000) >= 0);
        }
        ASSERT_CONTAINS(got, "200 OK");
}

static void new_connections_get_the_new_certificate(void) {
        TlsPair old = {0}, new = {0};
        Fixture f;
        Client before, amid, after;

        make_pair("old", &old);
        make_pair("new", &new);
        fixture_begin(&f);
        ASSERT_OK(http_server_set_certificate(f.server, old.cert, old.key, NULL));
        client_begin(&f, &before);
        ASSERT_OK(shake(&f, &before));
        assert_peer_is(&before, "old");

        /* in the middle of its handshake: the server has answered the hello */
        client_begin(&f, &amid);
        ASSERT_INT(gnutls_handshake(amid.session), GNUTLS_E_AGAIN);
        while (poll(&(struct pollfd){.fd = amid.fd, .events = POLLIN}, 1, 0) == 0)
                ASSERT_TRUE(sd_event_run(f.event, 10000) >= 0);
        ASSERT_OK(http_server_set_certificate(f.server, new.cert, new.key, NULL));
        ASSERT_OK(shake(&f, &amid));
        assert_peer_is(&amid, "old");

        client_begin(&f, &after);
        ASSERT_OK(shake(&f, &after));
        assert_peer_is(&after, "new");
        assert_serves(&f, &before);
        assert_serves(&f, &amid);
        assert_serves(&f, &after);
        client_end(&before);
        client_end(&amid);
        client_end(&after);
        fixture_end(&f);
        tls_pair_done(&old);
        tls_pair_done(&new);
}

static void refuses_what_does_not_belong_together(void) {
        _cleanup_buf_ Buf chain = BUF_NULL;
        TlsPair a = {0}, b = {0};
        Fault fault = FAULT_NULL;
        Fixture f;
        Client c;

        make_pair("a", &a);
        make_pair("b", &b);
        fixture_begin(&f);
        ASSERT_OK(http_server_set_certificate(f.server, a.cert, a.key, &fault));
        ASSERT_INT(http_server_set_certificate(f.server, b.cert, a.key, &fault), HTTP_E_CERTIFICATE);
        ASSERT_CONTAINS(fault.text, "must be PEM and belong together");
        ASSERT_INT(http_server_set_certificate(f.server, "", a.key, &fault), HTTP_E_CERTIFICATE);
        ASSERT_INT(http_server_set_certificate(f.server, a.cert, "rubbish", &fault), HTTP_E_CERTIFICATE);
        for (unsigned i = 1; i <= TLS_CHAIN_MAX + 1; i++) {
                buf_append_str(&chain, str_from(a.cert));
                ASSERT_INT(http_server_set_certificate(f.server, chain.data, a.key, &fault),
                           i <= TLS_CHAIN_MAX ? 0 : HTTP_E_CERTIFICATE);
        }
        ASSERT_CONTAINS(fault.text, "8 certificates at most");
        ASSERT_OK(http_server_set_certificate(f.server, a.cert, a.key, &fault));
        client_begin(&f, &c);
        ASSERT_OK(shake(&f, &c));
        assert_peer_is(&c, "a");
        client_end(&c);
        fixture_end(&f);
        tls_pair_done(&a);
        tls_pair_done(&b);
}

static void no_certificate_no_handshake(void) {
        TlsPair late = {0};
        Fixture f;
        Client c;

        fixture_begin(&f);
        client_begin(&f, &c);
        ASSERT_TRUE(shake(&f, &c) < 0);
        client_end(&c);
        make_pair("late", &late);
        ASSERT_OK(http_server_set_certificate(f.server, late.cert, late.key, NULL));
        client_begin(&f, &c);
        ASSERT_OK(shake(&f, &c));
        assert_serves(&f, &c);
        client_end(&c);
        fixture_end(&f);
        tls_pair_done(&late);
}

/* ---- certificates from files ---- */

typedef struct Said {
        unsigned news, troubles;
        Fault fault;
} Said;

static void on_news(void *userdata, const char *what) {
        ((Said *) userdata)->news++;
}

static void on_trouble(void *userdata, const Fault *fault) {
        Said *said = userdata;

        said->troubles++;
        said->fault = *fault;
}

static void write_file(const char *folder, const char *name, const char *text) {
        char path[128];
        FILE *f;

        (void) snprintf(path, sizeof path, "%s/%s", folder, name);
        f = fopen(path, "we");
        ASSERT_TRUE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void write_pair(const char *folder, const char *place, const TlsPair *pair) {
        char path[128];

        (void) snprintf(path, sizeof path, "%s/%s", folder, place);
        ASSERT_OK(mkdir(path, 0700));
        write_file(path, "crt", pair->cert);
        write_file(path, "key", pair->key);
}

/* As the kubelet does it: the files are links through `now`, which is replaced as a whole. */
static void point_at(const char *folder, const char *place) {
        char path[128], fresh[128];

        (void) snprintf(path, sizeof path, "%s/now", folder);
        (void) snprintf(fresh, sizeof fresh, "%s/fresh", folder);
        ASSERT_OK(symlink(place, fresh));
        ASSERT_OK(rename(fresh, path));
}

static void remove_all(const char *folder) {
        static const char *const within[] = {"1/crt", "1/key", "1", "2/crt", "2/key", "2", "now", ""};
        char path[128];

        for (size_t i = 0; i < ELEMENTSOF(within); i++) {
                (void) snprintf(path, sizeof path, "%s/%s", folder, within[i]);
                ASSERT_OK(remove(path));
        }
}

static void assert_server_is(Fixture *f, const char *name) {
        Client c;

        client_begin(f, &c);
        ASSERT_OK(shake(f, &c));
        assert_peer_is(&c, name);
        client_end(&c);
}

#define TURN_UNTIL(f, condition)                                                                             \
        do {                                                                                                 \
                usec_t end_ = clock_monotonic_usec() + 100 * USEC_PER_SEC;                                   \
                while (!(condition)) {                                                                       \
                        ASSERT_TRUE(clock_monotonic_usec() < end_);                                          \
                        ASSERT_TRUE(sd_event_run((f)->event, 100000) >= 0);                                  \
                }                                                                                            \
        } while (0)

static void follows_files(void) {
        char folder[] = "/tmp/aliquot-tls-XXXXXX", cert[64], key[64];
        TlsPair old = {0}, new = {0};
        HttpReload *reload = NULL;
        Fault fault = FAULT_NULL;
        Said said = {0};
        Fixture f;

        make_pair("old", &old);
        make_pair("new", &new);
        ASSERT_TRUE(mkdtemp(folder) != NULL);
        (void) snprintf(cert, sizeof cert, "%s/now/crt", folder);
        (void) snprintf(key, sizeof key, "%s/now/key", folder);
        write_pair(folder, "1", &old);
        write_pair(folder, "2", &new);
        point_at(folder, "1");
        fixture_begin(&f);
        {
                HttpReloadOptions options = {.server = f.server,
                                             .cert = cert,
                                             .key = key,
                                             .interval = 1000,
                                             .on_news = on_news,
                                             .on_trouble = on_trouble,
                                             .userdata = &said};

                options.key = cert;
                ASSERT_INT(http_reload_new(f.event, &options, &reload, &fault), HTTP_E_CERTIFICATE);
                ASSERT_CONTAINS(fault.text, cert);
                options.key = "/proc/self/absent";
                ASSERT_INT(http_reload_new(f.event, &options, &reload, &fault), -ENOENT);
                ASSERT_CONTAINS(fault.text, "cannot read /proc/self/absent");
                options.key = key;
                ASSERT_OK(http_reload_new(f.event, &options, &reload, &fault));
        }
        assert_server_is(&f, "old");
        point_at(folder, "2");
        TURN_UNTIL(&f, said.news == 1);
        assert_server_is(&f, "new");

        write_file(folder, "2/key", old.key); /* half of a renewal */
        TURN_UNTIL(&f, said.troubles == 1);
        ASSERT_CONTAINS(said.fault.text, "belong together");
        for (int i = 0; i < 20; i++)
                ASSERT_TRUE(sd_event_run(f.event, 10000) >= 0);
        ASSERT_INT(said.troubles, 1); /* said once */
        assert_server_is(&f, "new");
        write_file(folder, "2/crt", old.cert);
        TURN_UNTIL(&f, said.news == 2);
        assert_server_is(&f, "old");

        point_at(folder, "3"); /* which is not there */
        TURN_UNTIL(&f, said.troubles >= 2);
        assert_server_is(&f, "old");
        http_reload_free(reload);
        fixture_end(&f);
        tls_pair_done(&old);
        tls_pair_done(&new);
        remove_all(folder);
}

static void refuses_old_protocols(void) {
        TlsPair pair = {0};
        Fixture f;
        Client c;

        make_pair("x", &pair);
        fixture_begin(&f);
        ASSERT_OK(http_server_set_certificate(f.server, pair.cert, pair.key, NULL));
        client_begin(&f, &c);
        ASSERT_OK(gnutls_priority_set_direct(c.session, "NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0", NULL));
        ASSERT_TRUE(shake(&f, &c) < 0);
        client_end(&c);
        fixture_end(&f);
        tls_pair_done(&pair);
}

int main(void) {
        return TEST_MAIN(TEST(new_connections_get_the_new_certificate),
                         TEST(refuses_what_does_not_belong_together), TEST(no_certificate_no_handshake),
                         TEST(refuses_old_protocols), TEST(follows_files));
}
