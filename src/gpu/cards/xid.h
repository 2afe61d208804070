/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the driver's XID messages say about the card. Sources: NVIDIA's "XID Errors"
 * (docs.nvidia.com/deploy/xid-errors) and, for what a program can cause by itself, the codes that
 * NVIDIA's own device plugin passes over. On a shared card one tenant's wild pointer must not take
 * the card from the others: a code fences only where NVIDIA asks for a reset or a repair. A code
 * that is not listed here fences nothing. */

#include <stdint.h>

typedef enum XidVerdict {
        XID_HARMLESS, /* the card is as good as before */
        XID_BROKEN,   /* not to be used until it has been quiet for a while */
        XID_LOST,     /* not to be used until the driver has found it anew */
} XidVerdict;

/* code, verdict, what people read */
#define XID_LIST(X)                                                                                                  \
        /* Of a program's own making: its channel is reset, others go on. */                                         \
        X(13, HARMLESS, "graphics engine exception")                                                                 \
        X(31, HARMLESS, "memory page fault")                                                                         \
        X(43, HARMLESS, "reset of a program's channel")                                                              \
        X(45, HARMLESS, "clean-up after an earlier error")                                                           \
        X(68, HARMLESS, "video processor exception")                                                                 \
        X(69, HARMLESS, "graphics engine class error")                                                               \
        X(109, HARMLESS, "context switch timeout")                                                                   \
        /* ECC did its work. 63 records a row or page to be replaced at the next reset; the error itself, where it \
         * matters, comes as 48 or 95. 92: many errors, all corrected. 94: contained; only the programs that touched \
         * the page end, and it is taken out of use. */ \
        X(63, HARMLESS, "memory row or page marked for replacement")                                                 \
        X(92, HARMLESS, "many corrected ECC errors")                                                                 \
        X(94, HARMLESS, "contained ECC error")                                                                       \
        /* Engines or firmware that only a reset of the card brings back. */                                         \
        X(46, BROKEN, "the card stopped processing")                                                                 \
        X(62, BROKEN, "internal microcontroller halt")                                                               \
        X(119, BROKEN, "no answer from the card's GSP firmware")                                                     \
        X(120, BROKEN, "error in the card's GSP firmware")                                                           \
        X(143, BROKEN, "initialisation of the card failed")                                                          \
        /* Memory that cannot be trusted before a reset. */                                                          \
        X(48, BROKEN, "uncorrectable ECC error")                                                                     \
        X(64, BROKEN, "a bad memory row or page could not be recorded")                                              \
        X(95, BROKEN, "uncontained ECC error")                                                                       \
        X(140, BROKEN, "unrecovered ECC error")                                                                      \
        /* A link that failed hangs every program that spans cards. */                                               \
        X(74, BROKEN, "NVLink error")                                                                                \
        X(79, LOST, "the card fell off the bus")

typedef struct XidRule {
        uint32_t xid;
        XidVerdict verdict;
        const char *words;
} XidRule;

const XidRule *xid_rule(uint64_t xid); /* NULL: not listed */
