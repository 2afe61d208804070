/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How placement orders nodes with the policy binpack. Nodes with the policy spread have an order of
 * their own (placement_policy.h). */

typedef enum NodeOrder {
        NODE_ORDER_BINPACK,       /* the fullest */
        NODE_ORDER_FRAGMENTATION, /* the one with the least growth of its expected fragment (fragment.h) */
} NodeOrder;
