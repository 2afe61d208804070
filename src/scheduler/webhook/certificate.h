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
void certificate_pair_done(CertificatePair *p); /* the key is wiped */
#define _cleanup_pair_ _cleanup_(certificate_pair_done)

enum {
        CERTIFICATE_E_MALFORMED = 1,
        CERTIFICATE_SKEW_SEC = 3600,
        CERTIFICATE_MAX = 64 << 10, /* a longer text is malformed */
};

typedef struct CertificateRequest {
        const char *name;         /* CN; for a CA, some of its serial makes it unique */
        const char *const *names; /* DNS names, NULL-terminated; NULL: a CA */
        int64_t now, life;        /* seconds */
} CertificateRequest;

/* issuer: NULL for a CA, which signs itself. 0, CERTIFICATE_E_MALFORMED when the issuer is no pair,
 * -ENOMEM, or -EIO when GnuTLS has no random numbers; fault says what. */
int certificate_make(const CertificateRequest *request, const CertificatePair *issuer, CertificatePair *ret,
                     Fault *fault);

typedef struct CertificateLife {
        int64_t not_before, not_after;
} CertificateLife;

/* These read the first certificate of the text. For NULL and malformed texts they return false. */
bool certificate_life(const char *cert, CertificateLife *ret);
bool certificate_belongs(const char *cert, const char *key);
bool certificate_is_for(const char *cert, const char *const *names); /* each of them */
/* Whether it is signed by the first certificate of `issuer`, and that one may issue. Time is not
 * looked at. */
bool certificate_is_signed_by(const char *cert, const char *issuer);

/* Appends the certificates of the text that have not expired at `now` and are not in *out yet,
 * while *out has fewer than `max`. */
void certificate_bundle_add(Buf *out, const char *certs, int64_t now, unsigned max);
