/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The certificate of a server that can be changed while it serves. GnuTLS asks for it at each
 * handshake and gets a copy of its own, so that one which is replaced in the middle of somebody's
 * handshake dies with that handshake. */

#include <gnutls/abstract.h>

#include "base/fault.h"

typedef struct TlsPair {
        char *cert, *key; /* PEM; both NULL until one is set */
} TlsPair;

enum {
        TLS_E_CERTIFICATE = 1,
        TLS_CHAIN_MAX = 8, /* certificates in one chain */
};

/* Takes copies, after a look: the chain and the key are PEM and belong together. 0,
 * TLS_E_CERTIFICATE with a fault and the pair as it was, or -ENOMEM. */
int tls_pair_set(TlsPair *p, const char *cert, const char *key, Fault *fault);
void tls_pair_done(TlsPair *p);

/* For gnutls_certificate_set_retrieve_function3(): a copy that the session frees. 0, or -1, which
 * ends the handshake. */
int tls_pair_retrieve(const TlsPair *p, gnutls_pcert_st **ret, unsigned *ret_n, gnutls_privkey_t *ret_key,
                      unsigned *ret_flags);
