#pragma once
#ifdef TRACE_GATE
#include "base/sys.h"
#define TSYS sys_call
#else
#define TSYS(...) syscall(__VA_ARGS__)
#endif
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
typedef struct TraceRec { uint64_t t; uint32_t pid, ev; uint64_t a, b, c; } TraceRec;
#define TRACE_N (3u << 20)
static inline TraceRec *trace_map(void) {
        static TraceRec *m; static int pid_known; (void) pid_known;
        if (!m) {
                long fd = TSYS(SYS_openat, AT_FDCWD, "/tmp/share/trace.bin", O_RDWR | O_CLOEXEC, 0);
                if (fd < 0) { m = (TraceRec *) 1; return m; }
                long p = TSYS(SYS_mmap, NULL, (size_t) TRACE_N * sizeof(TraceRec), PROT_READ | PROT_WRITE, MAP_SHARED, fd, (long) 0);
                m = p < 0 && p > -4096 ? (TraceRec *) 1 : (TraceRec *) p;
                TSYS(SYS_close, fd, 0, 0, 0, 0, 0);
        }
        return m;
}
static inline void trace_at(uint64_t t, uint32_t ev, uint64_t a, uint64_t b, uint64_t c) {
        TraceRec *m = trace_map();
        if (m == (TraceRec *) 1) return;
        uint64_t i = atomic_fetch_add((_Atomic uint64_t *) &m[0].t, 1) + 1;
        if (i >= TRACE_N) return;
        m[i] = (TraceRec){t, (uint32_t) TSYS(SYS_getpid, 0, 0, 0, 0, 0, 0), ev, a, b, c};
}
static inline void trace(uint32_t ev, uint64_t a, uint64_t b, uint64_t c) {
#ifdef TRACE_GATE
        uint64_t account_now(void);
        trace_at(account_now(), ev, a, b, c);
#else
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        trace_at((uint64_t) ts.tv_sec * 1000000000ull + (uint64_t) ts.tv_nsec, ev, a, b, c);
#endif
}
