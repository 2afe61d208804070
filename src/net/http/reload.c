/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/reload.h"

#include <errno.h>

#include "base/file.h"

#define INTERVAL (10 * USEC_PER_SEC)

enum { PEM_MAX = 1 << 20 };

struct HttpReload {
        HttpReloadOptions o;
        char *cert_path, *key_path;
        sd_event_source *timer;
        Buf cert, key; /* contents of the files at the last look */
        int error;     /* negative errno of the last attempt to read them; 0: none */
};

static int read_file(const char *path, Buf *into, Fault *fault) {
        int r = file_read(path, PEM_MAX, into);

        if (r < 0)
                return fault_set(fault, r, "cannot read %s: %s", path, strerror(-r));
        buf_append_char(into, '\0'); /* an empty file is an empty text */
        return buf_result(into);
}

static void pass(Buf *from, Buf *to) {
        if (to->data)
                explicit_bzero(to->data, to->len);
        buf_done(to);
        *to = *from;
        *from = BUF_NULL;
}

/* Result of look(): the files, or the error of reading them, are as at the last look. */
enum { SAME = 100 };

static int look(HttpReload *r, Fault *fault) {
        _cleanup_buf_ Buf cert = BUF_NULL, key = BUF_NULL;
        int q = read_file(r->cert_path, &cert, fault);

        if (q == 0)
                q = read_file(r->key_path, &key, fault);
        if (q < 0) {
                bool again = q == r->error;

                r->error = q;
                return again ? SAME : q;
        }
        r->error = 0;
        if (str_eq(buf_str(&cert), buf_str(&r->cert)) && str_eq(buf_str(&key), buf_str(&r->key))) {
                explicit_bzero(key.data, key.len);
                return SAME;
        }
        pass(&cert, &r->cert);
        pass(&key, &r->key);
        q = http_server_set_certificate(r->o.server, r->cert.data, r->key.data, fault);
        return q == 0 ? 0 : fault_wrap(fault, q, "%s and %s", r->cert_path, r->key_path);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        HttpReload *r = userdata;
        Fault fault = FAULT_NULL;
        int q = look(r, &fault);

        if (q == 0 && r->o.on_news)
                r->o.on_news(r->o.userdata, r->cert_path);
        if (q != 0 && q != SAME && r->o.on_trouble)
                r->o.on_trouble(r->o.userdata, &fault);
        q = sd_event_source_set_time_relative(source, r->o.interval);
        return q < 0 ? q : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int http_reload_new(sd_event *event, const HttpReloadOptions *options, HttpReload **ret, Fault *fault) {
        _cleanup_(http_reload_freep) HttpReload *r = calloc(1, sizeof *r);
        int q;

        if (!r)
                return -ENOMEM;
        r->o = *options;
        r->o.interval = r->o.interval > 0 ? r->o.interval : INTERVAL;
        r->cert_path = str_dup(str_from(options->cert));
        r->key_path = str_dup(str_from(options->key));
        if (!r->cert_path || !r->key_path)
                return -ENOMEM;
        q = look(r, fault);
        if (q != 0)
                return q;
        q = sd_event_add_time_relative(event, &r->timer, CLOCK_BOOTTIME, r->o.interval, 0, on_timer, r);
        if (q < 0)
                return q;
        *ret = TAKE_PTR(r);
        return 0;
}

HttpReload *http_reload_free(HttpReload *r) {
        Buf none = BUF_NULL;

        if (!r)
                return NULL;
        sd_event_source_disable_unref(r->timer);
        buf_done(&r->cert);
        pass(&none, &r->key);
        free(r->cert_path);
        free(r->key_path);
        free(r);
        return NULL;
}
