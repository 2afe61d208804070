/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A blocking keep-alive HTTP client and latency figures, for benchmarks that run our programs as
 * processes. */

#include "base/buf.h"
#include "base/clock.h"

typedef struct LoadConn {
        int fd;
        Buf in; /* bytes received and not yet used */
} LoadConn;

/* Connects to 127.0.0.1:port. On failure this ends the benchmark with a message, as all functions
 * here do. */
LoadConn load_dial(uint16_t port);
void load_hang_up(LoadConn *c);

/* Sends one request and reads its answer (Content-Length only) into *body; returns the HTTP
 * status. */
unsigned load_call(LoadConn *c, const char *method, const char *path, const char *content_type, Str body,
                   Buf *ret_body);

/* Samples of one kind of operation. */
typedef struct LoadSamples {
        uint32_t *nsec_64; /* in steps of 64 ns, so that four bytes reach 4 minutes */
        size_t n, capacity;
} LoadSamples;

void load_sample(LoadSamples *s, uint64_t nsec);
double load_quantile_usec(LoadSamples *s, double q); /* sorts */
void load_samples_done(LoadSamples *s);

/* Resident memory of a process in KiB: VmRSS of /proc/PID/status. */
uint64_t load_resident_kib(pid_t pid);

/* Waits, at most 120 s, until GET path answers 200. */
void load_wait_ready(uint16_t port, const char *path);
uint16_t load_free_port(void);

/* Runs a program with its output on that of the benchmark. The program ends with the benchmark. */
pid_t load_spawn(const char *const argv[]);
void load_end(pid_t pid);

void load_fail(const char *format, ...) _printf_(1, 2) __attribute__((noreturn));
