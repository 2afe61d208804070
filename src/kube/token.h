/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bearer token: fixed, or from a file that the kubelet rotates. The file is read again after a
 * minute and after a 401. While it cannot be read, or its content does not fit into a header, the
 * last token stays in use. */

#include <stdbool.h>

#include "base/clock.h"

typedef struct KubeToken {
        const char *fixed, *file; /* the configuration's; either may be NULL */
        char *text;               /* the token as last read from the file */
        usec_t read_at;
} KubeToken;

void kube_token_init(KubeToken *t, const char *fixed, const char *file);
void kube_token_done(KubeToken *t);
const char *kube_token_get(KubeToken *t, usec_t now); /* NULL: no token */

/* The server refused the token: reads the file now. Returns true when the file has
 * another token. */
bool kube_token_renew(KubeToken *t, usec_t now);
