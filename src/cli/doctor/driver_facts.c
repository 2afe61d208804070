/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/driver_facts.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "gpu/cards/child.h"
#include "gpu/cards/probe_report.h"

typedef struct DriverScan {
        HostFacts *facts;
        int fd;
        usec_t end;
} DriverScan;

static int add_card(CardList *list, const ProbeReport *report) {
        MachineCard *cards = reallocarray(list->cards, list->n + 1, sizeof *cards);

        if (!cards)
                return -ENOMEM;
        list->cards = cards;
        probe_report_card(report, &cards[list->n++]);
        return 0;
}

/* Waits for the next record. Returns false when the time is over or the child has ended. */
static bool next_report(const DriverScan *scan, ProbeReport *ret, Fault *fault) {
        for (;;) {
                struct pollfd p = {.fd = scan->fd, .events = POLLIN};
                usec_t now = clock_monotonic_usec();
                char bytes[sizeof *ret + 1];
                ssize_t n;

                if (now >= scan->end)
                        return fault_set(fault, 0, "the driver does not answer in time");
                if (poll(&p, 1, (int) ((scan->end - now) / USEC_PER_MSEC) + 1) <= 0)
                        continue;
                n = recv(scan->fd, bytes, sizeof bytes, 0);
                if (n == 0)
                        return fault_set(fault, 0, "the process that asked the driver has ended");
                if (n > 0)
                        return probe_report_read(bytes, (size_t) n, ret) == 0 ||
                               fault_set(fault, 0, "the process that asked the driver sends nonsense");
                if (errno != EAGAIN && errno != EINTR)
                        return fault_set(fault, 0, "recv: %s", strerror(errno));
        }
}

static int scan_cards(DriverScan *scan) {
        Fault fault = FAULT_NULL;
        HostFacts *h = scan->facts;
        ProbeReport report;

        while (next_report(scan, &report, &fault)) {
                int r = 0;

                if (report.kind == REPORT_READY)
                        fact_know(&h->nvml, str_dup(str_from(report.text)), false);
                else if (report.kind == REPORT_CARD)
                        r = add_card(&h->cards, &report);
                else if (report.kind == REPORT_FAILED)
                        (void) fault_set(&fault, 0, "%s", report.text);
                if (r < 0 || report.kind == REPORT_END)
                        return r;
                if (report.kind == REPORT_FAILED)
                        break;
        }
        fact_fail(&h->nvml, EIO, "NVML");
        h->nvml.why = fault;
        return 0;
}

int driver_facts_read(HostFacts *h, const char *library, usec_t timeout) {
        _cleanup_buf_ Buf ctl = BUF_NULL;
        const ProbeRequest request = {.request = 1, .fresh = 1};
        DriverScan scan = {.facts = h, .end = clock_monotonic_usec() + timeout};
        ProbeOptions options = {.library = library, .turn = USEC_PER_SEC};
        CardChild child;
        int r, status;

        buf_appendf(&ctl, "%s/nvidiactl", h->driver);
        if (buf_result(&ctl) < 0)
                return -ENOMEM;
        options.ctl = ctl.data;
        options.host_root = strcmp(h->root, "/") == 0 ? "" : h->root;
        r = card_child_start(&options, &child);
        if (r < 0) {
                fact_fail(&h->nvml, -r, "fork");
                return 0;
        }
        scan.fd = child.fd;
        r = send(child.fd, &request, sizeof request, MSG_NOSIGNAL) < 0 ? 0 : scan_cards(&scan);
        card_child_kill(&child);
        /* a child that hangs in the driver does not end, and is not waited for */
        (void) card_child_reap(child.pid, &status);
        return r;
}
