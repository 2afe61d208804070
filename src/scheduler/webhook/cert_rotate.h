/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the Secret with the webhook's certificates, and follows changes of it. A replica that finds
 * no keyring in it makes one. When several do, the API server accepts one of them, and the others
 * read that one. Only the leader renews the certificate. The CA stays for its life, unless its key
 * is taken out of the Secret; then the leader makes another one.
 *
 * The Secret may be created beforehand without data, so that no replica needs the right to create
 * Secrets. When it is emptied or deleted, the replicas write back what they serve. */

#include "kube/client.h"
#include "scheduler/webhook/keyring.h"

typedef struct CertRotate CertRotate;

typedef struct CertRotateOptions {
        KubeClient *client; /* these outlive the rotation */
        const char *namespace_, *secret;
        const char *const *names; /* what the certificate is for */

        /* The keyring to serve, each time it changes. */
        void (*on_keyring)(void *userdata, const Keyring *k);
        void (*on_news)(void *userdata, const char *what); /* something was written */
        /* Two thirds of the CA's life are over. Called once a day while this replica leads. */
        void (*on_ageing)(void *userdata);
        void (*on_trouble)(void *userdata, const Fault *fault);
        void *userdata;
} CertRotateOptions;

/* 0 or -ENOMEM; nothing is called before this returns. */
int cert_rotate_new(const CertRotateOptions *options, CertRotate **ret);
CertRotate *cert_rotate_free(CertRotate *k); /* before its client */
void cert_rotate_set_leading(CertRotate *k, bool leading);

DEFINE_CLEANUP(CertRotate *, cert_rotate_free)
