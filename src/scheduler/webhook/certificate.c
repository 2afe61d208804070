/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/certificate.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>

#include "base/str.h"

enum { SERIAL_SIZE = 16, KEY_ID_SIZE = 20, CN_MAX = 64 }; /* CN: ub-common-name of RFC 5280 */

#define PEM_BEGIN "-----BEGIN CERTIFICATE-----"
#define PEM_END   "-----END CERTIFICATE-----"

void certificate_pair_done(CertificatePair *p) {
        free(p->cert);
        if (p->key)
                explicit_bzero(p->key, strlen(p->key));
        free(p->key);
        *p = CERTIFICATE_PAIR_NULL;
}

static void crt_free(gnutls_x509_crt_t *c) {
        if (*c)
                gnutls_x509_crt_deinit(*c);
}

static void key_free(gnutls_x509_privkey_t *k) {
        if (*k)
                gnutls_x509_privkey_deinit(*k);
}

#define _cleanup_crt_ _cleanup_(crt_free)
#define _cleanup_key_ _cleanup_(key_free)

/* ---- reading ---- */

static bool datum_of(const char *text, gnutls_datum_t *ret) {
        size_t n = text ? strnlen(text, CERTIFICATE_MAX + 1) : 0;

        if (n == 0 || n > CERTIFICATE_MAX)
                return false;
        *ret = (gnutls_datum_t){(unsigned char *) (uintptr_t) text, (unsigned) n};
        return true;
}

static bool crt_read(const char *text, gnutls_x509_crt_t *ret) {
        gnutls_datum_t datum;

        return datum_of(text, &datum) && gnutls_x509_crt_init(ret) == 0 &&
               gnutls_x509_crt_import(*ret, &datum, GNUTLS_X509_FMT_PEM) == 0;
}

static bool key_read(const char *text, gnutls_x509_privkey_t *ret) {
        gnutls_datum_t datum;

        return datum_of(text, &datum) && gnutls_x509_privkey_init(ret) == 0 &&
               gnutls_x509_privkey_import2(*ret, &datum, GNUTLS_X509_FMT_PEM, NULL, 0) == 0;
}

bool certificate_life(const char *cert, CertificateLife *ret) {
        _cleanup_crt_ gnutls_x509_crt_t crt = NULL;
        time_t begin, end;

        if (!crt_read(cert, &crt))
                return false;
        begin = gnutls_x509_crt_get_activation_time(crt);
        end = gnutls_x509_crt_get_expiration_time(crt);
        if (begin == (time_t) -1 || end == (time_t) -1)
                return false;
        *ret = (CertificateLife){begin, end};
        return true;
}

static bool has_key(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key) {
        unsigned char a[KEY_ID_SIZE], b[KEY_ID_SIZE];
        size_t n = sizeof a, m = sizeof b;

        return gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA1, a, &n) == 0 &&
               gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA1, b, &m) == 0 && n == m &&
               memcmp(a, b, n) == 0;
}

bool certificate_belongs(const char *cert, const char *key) {
        _cleanup_crt_ gnutls_x509_crt_t crt = NULL;
        _cleanup_key_ gnutls_x509_privkey_t k = NULL;

        return crt_read(cert, &crt) && key_read(key, &k) && has_key(crt, k);
}

bool certificate_is_for(const char *cert, const char *const *names) {
        _cleanup_crt_ gnutls_x509_crt_t crt = NULL;

        if (!crt_read(cert, &crt))
                return false;
        for (; *names; names++)
                if (!gnutls_x509_crt_check_hostname2(crt, *names, GNUTLS_VERIFY_DO_NOT_ALLOW_WILDCARDS))
                        return false;
        return true;
}

bool certificate_is_signed_by(const char *cert, const char *issuer) {
        const unsigned flags = GNUTLS_VERIFY_DISABLE_TIME_CHECKS | GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS;
        _cleanup_crt_ gnutls_x509_crt_t crt = NULL, by = NULL;
        unsigned status;

        /* GnuTLS also trusts a certificate that is in the list of CAs itself. */
        return crt_read(cert, &crt) && crt_read(issuer, &by) && gnutls_x509_crt_get_ca_status(by, NULL) > 0 &&
               gnutls_x509_crt_verify(crt, &by, 1, flags, &status) == 0 && status == 0;
}

/* ---- bundles ---- */

static unsigned bundle_count(const Buf *b) {
        unsigned n = 0;

        for (const char *at = b->len > 0 ? b->data : NULL; at && (at = strstr(at, PEM_BEGIN)); at++)
                n++;
        return n;
}

/* Finds the next certificate in the text, and moves *at behind it. Returns false if there is
 * none. */
static bool next_pem(const char **at, Str *ret) {
        const char *begin = strstr(*at, PEM_BEGIN), *end;

        if (!begin)
                return false;
        end = strstr(begin, PEM_END);
        if (!end)
                return false;
        *at = end + strlen(PEM_END);
        *ret = (Str){begin, (size_t) (*at - begin)};
        return true;
}

void certificate_bundle_add(Buf *out, const char *certs, int64_t now, unsigned max) {
        const char *at = certs ? certs : "";
        Str pem;

        while (bundle_count(out) < max && next_pem(&at, &pem)) {
                _cleanup_free_ char *one = str_dup(pem);
                CertificateLife life;

                if (!one) {
                        out->broken = true;
                        return;
                }
                if (!certificate_life(one, &life) || life.not_after <= now)
                        continue;
                if (out->len > 0 && strstr(out->data, one))
                        continue;
                buf_append_str(out, pem);
                buf_append_char(out, '\n');
        }
}

/* ---- making ---- */

/* What certificate_make() works on. */
typedef struct Making {
        gnutls_x509_crt_t crt;
        gnutls_x509_privkey_t key;
        const CertificateRequest *request;
} Making;

static int say_error(Fault *fault, const char *what, int r) {
        return fault_set(fault, r == GNUTLS_E_MEMORY_ERROR ? -ENOMEM : -EIO, "cannot %s: %s", what,
                         gnutls_strerror(r));
}

static int make_key(gnutls_x509_privkey_t *ret) {
        int r = gnutls_x509_privkey_init(ret);

        return r < 0 ? r
                     : gnutls_x509_privkey_generate(*ret, GNUTLS_PK_ECDSA,
                                                    GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
}

static int set_names(const Making *m) {
        for (const char *const *name = m->request->names; *name; name++) {
                int r = gnutls_x509_crt_set_subject_alt_name(m->crt, GNUTLS_SAN_DNSNAME, *name,
                                                             (unsigned) strlen(*name), GNUTLS_FSAN_APPEND);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int set_use(const Making *m) {
        bool authority = !m->request->names;
        int r = gnutls_x509_crt_set_basic_constraints(m->crt, authority, authority ? 0 : -1);

        if (r >= 0)
                r = gnutls_x509_crt_set_key_usage(m->crt,
                                                  authority ? GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN
                                                            : GNUTLS_KEY_DIGITAL_SIGNATURE);
        if (r < 0 || authority)
                return r;
        r = gnutls_x509_crt_set_key_purpose_oid(m->crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
        return r < 0 ? r : set_names(m);
}

/* Sets serial and CN. A verifier looks an issuer up by its name, so an old and a new CA must differ
 * in it. */
static int set_identity(const Making *m) {
        unsigned char serial[SERIAL_SIZE];
        char name[CN_MAX + 1];
        int r = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial);

        if (r < 0)
                return r;
        serial[0] = (unsigned char) ((serial[0] & 0x7f) | 0x40); /* positive, and of full length */
        r = gnutls_x509_crt_set_serial(m->crt, serial, sizeof serial);
        if (r < 0)
                return r;
        if (m->request->names)
                (void) snprintf(name, sizeof name, "%s", m->request->name); /* a longer name is cut */
        else
                (void) snprintf(name, sizeof name, "%.40s %02x%02x%02x%02x", m->request->name, serial[1],
                                serial[2], serial[3], serial[4]);
        return gnutls_x509_crt_set_dn_by_oid(m->crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                             (unsigned) strlen(name));
}

static int set_key_ids(const Making *m, gnutls_x509_crt_t issuer) {
        unsigned char id[KEY_ID_SIZE];
        size_t n = sizeof id;
        int r = gnutls_x509_crt_get_key_id(m->crt, GNUTLS_KEYID_USE_SHA1, id, &n);

        if (r >= 0)
                r = gnutls_x509_crt_set_subject_key_id(m->crt, id, n);
        if (r < 0 || !issuer)
                return r;
        n = sizeof id;
        r = gnutls_x509_crt_get_key_id(issuer, GNUTLS_KEYID_USE_SHA1, id, &n);
        return r < 0 ? r : gnutls_x509_crt_set_authority_key_id(m->crt, id, n);
}

static int fill_certificate(const Making *m, gnutls_x509_crt_t issuer) {
        int64_t now = m->request->now;
        int r = gnutls_x509_crt_set_version(m->crt, 3);

        if (r >= 0)
                r = gnutls_x509_crt_set_activation_time(m->crt, now - CERTIFICATE_SKEW_SEC);
        if (r >= 0)
                r = gnutls_x509_crt_set_expiration_time(m->crt, now + m->request->life);
        if (r >= 0)
                r = gnutls_x509_crt_set_key(m->crt, m->key);
        if (r >= 0)
                r = set_identity(m);
        if (r >= 0)
                r = set_use(m);
        return r < 0 ? r : set_key_ids(m, issuer);
}

static int take_text(gnutls_datum_t *pem, char **ret) {
        *ret = str_dup((Str){(const char *) pem->data, pem->size});
        explicit_bzero(pem->data, pem->size);
        gnutls_free(pem->data);
        return *ret ? 0 : GNUTLS_E_MEMORY_ERROR;
}

static int export_pair(const Making *m, CertificatePair *ret) {
        gnutls_datum_t pem;
        int r = gnutls_x509_crt_export2(m->crt, GNUTLS_X509_FMT_PEM, &pem);

        if (r >= 0)
                r = take_text(&pem, &ret->cert);
        if (r >= 0)
                r = gnutls_x509_privkey_export2_pkcs8(m->key, GNUTLS_X509_FMT_PEM, NULL, 0, &pem);
        return r < 0 ? r : take_text(&pem, &ret->key);
}

int certificate_make(const CertificateRequest *request, const CertificatePair *issuer, CertificatePair *ret,
                     Fault *fault) {
        _cleanup_pair_ CertificatePair made = CERTIFICATE_PAIR_NULL;
        _cleanup_crt_ gnutls_x509_crt_t crt = NULL, by = NULL;
        _cleanup_key_ gnutls_x509_privkey_t key = NULL, by_key = NULL;
        Making m;
        int r;

        if (issuer &&
            (!crt_read(issuer->cert, &by) || !key_read(issuer->key, &by_key) || !has_key(by, by_key)))
                return fault_set(fault, CERTIFICATE_E_MALFORMED,
                                 "the issuer must be a certificate and its key, in PEM form");
        r = make_key(&key);
        if (r >= 0)
                r = gnutls_x509_crt_init(&crt);
        if (r < 0)
                return say_error(fault, "make a key", r);
        m = (Making){crt, key, request};
        r = fill_certificate(&m, by);
        if (r >= 0)
                r = gnutls_x509_crt_sign2(crt, by ? by : crt, by_key ? by_key : key, GNUTLS_DIG_SHA256, 0);
        if (r >= 0)
                r = export_pair(&m, &made);
        if (r < 0)
                return say_error(fault, "make a certificate", r);
        *ret = made;
        made = CERTIFICATE_PAIR_NULL;
        return 0;
}
