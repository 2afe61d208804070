/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mode and unit: what is in force, and what is wanted. Slices are counted in them, so that neither changes while slices are
 * held (CONTRACT sections 1 and 7); a restart of the agent in between must not change them either, so that they are kept on
 * disk. Pure but for the two functions that read and write the text. */

#include "base/buf.h"
#include "base/fault.h"
#include "share/mode.h"
#include "share/unit.h"

typedef struct Terms {
        ShareMode mode; /* in force */
        MemoryUnit unit;
        ShareMode wanted_mode;
        MemoryUnit wanted_unit;
        bool users_unit;    /* the node's annotation is the user's word, not ours */
        char said_unit[24]; /* what we wrote into it: anything else there is the user's */
} Terms;

void terms_init(Terms *t, MemoryUnit unit);

/* The label's and the annotation's texts, as the node has them now. No label: the mode stays. An annotation that is not
 * ours overrides `configured`; one that is malformed is TERMS_E_UNIT with a fault, and the unit in force is kept. */
enum { TERMS_E_UNIT = 1 };
int terms_want(Terms *t, Str label, Str unit_annotation, MemoryUnit configured, Fault *fault);

bool terms_pending(const Terms *t); /* wanted is not in force */
/* With the last slice gone: true when something changed. */
bool terms_settle(Terms *t, bool slices_are_held);

void terms_write(const Terms *t, Buf *out);
enum { TERMS_E_MALFORMED = 2 };
int terms_read(Str json, Terms *ret, Fault *fault); /* 0, TERMS_E_MALFORMED, -ENOMEM */
