/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which key of ours an unknown one was probably meant to be. A key counts as misspelt when it has
 * the prefix of a name in wire/annotation.h (aliquot.dev/, ack.node.gpu., aliyun.com/) and differs
 * from it in few letters. All others are left alone: they may belong to another program. */

#include "base/str.h"

/* The number of letters that differ; 0 where `name` begins with `key`. KEY_TYPO_NONE: the prefix is
 * another, or too many letters differ, or the key has too few letters to tell. */
enum { KEY_TYPO_NONE = STR_MISSPELLING_MAX };
unsigned key_typo_distance(Str key, const char *name);
