/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the Secret with the webhook's certificates, and follows its changes. A replica that finds
 * no keyring in it makes one. If several do, the API server accepts one of them, and the others
 * read that one. Only the leader renews the certificate. The CA is kept for its life. When its key
 * is taken out of the Secret, the leader makes another CA.
 *
 * The Secret may be created in advance without data, so that no replica needs the right to create
 * Secrets. When it is emptied or deleted, a replica writes back what it serves. */

#include "kube/client.h"
#include "scheduler/webhook/keyring.h"

typedef struct CertRotate CertRotate;

typedef struct CertRotateOptions {
        KubeClient *client; /* these outlive the rotation */
        const char *namespace_, *secret;
        const char *const *names; /* DNS names that the certificate must have; NULL-terminated */

        /* Called with the keyring to serve whenever it changes. */
        void (*on_keyring)(void *userdata, const Keyring *k);
        void (*on_news)(void *userdata, const char *what); /* something was written */
        /* Two thirds of the CA's life are over. Called once a day while this replica leads. */
        void (*on_ageing)(void *userdata);
        void (*on_trouble)(void *userdata, const Fault *fault);
        void *userdata;
} CertRotateOptions;

/* Returns 0 or -ENOMEM; no callback is called before it returns. */
int cert_rotate_new(const CertRotateOptions *options, CertRotate **ret);
CertRotate *cert_rotate_free(CertRotate *k); /* before its client */
void cert_rotate_set_leading(CertRotate *k, bool leading);

DEFINE_CLEANUP(CertRotate *, cert_rotate_free)
