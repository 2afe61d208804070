/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/stream.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "sim/cuda/memory.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/timeline.h"

enum {
        /* Between two checks of what a stream waits for, if there is no notification. */
        POLL_NSEC = 100 * 1000,
        /* A thread stays with its stream: the real driver does not make one for each function. */
        LINGER_SEC = 1,
};

/* ---- streams ---- */

CUstream stream_new(CUcontext c, unsigned flags) {
        CUstream s = calloc(1, sizeof *s);

        if (!s)
                return NULL;
        s->users = 1;
        s->alive = true;
        (void) pthread_cond_init(&s->more, NULL);
        s->context = c;
        s->flags = flags;
        s->last = &s->first;
        s->next = c->streams;
        c->streams = s;
        timeline_add_stream(s);
        return s;
}

static CUstream stream_use(CUstream s) {
        s->users++;
        return s;
}

void stream_drop(CUstream s) {
        if (--s->users > 0)
                return;
        for (CUstream *at = &s->context->streams; *at; at = &(*at)->next)
                if (*at == s) {
                        *at = s->next;
                        break;
                }
        if (s->capture)
                capture_drop(s->capture);
        (void) pthread_cond_destroy(&s->more);
        free(s->tips);
        free(s);
}

/* ---- the streams of threads ---- */

/* One per thread and context. It is freed with the context, not with the thread, which a program
 * cannot observe. */
static __thread struct {
        CUcontext context;
        CUstream stream;
} of_thread[8];

static CUstream stream_of_thread(CUcontext c) {
        static __thread unsigned next;

        for (size_t i = 0; i < ELEMENTSOF(of_thread); i++)
                if (of_thread[i].context == c && c)
                        return of_thread[i].stream;
        of_thread[next % ELEMENTSOF(of_thread)].context = c;
        of_thread[next % ELEMENTSOF(of_thread)].stream = stream_new(c, CU_STREAM_DEFAULT);
        return of_thread[next++ % ELEMENTSOF(of_thread)].stream;
}

static bool is_known(CUcontext c, CUstream s) {
        for (CUstream at = c->streams; at; at = at->next)
                if (at == s)
                        return at->alive;
        return false;
}

CUresult stream_enter(CUstream handle, CUcontext *ret_context, CUstream *ret) {
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r != CUDA_SUCCESS)
                return r;
        *ret_context = c;
        if (!handle || handle == CU_STREAM_LEGACY) {
                *ret = c->legacy;
                return CUDA_SUCCESS;
        }
        if (handle == CU_STREAM_PER_THREAD) {
                *ret = stream_of_thread(c);
                return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        }
        *ret = handle;
        if (is_known(c, handle))
                return CUDA_SUCCESS;
        for (CUcontext other = state.contexts; other; other = other->next) /* a stream has a context */
                if (other->alive && is_known(other, handle)) {
                        *ret_context = other;
                        return other->fault;
                }
        return CUDA_ERROR_INVALID_HANDLE;
}

/* ---- one piece of work ---- */

static bool word_has(const Work *w) {
        uint32_t have = __atomic_load_n((uint32_t *) (uintptr_t) w->word.at, __ATOMIC_ACQUIRE);
        uint32_t value = w->word.value;

        switch (w->word.flags & 3) {
        case CU_STREAM_WAIT_VALUE_GEQ:
                return (int32_t) (have - value) >= 0;
        case CU_STREAM_WAIT_VALUE_EQ:
                return have == value;
        case CU_STREAM_WAIT_VALUE_AND:
                return (have & value) != 0;
        default:
                return ~(have | value) != 0;
        }
}

/* An event of another context cannot be waited for on the card. */
static bool event_has_come(CUcontext c, CUevent e) {
        return e->where == c || timeline_event_is_over(e);
}

static bool can_be_done(const CUstream_st *s, const Work *w) {
        switch (w->kind) {
        case WORK_WAIT:
                return w->event.event->done >= w->event.turn && event_has_come(s->context, w->event.event);
        case WORK_AFTER:
                return w->after.stream->done >= w->after.done;
        case WORK_WORD_WAIT:
                return !range_covers(w->word.at, sizeof w->word.value) || word_has(w);
        default:
                return true;
        }
}

static void do_timed(CUstream s, const Work *w) {
        CUresult r;

        switch (w->kind) {
        case WORK_RECORD:
                w->event.event->done = w->event.turn;
                timeline_mark(s, w->event.event);
                return;
        case WORK_WAIT:
                timeline_follow_event(s, w->event.event);
                return;
        case WORK_AFTER:
                timeline_follow(s, w->after.stream);
                return;
        default:
                r = work_do(w);
                if (r == CUDA_SUCCESS)
                        timeline_give_work(s, w);
                else if (s->context->fault == CUDA_SUCCESS)
                        s->context->fault = r;
        }
}

static void work_drop(const Work *w) {
        if (w->kind == WORK_WAIT || w->kind == WORK_RECORD)
                event_drop(w->event.event);
        else if (w->kind == WORK_AFTER)
                stream_drop(w->after.stream);
}

/* ---- the queue ---- */

/* In CUDA, host functions of different streams may run one after the other. In that mode all share
 * one thread, and a slow function delays the others. */
static pthread_mutex_t in_turn = PTHREAD_MUTEX_INITIALIZER;

static bool is_one_thread(void) {
        const char *setting = secure_getenv("ALIQUOT_SIM_HOST_FUNCTIONS");

        return setting && strcmp(setting, "in-turn") == 0;
}

/* Called with the lock, and releases it while a host function runs. */
static void do_host(CUstream s, const Work *w) {
        bool one = is_one_thread();
        CUresult fault;

        while (!timeline_is_over(s))
                timeline_wait(s);
        fault = s->context->fault;
        state_unlock(NULL);
        if (one)
                (void) pthread_mutex_lock(&in_turn);
        if (w->kind == WORK_HOST)
                w->host.run(w->host.data);
        else
                w->host.call(s == s->context->legacy ? NULL : s, fault, w->host.data);
        if (one)
                (void) pthread_mutex_unlock(&in_turn);
        (void) state_lock();
}

static void wait_for_progress(const Work *w) {
        struct timespec t;

        if (w->kind != WORK_WORD_WAIT && w->kind != WORK_WAIT) {
                (void) pthread_cond_wait(&state.progress, &state.lock);
                return;
        }
        (void) clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += POLL_NSEC;
        if (t.tv_nsec >= 1000000000) {
                t.tv_nsec -= 1000000000;
                t.tv_sec++;
        }
        (void) pthread_cond_timedwait(&state.progress, &state.lock, &t);
}

static void do_first(CUstream s) {
        Work *w = s->first;

        if (w->kind == WORK_HOST || w->kind == WORK_CALLBACK)
                do_host(s, w);
        else
                do_timed(s, w);
        s->first = w->next;
        if (!s->first)
                s->last = &s->first;
        s->done++;
        work_drop(w);
        free(w);
        (void) pthread_cond_broadcast(&state.progress);
}

/* Returns whether there is more to do. */
static bool linger(CUstream s) {
        struct timespec t;

        (void) clock_gettime(CLOCK_REALTIME, &t);
        t.tv_sec += LINGER_SEC;
        while (!s->first && s->alive && pthread_cond_timedwait(&s->more, &state.lock, &t) == 0)
                ;
        return s->first != NULL;
}

static void *work_off(void *argument) {
        CUstream s = argument;

        (void) prctl(PR_SET_TIMERSLACK, 1UL); /* ns: the real driver is woken by an interrupt */
        (void) state_lock();
        while (s->first || linger(s)) {
                if (can_be_done(s, s->first))
                        do_first(s);
                else
                        wait_for_progress(s->first);
        }
        s->running = false;
        (void) pthread_cond_broadcast(&state.progress);
        stream_drop(s);
        state_unlock(NULL);
        return NULL;
}

/* The thread takes no signals of the process. */
static CUresult start_thread(CUstream s) {
        pthread_attr_t attributes;
        sigset_t all, before;
        pthread_t thread;
        int r;

        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        (void) pthread_attr_init(&attributes);
        (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        r = pthread_create(&thread, &attributes, work_off, s);
        (void) pthread_attr_destroy(&attributes);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r != 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        s->running = true;
        (void) stream_use(s);
        return CUDA_SUCCESS;
}

static CUresult enqueue(CUstream s, const Work *w) {
        Work *copy = malloc(sizeof *copy);

        if (!copy)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *copy = *w;
        copy->next = NULL;
        if (!s->running) {
                CUresult r = start_thread(s);

                if (r != CUDA_SUCCESS) {
                        free(copy);
                        return r;
                }
        }
        if (w->kind == WORK_WAIT || w->kind == WORK_RECORD)
                (void) event_use(w->event.event);
        else if (w->kind == WORK_AFTER)
                (void) stream_use(w->after.stream);
        *s->last = copy;
        s->last = &copy->next;
        s->given++;
        (void) pthread_cond_signal(&s->more);
        return CUDA_SUCCESS;
}

static CUresult give(CUstream s, const Work *w) {
        if (s->first || w->kind == WORK_HOST || w->kind == WORK_CALLBACK || !can_be_done(s, w))
                return enqueue(s, w);
        do_timed(s, w);
        return CUDA_SUCCESS;
}

/* Stream 0 and the streams without CU_STREAM_NON_BLOCKING wait for each other. */
static CUresult order_behind(CUstream s, CUstream other) {
        const Work w = {.kind = WORK_AFTER, .after = {other, other->given}};

        if (other == s || other->flags & CU_STREAM_NON_BLOCKING)
                return CUDA_SUCCESS;
        if (other->capture) {
                other->capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
        if (!other->first && !s->first) {
                timeline_follow(s, other);
                return CUDA_SUCCESS;
        }
        return give(s, &w);
}

static CUresult order(CUstream s) {
        CUcontext c = s->context;
        CUresult r = CUDA_SUCCESS;

        if (s->flags & CU_STREAM_NON_BLOCKING)
                return CUDA_SUCCESS;
        if (s != c->legacy)
                return order_behind(s, c->legacy);
        for (CUstream other = c->streams; other && r == CUDA_SUCCESS; other = other->next)
                r = order_behind(s, other);
        return r;
}

CUresult stream_submit(CUstream s, const Work *w) {
        CUresult r;

        if (s->capture)
                return capture_add(s, w);
        r = work_check(w);
        if (r == CUDA_SUCCESS)
                r = order(s);
        return r == CUDA_SUCCESS ? give(s, w) : r;
}

/* ---- waiting ---- */

CUresult stream_make_room(CUstream s) {
        bool alive;

        if (s->capture || s->first || timeline_has_room(s))
                return CUDA_SUCCESS;
        (void) stream_use(s);
        while (s->alive && !timeline_has_room(s))
                timeline_wait_for_room(s);
        alive = s->alive;
        stream_drop(s);
        return alive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

bool stream_is_idle(CUstream s) {
        return !s->first && timeline_is_over(s);
}

CUresult stream_wait(CUstream s) {
        CUresult fault;

        (void) stream_use(s);
        while (!stream_is_idle(s))
                if (s->first)
                        (void) pthread_cond_wait(&state.progress, &state.lock);
                else
                        timeline_wait(s);
        fault = s->context->fault;
        pools_relax(s->context->device);
        stream_drop(s);
        return fault;
}

static CUresult wait_for_streams(CUcontext c, bool all) {
        CUstream s = c->streams;

        while (s) { /* begin again: the list may have changed while the lock was free */
                if (stream_is_idle(s) || (!all && s->flags & CU_STREAM_NON_BLOCKING)) {
                        s = s->next;
                        continue;
                }
                (void) stream_wait(s);
                s = c->streams;
        }
        pools_relax(c->device);
        return c->fault;
}

CUresult context_wait(CUcontext c) {
        return wait_for_streams(c, true);
}

CUresult blocking_wait(CUcontext c) {
        return wait_for_streams(c, false);
}

void streams_end_context(CUcontext c) {
        CUstream next;

        for (CUstream s = c->streams; s; s = next) {
                next = s->next;
                if (s->alive) {
                        s->alive = false;
                        (void) pthread_cond_signal(&s->more);
                        stream_drop(s);
                }
        }
        c->legacy = NULL;
}
