/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the API server takes as keys and values of labels, and as keys of annotations
 * (k8s.io/apimachinery/pkg/util/validation: IsQualifiedName, IsValidLabelValue). */

#include "base/str.h"

/* The ends of sentences that tell people the rule. */
#define LABEL_SYNTAX_KEY_RULE                                                                                \
        "must be 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends, and may "    \
        "begin with a DNS name and a slash"
#define LABEL_SYNTAX_VALUE_RULE                                                                              \
        "must be empty or 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"

bool label_syntax_is_key(Str key);

/* As a label key, but with capital letters in the prefix, too: the API server lowers annotation
 * keys before it checks them. */
bool label_syntax_is_annotation_key(Str key);
bool label_syntax_is_value(Str value);
