/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bearer token: fixed, or from a file that the kubelet rotates. The file is read again when a
 * minute has passed, and after a 401. A file that cannot be read, or holds nothing that fits into a
 * header, leaves the last token in use. */

#include <stdbool.h>

#include "base/clock.h"

typedef struct KubeToken {
        const char *fixed, *file; /* the configuration's; either may be NULL */
        char *text;               /* as read from the file */
        usec_t read_at;
} KubeToken;

void kube_token_init(KubeToken *t, const char *fixed, const char *file);
void kube_token_done(KubeToken *t);
const char *kube_token_get(KubeToken *t, usec_t now); /* NULL: no token */

/* The server refused this one: reads the file now. true when there is another one to try. */
bool kube_token_renew(KubeToken *t, usec_t now);
