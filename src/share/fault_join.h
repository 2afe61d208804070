/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/fault.h"

/* Appends another sentence to those of the fault, as "FIRST; SECOND"; nothing if `more` is empty.
 * fault may be NULL. */
static inline void fault_join(Fault *fault, const Fault *more) {
        Fault before;

        if (!fault || more->text[0] == '\0')
                return;
        before = *fault;
        (void) fault_set(fault, 0, "%s%s%s", before.text, before.text[0] ? "; " : "", more->text);
}
