/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/probe.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/file.h"
#include "gpu/cards/probe-internal.h"

enum {
        EVENTS_PER_TURN = 64,
        EVENT_WAIT_MSEC = 10, /* per poll for events; between polls the socket is polled */
};

int probe_send(const Probe *p, const ProbeReport *r) {
        ssize_t n;

        do
                n = send(p->fd, r, sizeof *r, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

static int send_failed(const Probe *p, uint32_t request, const char *what, const char *words) {
        ProbeReport r = {.kind = REPORT_FAILED, .request = request, .session = p->session};

        (void) snprintf(r.text, sizeof r.text, "%s%s%.140s", what, what[0] != '\0' ? ": " : "", words);
        return probe_send(p, &r);
}

/* --- sessions --------------------------------------------------------------------------------- */

static int count_listed(const Probe *p) {
        _cleanup_buf_ Buf path = BUF_NULL;
        const struct dirent *entry;
        DIR *folder;
        int n = 0;

        buf_appendf(&path, "%s/proc/driver/nvidia/gpus", p->o->host_root);
        folder = buf_result(&path) == 0 ? opendir(path.data) : NULL;
        if (!folder)
                return -1;
        while ((entry = readdir(folder)))
                if (entry->d_name[0] != '.')
                        n++;
        (void) closedir(folder);
        return n;
}

static void close_session(Probe *p) {
        if (p->watching && p->nvml.events_free)
                /* on failure the end of the session frees it */
                (void) p->nvml.events_free(p->events);
        if (p->open)
                /* A failure cannot be handled; a lasting error shows at the next init. */
                (void) p->nvml.shutdown();
        p->open = p->watching = p->alarmed = false;
        p->n_cards = p->n_watched = 0;
}

/* Returns 0, or NVML_E_NONE with a fault. */
static int open_session(Probe *p, Fault *fault) {
        int r;

        if (!p->loaded && nvml_load(p->o->library, p->o->host_root, &p->nvml, fault) != 0)
                return NVML_E_NONE;
        p->loaded = true;
        p->listed = count_listed(p); /* read first, so that a card that appears now is a change */
        r = p->nvml.init();
        if (r != NVML_SUCCESS)
                return fault_set(fault, NVML_E_NONE, "NVML cannot be initialised: %s",
                                 nvml_error_text(&p->nvml, r));
        p->open = true;
        p->session++;
        return 0;
}

static bool is_watched(const Probe *p, NvmlDevice device) {
        for (size_t i = 0; i < p->n_watched; i++)
                if (p->watched[i] == device)
                        return true;
        return false;
}

/* Registers cards that are not watched yet: all at first, later those that the first scan could not
 * identify. */
static int watch_cards(Probe *p) {
        int r = NVML_SUCCESS;

        for (size_t i = 0; i < p->n_cards && p->n_watched < CARDS_MAX; i++) {
                int added;

                if (is_watched(p, p->cards[i].device))
                        continue;
                added = p->nvml.events_add(p->cards[i].device, NVML_EVENT_XID, p->events);
                if (added == NVML_SUCCESS)
                        p->watched[p->n_watched++] = p->cards[i].device;
                else
                        r = added;
        }
        return r;
}

static void watch_events(Probe *p) {
        int r = NVML_SUCCESS;

        p->no_events[0] = '\0';
        if (!p->nvml.events_new || !p->nvml.events_add || !p->nvml.events_wait) {
                (void) snprintf(p->no_events, sizeof p->no_events, "the library has no events");
                return;
        }
        if (!p->watching)
                r = p->nvml.events_new(&p->events);
        p->watching = r == NVML_SUCCESS;
        if (p->watching)
                r = watch_cards(p);
        if (r != NVML_SUCCESS && p->n_watched == 0)
                (void) snprintf(p->no_events, sizeof p->no_events, "%s", nvml_error_text(&p->nvml, r));
}

/* --- one scan --------------------------------------------------------------------------------- */

/* On an error the version is "": the scan of the cards goes on. */
static void query_driver(const Probe *p, char ret[static NVML_TEXT_SIZE]) {
        if (!p->nvml.driver || p->nvml.driver(ret, NVML_TEXT_SIZE) != NVML_SUCCESS)
                ret[0] = '\0';
        ret[NVML_TEXT_SIZE - 1] = '\0';
}

static bool has_conf_compute(const Probe *p) {
        NvmlConfComputeState state = {0};

        return p->nvml.conf_compute && p->nvml.conf_compute(&state) == NVML_SUCCESS && state.feature == 1;
}

/* Whether locking nvidiactl fails for lack of support. If it cannot be opened, that is not known:
 * false. */
static bool lacks_locks(const Probe *p) {
        int r = file_check_locks(p->o->ctl);

        return r == -ENOLCK || r == -EINVAL;
}

static int scan_cards(Probe *p, const ProbeRequest *q) {
        ProbeReport ready = {.kind = REPORT_READY, .request = q->request}, end;
        Fault fault = FAULT_NULL;
        unsigned total = 0;
        int r;

        if (p->open && (q->fresh || count_listed(p) != p->listed))
                close_session(p);
        if (!p->open && open_session(p, &fault) != 0)
                return send_failed(p, q->request, "", fault.text);
        ready.session = p->session;
        query_driver(p, ready.text);
        ready.number = lacks_locks(p);
        ready.value = has_conf_compute(p);
        r = probe_send(p, &ready);
        if (r < 0)
                return r;
        r = p->nvml.count(&total);
        if (r != NVML_SUCCESS)
                return send_failed(p, q->request, "NVML cannot count the cards",
                                   nvml_error_text(&p->nvml, r));
        r = probe_scan_cards(p, q->request, total);
        if (r == 0)
                r = probe_scan_links(p, q->request);
        if (r < 0)
                return r;
        watch_events(p);
        end = (ProbeReport){
                .kind = REPORT_END, .request = q->request, .session = p->session, .number = total};
        (void) snprintf(end.text, sizeof end.text, "%s", p->no_events);
        return probe_send(p, &end);
}

/* --- events ----------------------------------------------------------------------------------- */

static int send_xid(const Probe *p, const NvmlEvent *e) {
        ProbeReport r = {.kind = REPORT_XID, .session = p->session, .value = e->data};

        for (size_t i = 0; i < p->n_cards; i++)
                if (p->cards[i].device == e->device) {
                        memcpy(r.uuid, p->cards[i].uuid, sizeof r.uuid);
                        return probe_send(p, &r);
                }
        return 0; /* a card that the scan could not identify; scans report it */
}

static int look_for_events(Probe *p) {
        for (int i = 0; i < EVENTS_PER_TURN; i++) {
                NvmlEvent e = {0};
                int r = p->nvml.events_wait(p->events, &e, EVENT_WAIT_MSEC);

                if (r == NVML_ERROR_TIMEOUT)
                        return 0;
                /* usually a lost card. Reported once per session, because the error may persist */
                if (r != NVML_SUCCESS) {
                        ProbeReport alarm = {.kind = REPORT_ALARM, .session = p->session};
                        bool first = !p->alarmed;

                        p->alarmed = true;
                        return first ? probe_send(p, &alarm) : 0;
                }
                r = e.type == NVML_EVENT_XID ? send_xid(p, &e) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

/* --- the loop --------------------------------------------------------------------------------- */

/* Milliseconds until the next periodic task; -1: none. */
static int next_timeout(const Probe *p) {
        usec_t turn = p->watching ? p->o->turn : 0;

        if (p->open && p->o->census > 0 && (turn == 0 || p->o->census < turn))
                turn = p->o->census;
        return turn > 0 ? (int) (turn / USEC_PER_MSEC) : -1;
}

/* Returns 1 when a request was answered, 0 when none came. Negative: the other end is gone, or its
 * request is invalid. */
static int serve_request(Probe *p) {
        struct pollfd ready = {.fd = p->fd, .events = POLLIN};
        ProbeRequest q;
        ssize_t n;
        int r;

        r = poll(&ready, 1, next_timeout(p));
        if (r <= 0)
                return r < 0 && errno != EINTR ? -errno : 0;
        n = recv(p->fd, &q, sizeof q, 0);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n != sizeof q || !memchr(q.limit.path, '\0', sizeof q.limit.path) ||
            !memchr(q.limit.uuid, '\0', sizeof q.limit.uuid))
                return -EPIPE;
        r = q.limit.path[0] != '\0' ? probe_limit(p, &q) : scan_cards(p, &q);
        return r < 0 ? r : 1;
}

int probe_run(int fd, const ProbeOptions *options) {
        _cleanup_free_ Probe *p = calloc(1, sizeof *p);
        int r = 0;

        if (!p)
                return 1;
        p->fd = fd;
        p->o = options;
        while (r >= 0) {
                r = serve_request(p);
                if (r == 0 && p->watching)
                        r = look_for_events(p);
                if (r == 0)
                        r = probe_census(p);
        }
        probe_census_done(p);
        return r == -EPIPE ? 0 : 1;
}
