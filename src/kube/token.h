/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bearer token: fixed, or from a file that the kubelet rotates. Read again after a minute, and at once when the
 * API server refused it. The text is never logged. */

#include "base/clock.h"

typedef struct KubeToken {
        const char *fixed, *file; /* the configuration's */
        char *text;               /* as read from the file */
        usec_t read_at;
} KubeToken;

void kube_token_init(KubeToken *t, const char *fixed, const char *file);
void kube_token_done(KubeToken *t);
const char *kube_token_get(KubeToken *t, usec_t now); /* NULL: no token */
void kube_token_forget(KubeToken *t);
