/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/finder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct Question {
        struct Question *next;
        SimFinding what;
        uint64_t token, number;
        pid_t process;
        int fd;
} Question;

typedef struct Queue {
        Question *first, **end;
} Queue;

struct SimFinder {
        pthread_t thread;
        bool started; /* begins with the first question, because a server may fork before */
        pthread_mutex_t lock;
        pthread_cond_t asked;
        Queue questions, answers; /* under the lock, like stop */
        bool stop;
        int answered; /* eventfd */
};

static void put(Queue *q, Question *what) {
        what->next = NULL;
        *q->end = what;
        q->end = &what->next;
}

static Question *take(Queue *q) {
        Question *what = q->first;

        if (!what)
                return NULL;
        q->first = what->next;
        if (!q->first)
                q->end = &q->first;
        return what;
}

static void drop_all(Queue *q) {
        for (Question *what = take(q); what; what = take(q)) {
                if (what->what == SIM_FIND_DUPLICATE && what->number > 0)
                        (void) close((int) what->number - 1); /* nothing was written to it */
                free(what);
        }
}

static bool is_harmless(int fd) {
        int domain = 0;
        socklen_t n = sizeof domain;

        return fcntl(fd, F_GET_SEALS) >= 0 ||
               (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX);
}

static uint64_t ask(const Question *q) {
        int process = (int) syscall(SYS_pidfd_open, q->process, 0), fd = -1;
        uint64_t number = 0;

        if (process >= 0)
                fd = (int) syscall(SYS_pidfd_getfd, process, q->fd, 0);
        if (fd >= 0 && q->what == SIM_FIND_DUPLICATE && is_harmless(fd)) {
                number = (uint64_t) fd + 1;
                fd = -1;
        } else if (fd >= 0 && q->what == SIM_FIND_NUMBER && ioctl(fd, SIM_WHICH_FILE, &number) != 0) {
                number = 0;
        }
        if (fd >= 0)
                (void) close(fd); /* a duplicate: nothing is written */
        if (process >= 0)
                (void) close(process); /* as above */
        return number;
}

static Question *next_question(SimFinder *f) {
        Question *q = NULL;

        (void) pthread_mutex_lock(&f->lock); /* cannot fail: a plain mutex that this thread does not hold */
        while (!f->stop && !q) {
                q = take(&f->questions);
                if (!q)
                        (void) pthread_cond_wait(&f->asked, &f->lock); /* cannot fail */
        }
        (void) pthread_mutex_unlock(&f->lock);
        return q;
}

static void *run(void *argument) {
        SimFinder *f = argument;

        for (Question *q = next_question(f); q; q = next_question(f)) {
                q->number = ask(q);
                (void) pthread_mutex_lock(&f->lock);
                put(&f->answers, q);
                (void) pthread_mutex_unlock(&f->lock);
                (void) eventfd_write(f->answered, 1); /* fails only with 2^64 waiting */
        }
        return NULL;
}

int sim_finder_new(SimFinder **ret) {
        SimFinder *f = calloc(1, sizeof *f);

        if (!f)
                return -ENOMEM;
        f->questions.end = &f->questions.first;
        f->answers.end = &f->answers.first;
        f->answered = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (f->answered < 0) {
                free(f);
                return -ENFILE;
        }
        (void) pthread_mutex_init(&f->lock, NULL); /* these two cannot fail with no attributes */
        (void) pthread_cond_init(&f->asked, NULL);
        *ret = f;
        return 0;
}

void sim_finder_free(SimFinder *f) {
        if (!f)
                return;
        (void) pthread_mutex_lock(&f->lock);
        f->stop = true;
        (void) pthread_cond_signal(&f->asked);
        (void) pthread_mutex_unlock(&f->lock);
        if (f->started)
                (void) pthread_join(f->thread, NULL); /* only this thread joins it */
        drop_all(&f->questions);
        drop_all(&f->answers);
        (void) pthread_cond_destroy(&f->asked);
        (void) pthread_mutex_destroy(&f->lock);
        (void) close(f->answered); /* nothing was written that could be lost */
        free(f);
}

int sim_finder_fd(const SimFinder *f) {
        return f->answered;
}

void sim_finder_hear(SimFinder *f) {
        eventfd_t n;

        (void) eventfd_read(f->answered, &n); /* the queue has the answers */
}

int sim_finder_ask(SimFinder *f, SimFinding what, pid_t process, int fd, uint64_t token) {
        Question *q;

        if (!f->started && pthread_create(&f->thread, NULL, run, f) != 0)
                return -ENOMEM;
        f->started = true;
        q = calloc(1, sizeof *q);
        if (!q)
                return -ENOMEM;
        q->what = what;
        q->process = process;
        q->fd = fd;
        q->token = token;
        (void) pthread_mutex_lock(&f->lock);
        put(&f->questions, q);
        (void) pthread_cond_signal(&f->asked);
        (void) pthread_mutex_unlock(&f->lock);
        return 0;
}

bool sim_finder_take(SimFinder *f, uint64_t *ret_token, uint64_t *ret_number) {
        Question *q;

        (void) pthread_mutex_lock(&f->lock);
        q = take(&f->answers);
        (void) pthread_mutex_unlock(&f->lock);
        if (!q)
                return false;
        *ret_token = q->token;
        *ret_number = q->number;
        free(q);
        return true;
}
