/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The list of functions that the simulated libcuda.so.1 serves: X(name, symbol, version, twin).
 *
 *   name      for cuGetProcAddress()
 *   symbol    the exported one
 *   version   of CUDA that brought this form of the function, as 12020
 *   twin      the form for programs that were built with one default stream per thread
 *
 * The list makes the map of exports and the table of cuGetProcAddress(). Nothing else is served. */

#include "sim/cuda/names_context.h"
#include "sim/cuda/names_copy.h"
#include "sim/cuda/names_graph.h"
#include "sim/cuda/names_memory.h"
#include "sim/cuda/names_stream.h"

#define SERVED(X) SERVED_CONTEXT(X) SERVED_MEMORY(X) SERVED_COPY(X) SERVED_STREAM(X) SERVED_GRAPH(X)
