/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A line of a trace, or of a file of golden vectors: a verb, and fields in any order, each
 * NAME=VALUE.
 *
 *     ioctl|mmap|munmap|mprotect|vector
 *     pid tid at ns                   decimal; at: since the trace began; ns: duration of the call
 *     file                            nvidiactl, nvidia0, nvidia-uvm...; none
 *     nr size r                       of an ioctl: number (uvm: the request), size, result
 *     inner-size                      length of the parameters, by the caller
 *     xfer where                      by XFER_CMD; on the stack or the heap, twice
 *     outer inner list                bytes in hex before, a slash, as many after
 *     addr length prot flags offset   of a mapping
 *     what                            of a vector: what the gate takes it for
 *
 * A line that begins with # is a comment. A line that does not parse is refused. */

#include <stddef.h>
#include <stdint.h>

enum {
        TRACE_OUTER = 256,
        TRACE_UVM = 64, /* of structures with an unknown length */
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

/* line: without its newline. 0; 1: a comment or empty; -1: invalid, and ret is undefined. */
int trace_parse(const char *line, TraceEvent *ret);
