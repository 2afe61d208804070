/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the webhook's Secret holds, and the next step to take with it. Pure, so that a test can pass
 * ten years.
 *
 * A CA of ours, which lives ten years, signs the servers' certificate, which lives ninety days. The
 * caBundle has the CAs alone. So the certificate is renewed every sixty days without a change of
 * the bundle, and a replica that still serves the old one stays trusted.
 *
 * A new CA is made when the old one cannot sign any more: its key was taken out of the Secret, or
 * it has expired. It signs a new certificate at once. The old CA stays in the bundle until it
 * expires, for replicas that still serve its certificate. */

#include "base/arena.h"
#include "scheduler/webhook/certificate.h"

/* Names in this file and in the Secret's data. */
#define KEYRING_LIST(X)                                                                                      \
        X(AUTHORITIES, "ca.crt")   /* the CA that signs, then others that are trusted */                     \
        X(AUTHORITY_KEY, "ca.key") /* of the first CA */                                                     \
        X(CERT, "tls.crt")                                                                                   \
        X(KEY, "tls.key")

enum {
#define X(name, key) KEYRING_##name,
        KEYRING_LIST(X)
#undef X
                KEYRING_TEXTS_,
        KEYRING_AUTHORITIES_MAX = 4,
};

typedef struct Keyring {
        char *texts[KEYRING_TEXTS_]; /* PEM, owned; NULL when absent */
} Keyring;

#define KEYRING_NULL ((Keyring){{NULL}})
void keyring_done(Keyring *k);
int keyring_copy(const Keyring *from, Keyring *ret); /* 0 or -ENOMEM */
#define _cleanup_keyring_ _cleanup_(keyring_done)

#define KEYRING_AUTHORITY_LIFE (INT64_C(3650) * 86400)
#define KEYRING_CERT_LIFE      (INT64_C(90) * 86400)

typedef enum KeyringNeed {
        KEYRING_GOOD,   /* nothing to do */
        KEYRING_EMPTY,  /* make a CA and a certificate: the Secret is empty */
        KEYRING_BROKEN, /* the same: the CA cannot sign, or is from the future */
        /* Make a certificate: it is missing, unusable, for other names or from the future, or two
         * thirds of its life are over. */
        KEYRING_RENEW,
} KeyringNeed;

/* What the keyring needs. names: DNS names that the certificate must have. now: seconds since
 * 1970. */
KeyringNeed keyring_need(const Keyring *k, const char *const *names, int64_t now);

/* Makes the keyring that results from this step. If the certificate would be unusable even then, a
 * new CA is made, too. Returns 0, or negative errno with a fault. */
int keyring_step(const Keyring *k, KeyringNeed need, const char *const *names, int64_t now, Keyring *ret,
                 Fault *fault);

/* Whether two thirds of the CA's life are over. */
bool keyring_authority_ages(const Keyring *k, int64_t now);

/* Whether it has a certificate with its key that the first CA has signed. API servers trust no
 * other one. */
bool keyring_can_serve(const Keyring *k);

/* ---- the Secret ---- */

enum { KEYRING_E_MALFORMED = 1 };

/* Decodes the Secret. Texts that are not base64 or too long count as absent. *ret_name and
 * *ret_version point into json or arena. Returns 0, KEYRING_E_MALFORMED with a fault, or
 * -ENOMEM. */
int keyring_decode(Str json, Arena *arena, Keyring *ret, Str *ret_name, Str *ret_version, Fault *fault);

/* Appends {"data":{...}} as a merge patch, with null for absent texts. With a name: the whole
 * object, for a POST. */
void keyring_write(const Keyring *k, const char *namespace_, const char *name, Buf *out);
