/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cluster of the benchmarks: nodes of 8 cards of 15 GiB in mode cgpu, and pods of 4 GiB, 20 on
 * each node. Every node has room for more of them on some cards and not on others. */

#include "base/buf.h"

enum { BENCH_CARDS = 8, BENCH_CARD_UNITS = 15, BENCH_POD_UNITS = 4 };

void bench_node_json(Buf *out, unsigned node);

/* bytes: the object is padded to this size, with members that real pods have. node < 0: not bound.
 * card: of the annotation. */
void bench_pod_json(Buf *out, unsigned pod, int node, unsigned card, size_t bytes);

/* Starts the local API server in a process of its own, filled with `nodes` nodes and `pods` bound
 * pods. */
pid_t bench_store_start(unsigned nodes, unsigned pods, size_t pod_bytes, uint16_t *ret_port);

/* Starts `aliquot scheduler` against that server, with its page at page_port if that is not 0, and
 * waits until it is ready. */
pid_t bench_scheduler_start(const char *aliquot, uint16_t store_port, uint16_t page_port, uint16_t *ret_port);
