/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the Secret of the webhook holds, and the next step with it. Pure, so that a test passes ten
 * years at once.
 *
 * A CA of ours, which lives ten years, signs the servers' certificate, which lives ninety days. The
 * caBundle names the CAs alone. The certificate is therefore renewed every sixty days without a
 * change of the bundle, and a replica that still serves the old one is trusted as well.
 *
 * A new CA comes in two steps. First it is announced: it stands in the bundle beside the old one
 * and signs nothing. It is adopted when the webhook configurations have carried that bundle for a
 * while. From then on it signs the next certificate, and the old CA stays in the bundle until it
 * expires. At each moment, every API server has been told of the CA behind what any replica
 * serves. */

#include "base/arena.h"
#include "scheduler/webhook/certificate.h"

/* One list: name here, name in the Secret's data. */
#define KEYRING_LIST(X)                                                                                      \
        X(AUTHORITIES, "ca.crt")   /* the CA that signs, then others that are trusted */                     \
        X(AUTHORITY_KEY, "ca.key") /* of the first of them */                                                \
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
        KEYRING_GOOD,   /* nothing */
        KEYRING_EMPTY,  /* make everything: nothing of ours is there */
        KEYRING_BROKEN, /* make everything: no CA can sign, or it is from the future */
        /* Renew the certificate: there is none, it is unfit, for other names or from the future, or
         * two thirds of its life are over. */
        KEYRING_RENEW,
} KeyringNeed;

/* names: what the certificate must be for. */
KeyringNeed keyring_need(const Keyring *k, const char *const *names, int64_t now);

/* Makes the keyring after that step. 0, or negative errno with a fault. */
int keyring_step(const Keyring *k, KeyringNeed need, const char *const *names, int64_t now, Keyring *ret,
                 Fault *fault);

/* Whether two thirds of the CA's life are over. */
bool keyring_authority_ages(const Keyring *k, int64_t now);

/* Whether there is a certificate to serve: with its key, and signed by the first CA. No API server
 * would trust another one. */
bool keyring_can_serve(const Keyring *k);

/* ---- the Secret ---- */

enum { KEYRING_E_MALFORMED = 1 };

/* Decodes the Secret. Texts that are no base64 or too long count as absent. 0, KEYRING_E_MALFORMED
 * or -ENOMEM; *ret_name and *ret_version are views of json or arena. */
int keyring_decode(Str json, Arena *arena, Keyring *ret, Str *ret_name, Str *ret_version, Fault *fault);

/* Appends {"data":{...}} as a merge patch: absent texts are null. With a name it is the whole
 * object, for a POST. */
void keyring_write(const Keyring *k, const char *namespace_, const char *name, Buf *out);
