/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A driver for these tests: a card with one timeline, which all streams share. Host functions are
 * called when their time has come, by the test or by a thread. The gate has no files. */

#include <pthread.h>

#include "preload/launch/admission.h"

enum { EVENTS = 8192, CALLS = 4096, FAR = 3600, STREAM_NAMES = 65536 };

#define MSEC UINT64_C(1000000)

typedef struct Event {
        uint64_t at;
        bool used, destroyed;
} Event;

struct Driver {
        uint64_t end; /* of the card's timeline */
        Event events[EVENTS];
        unsigned n_events, n_live, n_streams;
        struct {
                CuHostFn run;
                void *data;
                uint64_t at;
        } calls[CALLS];
        unsigned n_calls, n_called;
        int capturing; /* what cuStreamIsCapturing reports */
        int mode;
        int context_error;
};

extern SliceLimits limits;
extern SliceCounters counters;
extern Gate gate;
extern struct Driver driver;
extern pthread_mutex_t lock; /* protects the driver */
extern _Atomic int over;     /* ends the threads of a test */
extern __thread int mode_of_thread;

SliceWork *row(void);
void begin(void); /* resets the driver and the gate; the card is idle, and a window is open */
void put(unsigned number, void *function);

/* The application has destroyed the stream: no call may name it again. */
void stream_is_dead(CuHandle stream, bool is);
/* Called in cuStreamQuery, and in cuEventQuery with NULL. */
extern void (*_Atomic when_asked)(CuHandle stream);

void launch_in(uintptr_t stream, uintptr_t function, uint64_t nsec, int result);
void end_work(void); /* all of the card's work ends now */
void end_all(void);  /* end_work() and settle() */
void settle(void);   /* closes open batches, waits for them, and measures them */

bool one_is_over(void); /* calls the oldest host function if its time has come */
void all_is_over(void);
void *driving(void *unused); /* the driver's thread; ends with `over` */
pthread_t drive(void);
void stop(pthread_t t);
