/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The certificate of a server, which can be replaced while it serves. GnuTLS takes a copy for each
 * handshake, so a handshake keeps its certificate when the pair is replaced. */

#include <gnutls/abstract.h>

#include "base/fault.h"

typedef struct TlsPair {
        char *cert, *key; /* PEM; both NULL until one is set */
} TlsPair;

enum {
        TLS_E_CERTIFICATE = 1,
        TLS_CHAIN_MAX = 8, /* certificates in one chain */
};

/* Checks that chain and key are PEM and match, and copies them. Returns 0, -ENOMEM, or
 * TLS_E_CERTIFICATE with a fault; the pair is then unchanged. */
int tls_pair_set(TlsPair *p, const char *cert, const char *key, Fault *fault);
void tls_pair_done(TlsPair *p);

/* For gnutls_certificate_set_retrieve_function3(): gives the session a copy, which it frees.
 * Returns 0, or -1, which ends the handshake. */
int tls_pair_retrieve(const TlsPair *p, gnutls_pcert_st **ret, unsigned *ret_n, gnutls_privkey_t *ret_key,
                      unsigned *ret_flags);
