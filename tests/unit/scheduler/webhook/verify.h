/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Verifies a certificate as an API server does: GnuTLS with the CAs, the name and the time. */

#include <gnutls/x509.h>

#include "test.h"

static time_t verify_now;

static inline time_t verify_clock(time_t *ret) {
        if (ret)
                *ret = verify_now;
        return verify_now;
}

static inline gnutls_datum_t verify_datum(const char *text) {
        return (gnutls_datum_t){(unsigned char *) (uintptr_t) text, (unsigned) strlen(text)};
}

/* 0, or the reasons of GnuTLS. */
static inline unsigned verify_server(const char *cert, const char *authorities, const char *name,
                                     int64_t now) {
        gnutls_datum_t cas = verify_datum(authorities), text = verify_datum(cert);
        gnutls_typed_vdata_st vdata[] = {
                {GNUTLS_DT_DNS_HOSTNAME, (unsigned char *) (uintptr_t) name, 0},
                {GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *) (uintptr_t) GNUTLS_KP_TLS_WWW_SERVER, 0}};
        gnutls_x509_trust_list_t list;
        gnutls_x509_crt_t crt;
        unsigned status;

        verify_now = (time_t) now;
        gnutls_global_set_time_function(verify_clock);
        ASSERT_OK(gnutls_x509_trust_list_init(&list, 0));
        ASSERT_TRUE(gnutls_x509_trust_list_add_trust_mem(list, &cas, NULL, GNUTLS_X509_FMT_PEM, 0, 0) > 0);
        ASSERT_OK(gnutls_x509_crt_init(&crt));
        ASSERT_OK(gnutls_x509_crt_import(crt, &text, GNUTLS_X509_FMT_PEM));
        ASSERT_OK(gnutls_x509_trust_list_verify_crt2(list, &crt, 1, vdata, 2,
                                                     GNUTLS_VERIFY_DO_NOT_ALLOW_WILDCARDS, &status, NULL));
        gnutls_x509_crt_deinit(crt);
        gnutls_x509_trust_list_deinit(list, 1);
        gnutls_global_set_time_function(time);
        return status;
}
