/* SPDX-License-Identifier: Apache-2.0 */
#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files.h"
#include "trace.h"

int native_poll(struct pollfd *list, nfds_t n, int timeout) __asm__("poll");

enum { EVENTS = 256, FD_FIRST = 920 }; /* descriptors that programs do not use */
#define NONSTALL UINT32_C(0x08000000)  /* NV01_EVENT_NONSTALL_INTR */

static struct {
        pthread_mutex_t lock;
        struct {
                int fd, signal; /* of the program, plus 1; an eventfd */
                bool interrupts;
        } list[EVENTS];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock(void) {
        (void) pthread_mutex_lock(&state.lock); /* a plain mutex: cannot fail */
}

static void unlock(void) {
        (void) pthread_mutex_unlock(&state.lock); /* as above */
}

/* The entry of a descriptor, or with fd -1 a free one. -1: none. */
static int find(int fd) {
        for (int i = 0; i < EVENTS; i++)
                if (state.list[i].fd == fd + 1)
                        return i;
        return -1;
}

/* The entry of an open file, which may have several descriptors: nvidia_poll() of nv.c looks for
 * what is pending in the file's private data. libcuda polls a dup() of the descriptor that its
 * event names. -1: none. */
static int find_file(int fd) {
        pid_t self = getpid();

        for (int i = 0; i < EVENTS; i++)
                if (state.list[i].fd > 0 &&
                    syscall(SYS_kcmp, self, self, KCMP_FILE, fd, state.list[i].fd - 1) == 0)
                        return i;
        return -1;
}

void events_add(const EventsParams *p) {
        int i, fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

        lock();
        i = find(-1);
        if (fd < 0 || i < 0)
                abort();
        state.list[i].fd = (int) p->fd + 1;
        state.list[i].signal = fcntl(fd, F_DUPFD_CLOEXEC, FD_FIRST);
        state.list[i].interrupts = (p->index & NONSTALL) != 0;
        unlock();
        (void) close(fd); /* the copy stays */
        trace("event index=%#x fd=%d", p->index, (int) p->fd);
}

void events_closed(int fd) {
        int i;

        lock();
        i = find(fd);
        if (i >= 0) {
                (void) close(state.list[i].signal); /* it was open */
                state.list[i].fd = 0;
        }
        unlock();
}

static void signal_all(bool interrupts) {
        uint64_t one = 1;

        lock();
        for (int i = 0; i < EVENTS; i++)
                if (state.list[i].fd > 0 && state.list[i].interrupts == interrupts)
                        (void) !write(state.list[i].signal, &one, sizeof one); /* it may be pending already */
        unlock();
}

void events_interrupt(void) {
        signal_all(true);
}

void events_error(void) {
        signal_all(false);
}

/* As nvidia_poll(): an event without data is gone once it was reported. */
static int poll_events(struct pollfd *list, nfds_t n, int timeout) {
        struct pollfd *own = calloc(n, sizeof *own);
        uint64_t count;
        int r;

        if (!own)
                abort();
        lock();
        for (nfds_t i = 0; i < n; i++) {
                int at = files_kind(list[i].fd) == FILES_OTHER ? -1 : find_file(list[i].fd);

                own[i] = list[i];
                if (files_kind(list[i].fd) != FILES_OTHER)
                        own[i].fd = at < 0 ? -1 : state.list[at].signal;
        }
        unlock();
        r = (int) syscall(SYS_poll, own, n, timeout);
        for (nfds_t i = 0; i < n; i++) {
                list[i].revents = own[i].revents;
                if (own[i].fd != list[i].fd && own[i].revents & POLLIN)
                        (void) !read(own[i].fd, &count, sizeof count); /* another thread may have done so */
        }
        free(own);
        return r;
}

int native_poll(struct pollfd *list, nfds_t n, int timeout) {
        for (nfds_t i = 0; i < n; i++)
                if (list[i].fd >= 0 && files_kind(list[i].fd) != FILES_OTHER)
                        return poll_events(list, n, timeout);
        return (int) syscall(SYS_poll, list, n, timeout);
}
