/* SPDX-License-Identifier: Apache-2.0 */

/* A libcuda.so.1 that does nothing: every launch takes two microseconds of a card that is always
 * free. So the cost of a launch is that of the hooks before it. */

#include <stdint.h>

typedef struct Event {
        uint64_t nsec;
} Event;

static uint64_t now, n_events;
static Event events[4096];

#define IDLE(name) __attribute__((visibility("default"))) int name

IDLE(cuInit)(unsigned flags);
int cuInit(unsigned flags) {
        return 0;
}

IDLE(cuLaunchKernel)
(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
 void *stream, void **params, void **extra);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
        now += 2000;
        return 0;
}

IDLE(cuCtxGetCurrent)(void **ret);
int cuCtxGetCurrent(void **ret) {
        *ret = &now;
        return 0;
}

IDLE(cuEventCreate)(void **ret, unsigned flags);
int cuEventCreate(void **ret, unsigned flags) {
        *ret = &events[n_events++ % 4096];
        return 0;
}

IDLE(cuEventRecord)(void *event, void *stream);
int cuEventRecord(void *event, void *stream) {
        ((Event *) event)->nsec = now;
        return 0;
}

IDLE(cuEventElapsedTime)(float *ret, void *from, void *to);
int cuEventElapsedTime(float *ret, void *from, void *to) {
        *ret = (float) ((double) (int64_t) (((Event *) to)->nsec - ((Event *) from)->nsec) / 1e6);
        return 0;
}

IDLE(cuStreamCreate)(void **ret, unsigned flags);
int cuStreamCreate(void **ret, unsigned flags) {
        *ret = events;
        return 0;
}

IDLE(cuStreamDestroy_v2)(void *stream);
int cuStreamDestroy_v2(void *stream) {
        return 0;
}

IDLE(cuStreamWaitEvent)(void *stream, void *event, unsigned flags);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
        return 0;
}

IDLE(cuStreamIsCapturing)(void *stream, int *ret);
int cuStreamIsCapturing(void *stream, int *ret) {
        *ret = 0;
        return 0;
}

IDLE(cuStreamQuery)(void *stream);
int cuStreamQuery(void *stream) {
        return 0;
}

IDLE(cuThreadExchangeStreamCaptureMode)(int *mode);
int cuThreadExchangeStreamCaptureMode(int *mode) {
        int before = *mode;

        *mode = 0;
        return before < 0;
}

static int unlisted(void) {
        return 0;
}

/* Each name has an address that is not the exported one. */
IDLE(cuGetProcAddress_v2)(const char *name, void **ret, int version, uint64_t flags, int *status);
int cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags, int *status) {
        *ret = (void *) unlisted;
        return 0;
}

IDLE(cuLaunchHostFunc)(void *stream, void (*run)(void *), void *data);
int cuLaunchHostFunc(void *stream, void (*run)(void *), void *data) {
        run(data);
        return 0;
}
