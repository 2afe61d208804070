/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mode and the memory unit of this node: what is in force, and what is asked for. Slices are
 * counted in both, so neither changes while slices are held (CONTRACT sections 1 and 7). They are
 * kept on disk, because a restart of the agent must not change them either. Pure but for the two
 * functions that read and write the text. */

#include "base/buf.h"
#include "base/fault.h"
#include "share/memory_unit.h"
#include "share/mode.h"

typedef struct Terms {
        ShareMode mode; /* in force */
        MemoryUnit unit;
        ShareMode wanted_mode;
        MemoryUnit wanted_unit;
        bool users_unit; /* the annotation aliquot.dev/gpu-mem-unit was written by a user, not by this agent */
        char said_unit[24]; /* what this agent wrote into it */
        bool offered; /* the unit in force was good for all cards, so slices may have been given in it */
        bool place_while_changing; /* the switches of the node: ANNOTATION_PLACE_WHILE_CHANGING, */
        bool drain;                /* ANNOTATION_UNIT_CHANGE */
} Terms;

void terms_init(Terms *t, MemoryUnit unit);

/* What the node object asks for now. label: of LABEL_SCHEDULE; empty or not in CONTRACT section 1:
 * the mode in force is wanted. unit: of ANNOTATION_UNIT; a text that is not this agent's own goes
 * before `configured`, and one that is malformed asks for the unit in force. The switches are
 * copied. */
typedef struct TermsWish {
        Str label, unit;
        MemoryUnit configured;
        bool place_while_changing, drain;
} TermsWish;
void terms_want(Terms *t, const TermsWish *wish);

bool terms_pending(const Terms *t); /* something is wanted that is not in force */
/* Brings into force what is wanted, unless slices are held. Returns true when something changed. */
bool terms_settle(Terms *t, bool slices_are_held);

/* The text of ANNOTATION_CHANGE_PENDING: the changes that wait and stop new slices. Appends nothing
 * where there are none. */
void terms_write_stopping(const Terms *t, Buf *out);

void terms_write(const Terms *t, Buf *out);
enum { TERMS_E_MALFORMED = 2 };
int terms_read(Str json, Terms *ret, Fault *fault); /* 0, TERMS_E_MALFORMED, -ENOMEM */
