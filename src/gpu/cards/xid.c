/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/xid.h"

#include <stddef.h>

#define XID_RULE(code, kind, text) {.xid = code, .verdict = XID_##kind, .words = text},

static const XidRule rules[] = {XID_LIST(XID_RULE)};

const XidRule *xid_rule(uint64_t xid) {
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
                if (rules[i].xid == xid)
                        return &rules[i];
        return NULL;
}
