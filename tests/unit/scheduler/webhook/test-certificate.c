/* SPDX-License-Identifier: Apache-2.0 */

/* Certificates are made, parsed and verified by GnuTLS, as a client does it. */

#include "scheduler/webhook/certificate.h"

#include "verify.h"

#define NOW INT64_C(1800000000)
#define DAY INT64_C(86400)

static const char *const names[] = {"hook.ns.svc", "hook.ns.svc.cluster.local", "hook.ns", NULL};
static const char *const other_names[] = {"other.ns.svc", NULL};

static void make(const char *const *for_names, const CertificatePair *issuer, CertificatePair *ret) {
        CertificateRequest request = {
                .name = "unit", .names = for_names, .now = NOW, .life = for_names ? 90 * DAY : 3650 * DAY};
        Fault fault = FAULT_NULL;

        if (certificate_make(&request, issuer, ret, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
}

static gnutls_x509_crt_t parse(const char *text) {
        gnutls_datum_t datum = verify_datum(text);
        gnutls_x509_crt_t crt;

        ASSERT_OK(gnutls_x509_crt_init(&crt));
        ASSERT_OK(gnutls_x509_crt_import(crt, &datum, GNUTLS_X509_FMT_PEM));
        return crt;
}

static void is_what_was_ordered(void) {
        _cleanup_pair_ CertificatePair ca = CERTIFICATE_PAIR_NULL, server = CERTIFICATE_PAIR_NULL;
        unsigned char serial[32], other[32];
        size_t n = sizeof serial, m = sizeof other;
        gnutls_x509_crt_t a, b;
        unsigned critical, usage, bits;
        char text[128];
        size_t size;

        make(NULL, NULL, &ca);
        make(names, &ca, &server);
        a = parse(ca.cert);
        b = parse(server.cert);
        ASSERT_INT(gnutls_x509_crt_get_version(b), 3);
        ASSERT_INT(gnutls_x509_crt_get_pk_algorithm(b, &bits), GNUTLS_PK_ECDSA);
        ASSERT_INT(bits, 256);
        ASSERT_INT(gnutls_x509_crt_get_signature_algorithm(b), GNUTLS_SIGN_ECDSA_SHA256);
        ASSERT_INT(gnutls_x509_crt_get_activation_time(b), NOW - 3600);
        ASSERT_INT(gnutls_x509_crt_get_expiration_time(b), NOW + 90 * DAY);
        for (unsigned i = 0; names[i]; i++) {
                size = sizeof text;
                ASSERT_INT(gnutls_x509_crt_get_subject_alt_name(b, i, text, &size, NULL), GNUTLS_SAN_DNSNAME);
                ASSERT_TEXT(text, names[i]);
        }
        size = sizeof text;
        ASSERT_INT(gnutls_x509_crt_get_subject_alt_name(b, 3, text, &size, NULL),
                   GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE);
        ASSERT_INT(gnutls_x509_crt_get_ca_status(a, &critical), 1);
        ASSERT_INT(gnutls_x509_crt_get_ca_status(b, &critical), 0);
        ASSERT_OK(gnutls_x509_crt_get_key_usage(a, &usage, &critical));
        ASSERT_INT(usage, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
        ASSERT_OK(gnutls_x509_crt_get_key_usage(b, &usage, &critical));
        ASSERT_INT(usage, GNUTLS_KEY_DIGITAL_SIGNATURE);
        ASSERT_OK(gnutls_x509_crt_get_serial(a, serial, &n));
        ASSERT_OK(gnutls_x509_crt_get_serial(b, other, &m));
        ASSERT_TRUE(n == 16 && m == 16 && memcmp(serial, other, 16) != 0);
        gnutls_x509_crt_deinit(a);
        gnutls_x509_crt_deinit(b);
}

static void verifies(void) {
        _cleanup_pair_ CertificatePair ca = CERTIFICATE_PAIR_NULL, other = CERTIFICATE_PAIR_NULL,
                                       server = CERTIFICATE_PAIR_NULL;

        make(NULL, NULL, &ca);
        make(NULL, NULL, &other);
        make(names, &ca, &server);
        for (size_t i = 0; names[i]; i++)
                ASSERT_INT(verify_server(server.cert, ca.cert, names[i], NOW), 0);
        ASSERT_TRUE(verify_server(server.cert, ca.cert, "hook.other.svc", NOW) &
                    GNUTLS_CERT_UNEXPECTED_OWNER);
        ASSERT_TRUE(verify_server(server.cert, other.cert, names[0], NOW) & GNUTLS_CERT_SIGNER_NOT_FOUND);
        /* Clocks differ. */
        ASSERT_INT(verify_server(server.cert, ca.cert, names[0], NOW - 3599), 0);
        ASSERT_TRUE(verify_server(server.cert, ca.cert, names[0], NOW - 3601) & GNUTLS_CERT_NOT_ACTIVATED);
        ASSERT_INT(verify_server(server.cert, ca.cert, names[0], NOW + 90 * DAY), 0);
        ASSERT_TRUE(verify_server(server.cert, ca.cert, names[0], NOW + 90 * DAY + 1) & GNUTLS_CERT_EXPIRED);
}

static void tells_what_it_sees(void) {
        _cleanup_pair_ CertificatePair ca = CERTIFICATE_PAIR_NULL, other = CERTIFICATE_PAIR_NULL,
                                       server = CERTIFICATE_PAIR_NULL;
        CertificateLife life;

        make(NULL, NULL, &ca);
        make(NULL, NULL, &other);
        make(names, &ca, &server);
        ASSERT_TRUE(certificate_life(server.cert, &life));
        ASSERT_INT(life.not_before, NOW - 3600);
        ASSERT_INT(life.not_after, NOW + 90 * DAY);
        ASSERT_TRUE(certificate_belongs(server.cert, server.key));
        ASSERT_FALSE(certificate_belongs(server.cert, ca.key));
        ASSERT_TRUE(certificate_is_for(server.cert, names));
        ASSERT_FALSE(certificate_is_for(server.cert, other_names));
        ASSERT_TRUE(certificate_is_signed_by(server.cert, ca.cert));
        ASSERT_FALSE(certificate_is_signed_by(server.cert, other.cert));
        ASSERT_FALSE(certificate_is_signed_by(server.cert, server.cert));
}

static void takes_no_rubbish(void) {
        static const char *const rubbish[] = {
                NULL, "", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                "-----BEGIN CERTIFICATE-----"};
        _cleanup_pair_ CertificatePair ca = CERTIFICATE_PAIR_NULL, made = CERTIFICATE_PAIR_NULL;
        _cleanup_buf_ Buf bundle = BUF_NULL;
        Fault fault = FAULT_NULL;
        CertificateLife life;

        make(NULL, NULL, &ca);
        for (size_t i = 0; i < ELEMENTSOF(rubbish); i++) {
                char *bad = (char *) (uintptr_t) rubbish[i];
                CertificatePair issuer = {bad, ca.key};
                CertificateRequest request = {.name = "x", .names = names, .now = NOW, .life = DAY};

                ASSERT_FALSE(certificate_life(bad, &life));
                ASSERT_FALSE(certificate_belongs(bad, ca.key));
                ASSERT_FALSE(certificate_belongs(ca.cert, bad));
                ASSERT_FALSE(certificate_is_for(bad, names));
                ASSERT_FALSE(certificate_is_signed_by(bad, ca.cert));
                ASSERT_FALSE(certificate_is_signed_by(ca.cert, bad));
                certificate_bundle_add(&bundle, bad, NOW, 4);
                ASSERT_INT(certificate_make(&request, &issuer, &made, &fault), CERTIFICATE_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, "the issuer must be");
                ASSERT_TRUE(!made.cert);
        }
        ASSERT_INT(bundle.len, 0);
}

static void bundles(void) {
        _cleanup_pair_ CertificatePair a = CERTIFICATE_PAIR_NULL, b = CERTIFICATE_PAIR_NULL,
                                       server = CERTIFICATE_PAIR_NULL;
        _cleanup_buf_ Buf bundle = BUF_NULL, text = BUF_NULL;

        make(NULL, NULL, &a);
        make(NULL, NULL, &b);
        make(names, &a, &server);
        buf_appendf(&text, "# a comment\n%s%s%s%s", a.cert, b.cert, a.cert, server.cert);
        certificate_bundle_add(&bundle, text.data, NOW, 4);
        buf_clear(&text);
        buf_appendf(&text, "%s%s%s", a.cert, b.cert, server.cert); /* each certificate once */
        ASSERT_STR(buf_str(&bundle), buf_str(&text));
        buf_clear(&bundle);
        certificate_bundle_add(&bundle, text.data, NOW, 2); /* no more than `max` */
        ASSERT_INT(verify_server(server.cert, bundle.data, names[0], NOW), 0);
        ASSERT_TRUE(!strstr(bundle.data, server.cert));
        buf_clear(&bundle);
        /* The server one has expired. */
        certificate_bundle_add(&bundle, text.data, NOW + 100 * DAY, 4);
        ASSERT_TRUE(strstr(bundle.data, a.cert) && !strstr(bundle.data, server.cert));
}

int main(void) {
        return TEST_MAIN(TEST(is_what_was_ordered), TEST(verifies), TEST(tells_what_it_sees),
                         TEST(takes_no_rubbish), TEST(bundles));
}
