/* SPDX-License-Identifier: Apache-2.0 */

/* Prints the events of a card source, a line of JSON each, until SIGTERM:
 *
 *     show-cards [library=PATH] [root=PATH] [known=FILE] [deadline=MS] [rescan=MS] [backoff=MS]
 *                [quiet=MS]
 *     {"cards":[...]}
 *     {"trouble":"..."}
 *
 * SIGUSR1 calls card_source_rescan(). */

#include <errno.h>
#include <signal.h>

#include "base/file.h"
#include "gpu/cards/card_source.h"
#include "wire/json_write.h"

static void print(Buf *line) {
        buf_append_char(line, '\n');
        if (buf_result(line) == 0)
                (void) fwrite(line->data, 1, line->len,
                              stdout); /* SIGPIPE ends us when the reader has ended */
        (void) fflush(stdout);
}

static void on_cards(void *userdata, const CardList *cards) {
        _cleanup_buf_ Buf line = BUF_NULL;

        card_list_write(cards, &line);
        print(&line);
}

static void on_trouble(void *userdata, const Fault *fault) {
        _cleanup_buf_ Buf line = BUF_NULL;
        JsonWriter w;

        json_write_init(&w, &line);
        json_write_object(&w, NULL);
        json_write_text(&w, "trouble", fault->text);
        json_write_object_end(&w);
        print(&line);
}

static int on_rescan(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        card_source_rescan(userdata);
        return 0;
}

static int read_known(const char *path, CardList *ret) {
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r;

        r = file_read(path, 1024 * 1024, &text);
        if (r < 0)
                return r;
        r = card_list_read(buf_str(&text), ret, &fault);
        if (r > 0)
                (void) fprintf(stderr, "%s: %s\n", path, fault.text);
        return r > 0 ? -EINVAL : r;
}

static int set_option(CardSourceOptions *o, CardList *known, const char *argument) {
        Str value = str_from(argument), name = str_split(&value, '=');
        uint64_t msec = 0;

        if (str_eq(name, STR("library")))
                o->library = value.data;
        else if (str_eq(name, STR("root")))
                o->host_root = value.data;
        else if (str_eq(name, STR("known"))) {
                o->known = known;
                return read_known(value.data, known);
        } else if (!str_to_u64(value, &msec))
                return -EINVAL;
        else if (str_eq(name, STR("deadline")))
                o->deadline = msec * USEC_PER_MSEC;
        else if (str_eq(name, STR("rescan")))
                o->rescan = msec * USEC_PER_MSEC;
        else if (str_eq(name, STR("backoff")))
                o->backoff = msec * USEC_PER_MSEC;
        else if (str_eq(name, STR("quiet")))
                o->quiet = msec * USEC_PER_MSEC;
        else
                return -EINVAL;
        return 0;
}

static int run(const CardSourceOptions *o) {
        static const CardSourceHandler handler = {on_cards, on_trouble};
        _cleanup_(card_source_freep) CardSource *s = NULL;
        sd_event *event;
        sigset_t mask;
        int r;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGUSR1);
        (void) sigprocmask(SIG_BLOCK, &mask, NULL);
        r = sd_event_new(&event);
        if (r >= 0)
                r = card_source_new(event, o, &handler, NULL, &s);
        if (r >= 0)
                r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
        if (r >= 0)
                r = sd_event_add_signal(event, NULL, SIGUSR1, on_rescan, s);
        if (r >= 0)
                r = sd_event_loop(event);
        s = card_source_free(s);
        sd_event_unref(event);
        return r;
}

int main(int argc, char **argv) {
        _cleanup_(card_list_done) CardList known = {0};
        CardSourceOptions o = {0};

        for (int i = 1; i < argc; i++)
                if (set_option(&o, &known, argv[i]) < 0) {
                        (void) fprintf(stderr, "%s: not understood\n", argv[i]);
                        return 2;
                }
        return run(&o) < 0 ? 3 : 0;
}
