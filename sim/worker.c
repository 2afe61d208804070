/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct Request {
        struct Request *next;
        size_t n;
        char bytes[] __attribute__((aligned(16)));
} Request;

struct Worker {
        void (*run)(void *data, void *request, size_t n);
        void *data;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t given;
        Request *first, **last;
        bool ends;
};

static Request *take(Worker *w) {
        Request *r;

        (void) pthread_mutex_lock(&w->lock);
        while (!w->first && !w->ends)
                (void) pthread_cond_wait(&w->given, &w->lock);
        r = w->first;
        if (r)
                w->first = r->next;
        if (!w->first)
                w->last = &w->first;
        (void) pthread_mutex_unlock(&w->lock);
        return r;
}

static void *work(void *argument) {
        Worker *w = argument;
        Request *r;

        while ((r = take(w))) {
                w->run(w->data, r->bytes, r->n);
                free(r);
        }
        return NULL;
}

Worker *worker_new(void (*run)(void *data, void *request, size_t n), void *data) {
        Worker *w = calloc(1, sizeof *w);

        if (!w)
                return NULL;
        w->run = run;
        w->data = data;
        w->last = &w->first;
        (void) pthread_mutex_init(&w->lock, NULL); /* neither can fail without attributes */
        (void) pthread_cond_init(&w->given, NULL);
        if (pthread_create(&w->thread, NULL, work, w) == 0)
                return w;
        free(w);
        return NULL;
}

void worker_free(Worker *w) {
        if (!w)
                return;
        (void) pthread_mutex_lock(&w->lock);
        w->ends = true;
        (void) pthread_cond_signal(&w->given);
        (void) pthread_mutex_unlock(&w->lock);
        (void) pthread_join(w->thread, NULL);
        (void) pthread_cond_destroy(&w->given);
        (void) pthread_mutex_destroy(&w->lock);
        free(w);
}

int worker_give(Worker *w, const void *request, size_t n) {
        Request *r = malloc(sizeof *r + n);

        if (!r)
                return -ENOMEM;
        r->next = NULL;
        r->n = n;
        memcpy(r->bytes, request, n);
        (void) pthread_mutex_lock(&w->lock);
        *w->last = r;
        w->last = &r->next;
        (void) pthread_cond_signal(&w->given);
        (void) pthread_mutex_unlock(&w->lock);
        return 0;
}
