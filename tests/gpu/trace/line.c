/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int) TRACE_OUTER <= (int) TRACE_INNER && (int) TRACE_LIST <= (int) TRACE_INNER,
               "one size of buffer holds all");

static int digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to `stop`; the number of bytes, or -1. */
static long take_hex(const char **text, char stop, uint8_t *ret, size_t max) {
        const char *p = *text;
        size_t n = 0;

        for (; *p != stop; p += 2) {
                if (digit(p[0]) < 0 || digit(p[1]) < 0 || n == max)
                        return -1;
                ret[n++] = (uint8_t) (digit(p[0]) << 4 | digit(p[1]));
        }
        *text = p;
        return (long) n;
}

static bool take_bytes(const char *text, TraceBytes *ret, size_t max) {
        long before = take_hex(&text, '/', ret->before, max), after;

        if (before < 0)
                return false;
        text++;
        after = take_hex(&text, '\0', ret->after, max);
        ret->n = (size_t) before;
        return after == before;
}

static bool take_number(const char *text, uint64_t *ret) {
        char *end;

        if (digit(text[0]) < 0)
                return false;
        *ret = strtoull(text, &end, 0);
        return *end == '\0';
}

static bool take_small(const char *text, uint32_t *ret) {
        uint64_t value;

        if (!take_number(text, &value) || value > UINT32_MAX)
                return false;
        *ret = (uint32_t) value;
        return true;
}

static bool take_signed(const char *text, int64_t *ret) {
        bool negative = text[0] == '-';
        uint64_t value;

        if (!take_number(text + negative, &value) || value > INT64_MAX)
                return false;
        *ret = negative ? -(int64_t) value : (int64_t) value;
        return true;
}

static bool take_text(const char *text, char *ret, size_t size) {
        if (strlen(text) >= size)
                return false;
        for (size_t i = 0; i <= strlen(text); i++)
                ret[i] = text[i];
        return true;
}

static bool take_numbers(const char *name, const char *value, TraceEvent *e, bool *known) {
        const struct {
                const char *name;
                uint64_t *to;
        } long_[] = {{"pid", &e->pid},   {"tid", &e->tid},       {"at", &e->at},        {"ns", &e->ns},
                     {"addr", &e->addr}, {"length", &e->length}, {"offset", &e->offset}};
        const struct {
                const char *name;
                uint32_t *to;
        } short_[] = {{"nr", &e->nr},
                      {"size", &e->size},
                      {"inner-size", &e->inner_size},
                      {"prot", &e->prot},
                      {"flags", &e->flags}};

        *known = true;
        for (size_t i = 0; i < sizeof long_ / sizeof *long_; i++)
                if (strcmp(name, long_[i].name) == 0)
                        return take_number(value, long_[i].to);
        for (size_t i = 0; i < sizeof short_ / sizeof *short_; i++)
                if (strcmp(name, short_[i].name) == 0)
                        return take_small(value, short_[i].to);
        *known = false;
        return false;
}

static bool take_field(const char *name, const char *value, TraceEvent *e) {
        uint32_t flag = 0;
        bool known, good = take_numbers(name, value, e, &known);

        if (known)
                return good;
        if (strcmp(name, "r") == 0)
                return take_signed(value, &e->r);
        if (strcmp(name, "file") == 0)
                return take_text(value, e->file, sizeof e->file);
        if (strcmp(name, "what") == 0)
                return take_text(value, e->what, sizeof e->what);
        if (strcmp(name, "where") == 0)
                return take_text(value, e->where, sizeof e->where);
        if (strcmp(name, "outer") == 0)
                return take_bytes(value, &e->outer, TRACE_OUTER);
        if (strcmp(name, "inner") == 0)
                return take_bytes(value, &e->inner, TRACE_INNER);
        if (strcmp(name, "list") == 0)
                return take_bytes(value, &e->list, TRACE_LIST);
        if (strcmp(name, "xfer") == 0 && take_small(value, &flag) && flag <= 1) {
                e->transfer = (int) flag;
                return true;
        }
        return false;
}

static TraceVerb verb_of(const char *word) {
        static const char *const verbs[] = {
                [TRACE_IOCTL] = "ioctl",       [TRACE_MMAP] = "mmap",     [TRACE_MUNMAP] = "munmap",
                [TRACE_MPROTECT] = "mprotect", [TRACE_VECTOR] = "vector",
        };

        for (size_t i = TRACE_IOCTL; i <= TRACE_VECTOR; i++)
                if (strcmp(word, verbs[i]) == 0)
                        return (TraceVerb) i;
        return 0;
}

static bool take_words(char *line, TraceEvent *ret) {
        char *save = NULL, *word = strtok_r(line, " ", &save);

        ret->verb = word ? verb_of(word) : 0;
        if (ret->verb == 0)
                return false;
        while ((word = strtok_r(NULL, " ", &save))) {
                char *value = strchr(word, '=');

                if (!value)
                        return false;
                *value++ = '\0';
                if (!take_field(word, value, ret))
                        return false;
        }
        return true;
}

int trace_parse(const char *line, TraceEvent *ret) {
        char *copy;
        bool good;

        if (line[0] == '\0' || line[0] == '#')
                return 1;
        *ret = (TraceEvent){.verb = 0};
        if (strlen(line) >= TRACE_LINE || !(copy = strdup(line)))
                return -1;
        good = take_words(copy, ret);
        free(copy);
        return good ? 0 : -1;
}
