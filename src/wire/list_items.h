/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cuts a list of the API server into its objects, without a tree of the whole list. */

#include "base/fault.h"
#include "base/str.h"

enum { LIST_ITEMS_E_MALFORMED = 1 };

/* Visits the text of each of the list's items until visit() returns non-zero, and returns that.
 * Otherwise returns 0, LIST_ITEMS_E_MALFORMED with a fault, or -ENOMEM. */
int list_items_each(Str list, int (*visit)(void *userdata, Str item), void *userdata, Fault *fault);
