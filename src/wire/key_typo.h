/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which key of ours an unknown one was probably meant to be. A key that begins as names of ours
 * alone do (aliquot.dev/, ack.node.gpu., CGPU_ and others) may differ in few letters behind that. A
 * key that begins as a name of another system that we read may differ in one letter, which is not
 * the first. The domain may differ by two letters at most, where nothing else differs. All other
 * keys are left alone: they may belong to another program. */

#include "base/fault.h"
#include "base/str.h"

/* The number of letters that differ; 0 where `name` begins with `key`. KEY_TYPO_NONE: the key is
 * not misspelt in these ways, or has too few letters to tell. */
enum { KEY_TYPO_NONE = STR_MISSPELLING_MAX };
unsigned key_typo_distance(Str key, const char *name);

/* Sets the sentence about it. kind, kind_meant: "label", "annotation" and so on. */
void key_typo_complain(const char *kind, Str key, const char *kind_meant, const char *meant, Fault *ret);
