/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A line of a trace, or of a file of golden vectors: a verb, and fields in any order, each
 * NAME=VALUE.
 *
 *     ioctl|mmap|munmap|mprotect|vector
 *     pid tid at ns                   decimal; at: ns since the trace began, ns: how long the call took
 *     file                            nvidiactl, nvidia0, nvidia-uvm...; none
 *     nr size r                       of an ioctl: number (of nvidia-uvm: the whole request), size, what it returned
 *     inner-size xfer where           what the caller said that the parameters' length is; by XFER_CMD; on the stack or the heap, twice
 *     outer inner list                bytes in hex before, a slash, as many after
 *     addr length prot flags offset   of a mapping
 *     what                            of a vector: what the gate takes it for
 *
 * A line starting with # is a comment. Anything may stand in such a file: what does not parse is
 * refused, never believed. */

#include <stddef.h>
#include <stdint.h>

enum {
        TRACE_OUTER = 256,
        TRACE_UVM = 64, /* of structures whose length is not told */
        TRACE_INNER = 1088,
        TRACE_LIST = 1024,
        TRACE_FILE = 32,
        TRACE_WHAT = 16,
        TRACE_LINE = 2 * 2 * (TRACE_OUTER + TRACE_INNER + TRACE_LIST) + 512,
};

typedef enum TraceVerb { TRACE_IOCTL = 1, TRACE_MMAP, TRACE_MUNMAP, TRACE_MPROTECT, TRACE_VECTOR } TraceVerb;

typedef struct TraceBytes {
        size_t n;
        uint8_t before[TRACE_INNER], after[TRACE_INNER];
} TraceBytes;

typedef struct TraceEvent {
        TraceVerb verb;
        uint64_t pid, tid, at, ns;
        char file[TRACE_FILE], what[TRACE_WHAT], where[3];
        uint32_t nr, size, inner_size;
        int transfer;
        int64_t r;
        uint64_t addr, length, offset;
        uint32_t prot, flags;
        TraceBytes outer, inner, list;
} TraceEvent;

/* line: without its end. 0; 1: a comment or empty; -1: no such line. ret is whatever on -1. */
int trace_parse(const char *line, TraceEvent *ret);
