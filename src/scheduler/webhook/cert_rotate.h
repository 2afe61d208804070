/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the Secret with our certificates, and follows what others make of it. Whoever finds none
 * makes one (the API server lets one of them win, and the others read his); renewing, and changing
 * the CA, is the leader's. The Secret may be made beforehand without data, so that nobody needs the
 * right to create Secrets. When somebody empties or deletes it, what is served now is written
 * back. */

#include "kube/client.h"
#include "scheduler/webhook/keyring.h"

typedef struct CertRotate CertRotate;

typedef struct CertRotateOptions {
        KubeClient *client; /* these outlive the keeper */
        const char *namespace_, *secret;
        const char *const *names; /* what the certificate is for */

        bool (*bundle_is_known)(void *userdata); /* the announced CAs stand wherever the API servers look */
        void (*on_keyring)(void *userdata,
                           const Keyring *k);              /* one that can be served, whenever it changes */
        void (*on_news)(void *userdata, const char *what); /* something was written */
        void (*on_trouble)(void *userdata, const Fault *fault);
        void *userdata;
} CertRotateOptions;

/* 0 or -ENOMEM; nothing is called before this returns. */
int cert_rotate_new(const CertRotateOptions *options, CertRotate **ret);
CertRotate *cert_rotate_free(CertRotate *k); /* before its client */
void cert_rotate_set_leading(CertRotate *k, bool leading);

DEFINE_CLEANUP(CertRotate *, cert_rotate_free)
