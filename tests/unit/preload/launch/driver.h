/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A driver of the tests' own: a card with one timeline, which all streams share, and host functions
 * that come when their time has come and the test asks for them, or a thread does. The gate is one
 * without files. */

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
        int capturing; /* what a stream says */
        int mode;
        int context_error;
};

extern SliceLimits limits;
extern SliceCounters counters;
extern Gate gate;
extern struct Driver driver;
extern pthread_mutex_t lock; /* of the driver */
extern _Atomic int over;     /* threads of a test may end */
extern __thread int mode_of_thread;

SliceWork *row(void);
void begin(void); /* the driver whole, the card idle, a window open */
void put(unsigned number, void *function);

void stream_is_dead(CuHandle stream,
                    bool is); /* the application has destroyed it: nobody may name it again */
extern void (*_Atomic when_asked)(CuHandle stream); /* in cuStreamQuery, and of no stream in cuEventQuery */

void launch_in(uintptr_t stream, uintptr_t function, uint64_t nsec, int result);
void end_work(void); /* as if all of the card's work were over by now */
void end_all(void);  /* and measures it */
void settle(void);   /* closes what is open, waits for it, and measures it */

bool one_is_over(void); /* says that the oldest batch is over, if it is */
void all_is_over(void);
void *driving(void *unused); /* the driver's thread, until it is over */
pthread_t drive(void);
void stop(pthread_t t);
