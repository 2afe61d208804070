/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the driver's XID messages say about the card. Sources: NVIDIA's "XID Errors"
 * (docs.nvidia.com/deploy/xid-errors), and the XIDs that NVIDIA's device plugin ignores because
 * programs cause them. One tenant's wild pointer must not take a shared card from the others. So an
 * XID fences only where NVIDIA asks for a reset or a repair; one that is not listed here fences
 * nothing. */

#include <stdint.h>

typedef enum XidVerdict {
        XID_HARMLESS, /* the card is as good as before */
        XID_BROKEN,   /* not to be used until no such XID came for the quiet time */
        XID_LOST,     /* like BROKEN, and a new session of the library must find the card */
} XidVerdict;

/* Number, verdict, text for people. In groups:
 *     13 to 109   errors of a program: its channel is reset, others go on
 *     63, 92, 94  ECC worked. 63 records a row or page that the next reset replaces; the error
 *                 itself, where it matters, comes as 48 or 95. 92: all errors were corrected.
 *                 94: contained; only programs that touched the page end, and it is retired.
 *     46 to 143   engines or firmware that only a reset of the card restores
 *     48 to 140   memory that cannot be trusted before a reset
 *     74          a failed link, which hangs every program that spans cards */
#define XID_LIST(X)                                                                                          \
        X(13, HARMLESS, "graphics engine exception")                                                         \
        X(31, HARMLESS, "memory page fault")                                                                 \
        X(43, HARMLESS, "reset of a program's channel")                                                      \
        X(45, HARMLESS, "clean-up after an earlier error")                                                   \
        X(68, HARMLESS, "video processor exception")                                                         \
        X(69, HARMLESS, "graphics engine class error")                                                       \
        X(109, HARMLESS, "context switch timeout")                                                           \
        X(63, HARMLESS, "memory row or page marked for replacement")                                         \
        X(92, HARMLESS, "many corrected ECC errors")                                                         \
        X(94, HARMLESS, "contained ECC error")                                                               \
        X(46, BROKEN, "the card stopped processing")                                                         \
        X(62, BROKEN, "internal microcontroller halt")                                                       \
        X(119, BROKEN, "no answer from the card's GSP firmware")                                             \
        X(120, BROKEN, "error in the card's GSP firmware")                                                   \
        X(143, BROKEN, "initialisation of the card failed")                                                  \
        X(48, BROKEN, "uncorrectable ECC error")                                                             \
        X(64, BROKEN, "a bad memory row or page could not be recorded")                                      \
        X(95, BROKEN, "uncontained ECC error")                                                               \
        X(140, BROKEN, "unrecovered ECC error")                                                              \
        X(74, BROKEN, "NVLink error")                                                                        \
        X(79, LOST, "the card fell off the bus")

typedef struct XidRule {
        uint32_t xid;
        XidVerdict verdict;
        const char *words;
} XidRule;

const XidRule *xid_rule(uint64_t xid); /* NULL: not listed */
