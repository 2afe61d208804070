/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How placement orders the nodes with the policy binpack among each other. Those with the policy
 * spread have their own order (placement_policy.h). */

typedef enum NodeOrder {
        NODE_ORDER_BINPACK,       /* the fullest */
        NODE_ORDER_FRAGMENTATION, /* that whose expected fragment grows least (fragment.h) */
} NodeOrder;
