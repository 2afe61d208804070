/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/hung_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

enum { ROOM = 4096 }; /* several lines; a line that does not fit is not the arbiter's */

struct HungReader {
        sd_event_source *source;
        void (*on_kernel)(void *userdata, const HungKernel *kernel);
        void *userdata;
        uint64_t count;
        char text[ROOM];
        size_t n;
};

static bool take_verb(Str verb, HungKernel *ret) {
        const Str still = STR("still-");

        ret->again = str_has_prefix(verb, still);
        if (ret->again)
                verb = (Str){verb.data + still.len, verb.len - still.len};
        ret->part = str_eq(verb, STR("part"));
        return ret->part || str_eq(verb, STR("hung"));
}

bool hung_reader_parse(Str line, HungKernel *ret) {
        HungKernel k = {0};
        Str name;

        if (!take_verb(str_split(&line, ' '), &k) || !str_to_u64(str_split(&line, ' '), &k.nsec))
                return false;
        k.slice = str_split(&line, ' ');
        k.uuid = str_split(&line, ' ');
        name = line;
        k.namespace_ = str_split(&name, '/');
        k.pod = str_split(&name, '/');
        k.container = name;
        if (str_is_empty(k.uuid) || str_is_empty(k.namespace_) || str_is_empty(k.pod) ||
            str_is_empty(k.container))
                return false;
        *ret = k;
        return true;
}

static void take_line(HungReader *h, Str line) {
        HungKernel kernel;

        if (!hung_reader_parse(line, &kernel)) {
                h->count++;
                log_warning("a kernel does not end: %.*s", STR_ARG(line));
                return;
        }
        h->count += !kernel.again;
        h->on_kernel(h->userdata, &kernel);
}

static void take_lines(HungReader *h) {
        size_t begin = 0;
        const char *end;

        while ((end = memchr(h->text + begin, '\n', h->n - begin))) {
                take_line(h, (Str){h->text + begin, (size_t) (end - h->text) - begin});
                begin = (size_t) (end - h->text) + 1;
        }
        if (begin == 0 && h->n == sizeof h->text)
                begin = h->n;
        memmove(h->text, h->text + begin, h->n - begin);
        h->n -= begin;
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        HungReader *h = userdata;
        ssize_t n = read(fd, h->text + h->n, sizeof h->text - h->n);

        if (n > 0) {
                h->n += (size_t) n;
                take_lines(h);
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR))
                h->source = sd_event_source_disable_unref(h->source);
        return 0;
}

int hung_reader_new(sd_event *event, int fd, void (*on_kernel)(void *userdata, const HungKernel *kernel),
                    void *userdata, HungReader **ret) {
        HungReader *h = calloc(1, sizeof *h);
        int r;

        if (!h)
                return -ENOMEM;
        h->on_kernel = on_kernel;
        h->userdata = userdata;
        r = fd < 0 ? 0 : sd_event_add_io(event, &h->source, fd, EPOLLIN, on_readable, h);
        if (r < 0) {
                hung_reader_free(h);
                return r;
        }
        *ret = h;
        return 0;
}

HungReader *hung_reader_free(HungReader *h) {
        if (h)
                sd_event_source_disable_unref(h->source);
        free(h);
        return NULL;
}

uint64_t hung_reader_count(const HungReader *h) {
        return h ? h->count : 0;
}
