/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An environment that is being put together: later values of a name replace earlier ones, in their
 * place. */

#include "base/buf.h"
#include "base/str.h"

typedef struct Variables {
        char **items; /* "NAME=VALUE", NULL behind the last: what execve() takes; NULL while there are none */
        size_t n, capacity;
} Variables;

#define VARIABLES_NULL ((Variables){0})

bool variables_push(Variables *v, char *item);        /* takes the item, as it is; freed on failure as well */
int variables_set(Variables *v, Str name, Str value); /* 0 or -ENOMEM */
const char *variables_get(const Variables *v, Str name);
void variables_done(Variables *v);

/* Kubernetes' expansion (third_party/forked/golang/expansion): $(NAME) is the value of a variable
 * that is known, else it stays as it stands; $$ is one dollar. */
void variables_expand(const Variables *v, Str text, Buf *out);

#define _cleanup_variables_ _cleanup_(variables_done)
