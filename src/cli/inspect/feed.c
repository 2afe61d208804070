/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/feed.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "wire/json.h"
#include "wire/object.h"
#include "wire/text_form.h"

/* An API server stores no object over 1.5 MiB; indentation multiplies that. */
enum { OBJECT_MAX = 16 * 1024 * 1024, PIECE = 1024 * 1024 };

/* Takes the list's kind. "PodList" gives the kind of its items; the items of a "List" name their
 * own. */
static int take_kind(Feed *f, Str value, Fault *fault) {
        Str text = {0}, suffix = STR("List");
        JsonReader r;

        json_init(&r, value);
        json_string(&r, &f->arena, &text);
        if (json_finish(&r, fault) != 0)
                return fault_wrap(fault, FEED_E_MALFORMED, "kind");
        if (text.len < suffix.len || !str_eq((Str){text.data + text.len - suffix.len, suffix.len}, suffix))
                return fault_set(fault, FEED_E_MALFORMED, "kind is \"" STR_FMT "\", must be a List",
                                 STR_ARG(text));
        f->is_list = true;
        text.len -= suffix.len;
        f->kind = arena_str(&f->arena, text);
        return f->kind.data ? 0 : -ENOMEM;
}

static int add_item(Feed *f, Str value, Fault *fault) {
        Str kind = f->kind;
        int r;

        if (f->only.len > 0) {
                arena_reset(&f->scratch);
                r = kind.len > 0 ? 0 : object_kind(value, &f->scratch, &kind, fault);
                if (r != 0)
                        return r;
                if (!str_eq(kind, f->only))
                        return 0;
        }
        return inspect_add(f->inspect, kind, value, fault);
}

static int take_item(Feed *f, Str value) {
        Fault why = FAULT_NULL;
        int r;

        f->is_list = true;
        r = add_item(f, value, &why);
        if (r < 0)
                return r;
        if (why.text[0]) {
                (void) fault_wrap(&why, 0, "%s: items[%zu]", f->source, f->n_items);
                f->warn(f->userdata, why.text);
        }
        f->n_left_out += r != 0;
        f->n_items++;
        return 0;
}

static int take_member(void *userdata, Str member, Str value, Fault *fault) {
        Feed *f = userdata;

        if (str_eq(member, STR("items")))
                return take_item(f, value);
        if (str_eq(member, STR("kind")))
                return take_kind(f, value, fault);
        return 0;
}

int feed_init(Feed *f) {
        return json_stream_new(JSON_STREAM_LIST, OBJECT_MAX, take_member, f, &f->stream);
}

void feed_done(Feed *f) {
        f->stream = json_stream_free(f->stream);
        arena_done(&f->arena);
        arena_done(&f->scratch);
}

static int verdict_of(const Feed *f, int r, Fault *fault) {
        if (r <= 0)
                return r;
        return fault_wrap(fault, FEED_E_MALFORMED, "%s", f->source);
}

/* Some editors and shells write a byte order mark before the text; JSON has none. */
static Str without_mark(Str bytes) {
        static const Str mark = STR("\xef\xbb\xbf");

        return str_has_prefix(bytes, mark) ? (Str){bytes.data + mark.len, bytes.len - mark.len} : bytes;
}

/* Whether the text begins as a table of kubectl does: with NAME or NAMESPACE and blanks. */
static bool is_table(Str text) {
        static const Str heads[] = {STR("NAME "), STR("NAMESPACE "), STR("LAST SEEN ")};

        for (size_t i = 0; i < ELEMENTSOF(heads); i++)
                if (str_has_prefix(text, heads[i]))
                        return true;
        return false;
}

/* Checks the first bytes. YAML begins with a key, a dash or a comment, and JSON with a brace. */
static int check_form(Str bytes, Fault *fault) {
        const char *wrong = text_form_wrong(bytes), *is = NULL;
        Str rest = str_trim(bytes), line = str_split(&rest, '\n');
        char first = line.len > 0 ? line.data[0] : '{';

        if (wrong)
                return fault_set(fault, FEED_E_MALFORMED, "%s", wrong);
        if (is_table(line))
                is = "is a table";
        else if (strchr("#-%", first) || (isalpha((unsigned char) first) && memchr(line.data, ':', line.len)))
                is = "is YAML";
        else if (first == '[')
                is = "is an array and no List";
        else if (isalpha((unsigned char) first))
                is = "is no JSON";
        return is ? fault_set(fault, FEED_E_MALFORMED, "%s; what kubectl get -o json prints is read", is) : 0;
}

int feed_bytes(Feed *f, Str bytes, Fault *fault) {
        if (!f->begun) {
                bytes = without_mark(bytes);
                if (check_form(bytes, fault) != 0)
                        return verdict_of(f, FEED_E_MALFORMED, fault);
        }
        f->begun = true;
        return verdict_of(f, json_stream_feed(f->stream, bytes, fault), fault);
}

int feed_end(Feed *f, Fault *fault) {
        int r;

        f->at_end = true;
        r = json_stream_finish(f->stream, fault);
        if (r == 0 && !f->is_list)
                r = fault_set(fault, FEED_E_MALFORMED, "neither kind nor items, must be a List");
        return verdict_of(f, r, fault);
}

int feed_fd(Feed *f, int fd, Fault *fault) {
        _cleanup_free_ char *piece = malloc(PIECE);

        if (!piece)
                return -ENOMEM;
        for (;;) {
                ssize_t n = read(fd, piece, PIECE);
                int r;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        r = -errno;
                        return fault_set(fault, r, "%s: %s", f->source, strerror(-r));
                }
                if (n == 0)
                        return feed_end(f, fault);
                r = feed_bytes(f, (Str){piece, (size_t) n}, fault);
                if (r != 0)
                        return r;
        }
}
