/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a plain YAML scalar means, as kubectl decides it (sigs.k8s.io/yaml, a YAML 1.1 reader):
 * manifests with `yes`, `0644` or `1_000` must not mean something else here. Timestamps stay
 * strings, as in kubectl. */

#include "base/arena.h"
#include "base/str.h"

enum {
        YAML_SCALAR_E_NOT_JSON = 1, /* .nan and .inf */
        YAML_SCALAR_E_RANGE,        /* hexadecimal, octal or binary beyond 64 bits */
};

typedef enum YamlScalarType {
        YAML_SCALAR_STRING,
        YAML_SCALAR_NULL,
        YAML_SCALAR_BOOL,
        YAML_SCALAR_INT,
        YAML_SCALAR_FLOAT,
} YamlScalarType;

typedef struct YamlScalar {
        YamlScalarType type;
        /* A string as given, otherwise the value's JSON form ("0644" is 420). Static or in the
         * arena. */
        Str text;
} YamlScalar;

/* Returns 0, YAML_SCALAR_E_NOT_JSON, YAML_SCALAR_E_RANGE or -ENOMEM. */
int yaml_scalar_resolve(Str plain, Arena *arena, YamlScalar *ret);
