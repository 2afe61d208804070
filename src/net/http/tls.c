/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/tls.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <string.h>

#include "base/str.h"

static gnutls_datum_t datum_of(const char *text) {
        return (gnutls_datum_t){(unsigned char *) (uintptr_t) text, (unsigned) strlen(text)};
}

static void credentials_free(gnutls_certificate_credentials_t *c) {
        if (*c)
                gnutls_certificate_free_credentials(*c);
}

static int copy_chain(const char *cert, gnutls_pcert_st **ret, unsigned *ret_n) {
        gnutls_pcert_st *chain = gnutls_calloc(TLS_CHAIN_MAX, sizeof *chain);
        gnutls_datum_t datum = datum_of(cert);
        unsigned n = TLS_CHAIN_MAX;

        if (!chain)
                return -1;
        if (gnutls_pcert_list_import_x509_raw(chain, &n, &datum, GNUTLS_X509_FMT_PEM,
                                              GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED) < 0) {
                gnutls_free(chain);
                return -1;
        }
        *ret = chain;
        *ret_n = n;
        return 0;
}

static bool chain_is_short(const char *cert) {
        gnutls_pcert_st *chain;
        unsigned n;

        if (copy_chain(cert, &chain, &n) < 0)
                return false;
        for (unsigned i = 0; i < n; i++)
                gnutls_pcert_deinit(&chain[i]);
        gnutls_free(chain);
        return true;
}

/* Whether chain and key fit: GnuTLS takes both only when the key matches the first certificate. */
static int check(const char *cert, const char *key, Fault *fault) {
        _cleanup_(credentials_free) gnutls_certificate_credentials_t credentials = NULL;
        gnutls_datum_t cert_datum = datum_of(cert), key_datum = datum_of(key);
        int r;

        if (gnutls_certificate_allocate_credentials(&credentials) < 0)
                return -ENOMEM;
        r = gnutls_certificate_set_x509_key_mem(credentials, &cert_datum, &key_datum, GNUTLS_X509_FMT_PEM);
        if (r == GNUTLS_E_MEMORY_ERROR)
                return -ENOMEM;
        if (r < 0)
                return fault_set(fault, TLS_E_CERTIFICATE,
                                 "certificate and key must be PEM and belong together: %s",
                                 gnutls_strerror(r));
        if (!chain_is_short(cert))
                return fault_set(fault, TLS_E_CERTIFICATE, "a chain may have %d certificates at most",
                                 (int) TLS_CHAIN_MAX);
        return 0;
}

int tls_pair_set(TlsPair *p, const char *cert, const char *key, Fault *fault) {
        TlsPair fresh = {NULL, NULL};
        int r = check(cert, key, fault);

        if (r != 0)
                return r;
        fresh.cert = str_dup(str_from(cert));
        fresh.key = str_dup(str_from(key));
        if (!fresh.cert || !fresh.key) {
                tls_pair_done(&fresh);
                return -ENOMEM;
        }
        tls_pair_done(p);
        *p = fresh;
        return 0;
}

void tls_pair_done(TlsPair *p) {
        free(p->cert);
        if (p->key)
                explicit_bzero(p->key, strlen(p->key));
        free(p->key);
        *p = (TlsPair){NULL, NULL};
}

static int copy_key(const char *key, gnutls_privkey_t *ret) {
        gnutls_datum_t datum = datum_of(key);
        gnutls_privkey_t copy;

        if (gnutls_privkey_init(&copy) < 0)
                return -1;
        if (gnutls_privkey_import_x509_raw(copy, &datum, GNUTLS_X509_FMT_PEM, NULL, 0) < 0) {
                gnutls_privkey_deinit(copy);
                return -1;
        }
        *ret = copy;
        return 0;
}

int tls_pair_retrieve(const TlsPair *p, gnutls_pcert_st **ret, unsigned *ret_n, gnutls_privkey_t *ret_key,
                      unsigned *ret_flags) {
        gnutls_privkey_t key;

        if (!p->cert || copy_key(p->key, &key) < 0)
                return -1;
        if (copy_chain(p->cert, ret, ret_n) < 0) {
                gnutls_privkey_deinit(key);
                return -1;
        }
        *ret_key = key;
        *ret_flags = GNUTLS_CERT_RETR_DEINIT_ALL;
        return 0;
}
