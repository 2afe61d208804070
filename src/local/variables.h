/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An environment under construction: a later value of a name replaces the earlier one in
 * its place. */

#include "base/buf.h"
#include "base/str.h"

typedef struct Variables {
        /* "NAME=VALUE", NULL-terminated as execve() takes them; NULL while empty */
        char **items;
        size_t n, capacity;
} Variables;

#define VARIABLES_NULL ((Variables){0})

/* Appends an item, which it owns from now on, also on failure. False: out of memory */
bool variables_push(Variables *v, char *item);
int variables_set(Variables *v, Str name, Str value); /* 0 or -ENOMEM */
const char *variables_get(const Variables *v, Str name);
void variables_done(Variables *v);

/* Kubernetes' expansion (third_party/forked/golang/expansion): $(NAME) becomes the value of a known
 * variable, else it stays; $$ is one dollar. */
void variables_expand(const Variables *v, Str text, Buf *out);

#define _cleanup_variables_ _cleanup_(variables_done)
