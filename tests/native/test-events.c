/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "events.h"
#include "files.h"
#include "test.h"
#include "trace.h"

/* Events without a driver: poll() here is that of events.c. */

enum { INTERRUPT = 0x08000000 }; /* NV01_EVENT_NONSTALL_INTR */

void trace(const char *format, ...) {
        (void) format;
}

FilesKind files_kind(int fd) {
        return fd >= 0 ? FILES_CARD : FILES_OTHER;
}

static int open_card(void) {
        int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        ASSERT_TRUE(fd >= 0);
        return fd;
}

static int pending(int fd) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        return poll(&p, 1, 0);
}

/* libcuda names a descriptor to its event, and polls a copy of it. */
static void an_event_belongs_to_the_open_file(void) {
        int interrupts = open_card(), errors = open_card(), copy = dup(interrupts), other = open_card();

        ASSERT_TRUE(copy >= 0);
        events_add(&(EventsParams){.index = INTERRUPT, .fd = (uint64_t) interrupts});
        events_add(&(EventsParams){.fd = (uint64_t) errors});
        ASSERT_INT(pending(copy), 0);
        events_interrupt();
        ASSERT_INT(pending(other), 0);
        ASSERT_INT(pending(errors), 0);
        ASSERT_INT(pending(copy), 1);
        ASSERT_INT(pending(interrupts), 0); /* it is gone once it was reported */
        events_error();
        ASSERT_INT(pending(copy), 0);
        ASSERT_INT(pending(errors), 1);
        events_interrupt();
        events_closed(interrupts);
        ASSERT_INT(pending(copy), 0);
        (void) close(interrupts); /* they were open */
        (void) close(errors);
        (void) close(copy);
        (void) close(other);
}

int main(void) {
        pid_t self = getpid();

        if (syscall(SYS_kcmp, self, self, KCMP_FILE, 0, 0) < 0) {
                (void) fprintf(stderr, "kcmp() is refused here: %s\n", strerror(errno));
                return 77;
        }
        return TEST_MAIN(TEST(an_event_belongs_to_the_open_file));
}
