/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes certificates and reads them: ECDSA P-256 and SHA-256, random serials of 127 bits. The time
 * is an argument, in seconds since 1970. A new certificate is valid from CERTIFICATE_SKEW_SEC
 * before it, because clocks in a cluster differ. No I/O. */

#include <stdint.h>

#include "base/buf.h"
#include "base/fault.h"

typedef struct CertificatePair {
        char *cert, *key; /* PEM, owned */
} CertificatePair;

#define CERTIFICATE_PAIR_NULL ((CertificatePair){NULL, NULL})
void certificate_pair_done(CertificatePair *p); /* wipes the key */
#define _cleanup_pair_ _cleanup_(certificate_pair_done)

enum {
        CERTIFICATE_E_MALFORMED = 1,
        CERTIFICATE_SKEW_SEC = 3600,
        CERTIFICATE_MAX = 64 << 10, /* bytes; a longer text is malformed */
};

typedef struct CertificateRequest {
        const char *name;         /* CN; for a CA a part of its serial is appended */
        const char *const *names; /* DNS names, NULL-terminated; NULL: a CA */
        int64_t now, life;        /* seconds: since 1970, and the length of its life */
} CertificateRequest;

/* Makes a key and its certificate. issuer: signs it; NULL for a CA, which signs itself. Returns 0;
 * CERTIFICATE_E_MALFORMED when the issuer is no certificate with its key; -ENOMEM; or -EIO when
 * GnuTLS fails. On errors fault says what. */
int certificate_make(const CertificateRequest *request, const CertificatePair *issuer, CertificatePair *ret,
                     Fault *fault);

/* In seconds since 1970. */
typedef struct CertificateLife {
        int64_t not_before, not_after;
} CertificateLife;

/* These read the first certificate of the text. For NULL and malformed texts they return false.
 * certificate_belongs(): whether the key is that of the certificate. */
bool certificate_life(const char *cert, CertificateLife *ret);
bool certificate_belongs(const char *cert, const char *key);
bool certificate_is_for(const char *cert, const char *const *names); /* each of them */
/* Whether the first certificate of `issuer` may issue and has signed this one, whatever the
 * time. */
bool certificate_is_signed_by(const char *cert, const char *issuer);

/* Appends those certificates of the text that are valid beyond `now` and not in *out yet, as long
 * as *out has fewer than `max`. */
void certificate_bundle_add(Buf *out, const char *certs, int64_t now, unsigned max);
