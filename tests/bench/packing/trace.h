/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A trace of a cluster as the files of openb have it: github.com/alibaba/clusterdata,
 * cluster-trace-gpu-v2023. Nodes have processors, memory and cards. Pods ask for thousandths of one
 * card, for whole cards, or for processors only. */

#include <stddef.h>
#include <stdint.h>

enum { TRACE_CARD = 1000, TRACE_CARDS_MAX = 8, TRACE_SPECS_MAX = 64, TRACE_TEXT_MAX = 96 };

typedef struct TraceNode {
        char name[TRACE_TEXT_MAX];
        char model[TRACE_TEXT_MAX]; /* in angle brackets, so that none is a part of another */
        int64_t cpu, memory;        /* thousandths of a core, MiB */
        uint32_t cards;
} TraceNode;

typedef struct TracePod {
        int64_t cpu, memory;
        uint32_t cards; /* 0: it asks for processors only */
        uint32_t part;  /* of each card, in thousandths */
        uint32_t spec;  /* in Trace.specs; 0: any model */
        uint32_t kind;  /* equal for pods that are alike in cpu, cards, part and spec */
} TracePod;

typedef struct Trace {
        TraceNode *nodes; /* by name */
        size_t n_nodes;
        TracePod *pods;
        size_t n_pods, n_kinds;
        char specs[TRACE_SPECS_MAX][TRACE_TEXT_MAX]; /* models in brackets, commas between them */
        size_t n_specs;
        int64_t cards; /* of all nodes */
} Trace;

/* Ends the process with a sentence when a file cannot be read. */
void trace_read_nodes(Trace *t, const char *path);
void trace_read_pods(Trace *t, const char *path);
void trace_done(Trace *t);

/* A generator of numbers with a seed. */
typedef struct Dice {
        uint64_t state;
} Dice;

uint32_t dice_below(Dice *d, uint32_t n);
double dice_part(Dice *d); /* over 0, up to 1 */

/* Pods of the trace in random order that ask together for `percent` of all cards: the trace, with
 * copies of random pods or without random pods. without_cpu_only leaves out pods without cards. The
 * caller frees the result. */
uint32_t *trace_draw(const Trace *t, Dice *d, unsigned percent, int without_cpu_only, size_t *ret_n);

/* Whether the pod may use the cards of that node. */
int trace_allows(const Trace *t, uint32_t spec, const TraceNode *n);

_Noreturn void trace_die(const char *what, const char *about);
