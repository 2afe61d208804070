/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "local/apiserver/store.h"

/* The store as a program, for black-box tests and benchmarks that need it in its own process. It
 * prints its URL and serves until its standard input ends. Lines on standard input set faults:
 *
 *     fault KIND COUNT METHOD|- PATH|- [NUMBER]
 *             KIND: status, lose, cut, cut-watch, delay; NUMBER: status or microseconds
 *     vanish
 *     return
 *     forget */

static int inject(Store *store, const char *line) {
        static const char *const kinds[] = {
                [STORE_FAULT_STATUS] = "status", [STORE_FAULT_LOSE_ANSWER] = "lose",
                [STORE_FAULT_CUT] = "cut",       [STORE_FAULT_CUT_WATCH] = "cut-watch",
                [STORE_FAULT_DELAY] = "delay",
        };
        char kind[16] = "", method[16] = "", path[256] = "";
        StoreFault fault = {.retry_after = 1};
        unsigned number = 0;

        if (sscanf(line, "fault %15s %u %15s %255s %u", kind, &fault.count, method, path, &number) < 4)
                return -EINVAL;
        fault.method = method[0] == '-' ? NULL : method;
        fault.path_prefix = path[0] == '-' ? NULL : path;
        fault.status = number;
        fault.delay_usec = number;
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (strcmp(kinds[i], kind) == 0) {
                        fault.kind = (StoreFaultKind) i;
                        return store_inject(store, &fault);
                }
        return -EINVAL;
}

static int obey(Store *store, const char *line) {
        if (strncmp(line, "fault ", 6) == 0)
                return inject(store, line);
        if (strncmp(line, "vanish", 6) == 0)
                return store_vanish(store, true);
        if (strncmp(line, "return", 6) == 0)
                return store_vanish(store, false);
        if (strncmp(line, "forget", 6) != 0)
                return -EINVAL;
        store_forget_history(store);
        return 0;
}

/* Reads one line at a time. Each is answered by ok or an errno. */
static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        char line[512];
        ssize_t n = read(fd, line, sizeof line - 1);
        int r;

        if (n <= 0)
                return sd_event_exit(sd_event_source_get_event(source), 0);
        line[n] = '\0';
        r = obey(userdata, line);
        (void) printf("%s %d\n", r < 0 ? "error" : "ok", -r);
        (void) fflush(stdout); /* a failure means that the reader has ended */
        return 0;
}

int main(int argc, char **argv) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(store_freep) Store *store = NULL;
        StoreOptions options = {.listen = argc > 1 ? argv[1] : NULL};
        Fault fault = FAULT_NULL;
        uint64_t history = 0;

        if (argc > 2 && str_to_u64(str_from(argv[2]), &history))
                options.history = (size_t) history;
        (void) signal(SIGPIPE, SIG_IGN);
        if (sd_event_new(&event) < 0 || store_new(event, &options, &store, &fault) < 0) {
                (void) fprintf(stderr, "store-server: %s\n", fault.text);
                return 3;
        }
        if (sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_input, store) < 0)
                return 3;
        (void) printf("%s\n", store_url(store));
        (void) fflush(stdout);
        return sd_event_loop(event) < 0 ? 3 : 0;
}
