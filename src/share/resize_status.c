/* SPDX-License-Identifier: Apache-2.0 */
#include "share/resize_status.h"

#define REFUSED  "refused: "
#define WAITS    "waits: "
#define IN_FORCE "in force: "
#define BETWEEN  "; "

static void write_container(const ResizeInForce *c, Buf *out) {
        buf_appendf(out, "container %u: gpu-mem %u of %u", c->index, c->size.mem, c->limit.mem);
        if (c->limit.core > 0)
                buf_appendf(out, ", gpu-core %u of %u", c->size.core, c->limit.core);
}

static void write_status(const char *word, Str why, const ResizeInForce *list, size_t n, Buf *out) {
        if (!str_is_empty(why))
                buf_appendf(out, "%s" STR_FMT "%s", word, STR_ARG(why), n > 0 ? BETWEEN : "");
        for (size_t i = 0; i < n; i++) {
                buf_append_str(out, i == 0 ? STR(IN_FORCE) : STR(BETWEEN));
                write_container(&list[i], out);
        }
}

void resize_status_write(Str refused, const ResizeInForce *list, size_t n, Buf *out) {
        write_status(REFUSED, refused, list, n, out);
}

void resize_status_write_waiting(Str waits, const ResizeInForce *list, size_t n, Buf *out) {
        write_status(WAITS, waits, list, n, out);
}

/* ---- reading ---- */

static Str skip(Str s, size_t n) {
        return (Str){s.data + n, s.len - n};
}

static bool take(Str *s, Str text) {
        if (!str_has_prefix(*s, text))
                return false;
        *s = skip(*s, text.len);
        return true;
}

static bool take_number(Str *s, uint32_t *ret) {
        size_t n = 0;

        while (n < s->len && s->data[n] >= '0' && s->data[n] <= '9')
                n++;
        if (!str_to_u32((Str){s->data, n}, ret))
                return false;
        *s = skip(*s, n);
        return true;
}

static bool take_size(Str *s, Str before, uint32_t *ret_size, uint32_t *ret_limit) {
        return take(s, before) && take_number(s, ret_size) && take(s, STR(" of ")) &&
               take_number(s, ret_limit);
}

static bool take_container(Str *s, ResizeInForce *ret) {
        *ret = (ResizeInForce){.index = 0};
        if (!take(s, STR("container ")) || !take_number(s, &ret->index) ||
            !take_size(s, STR(": gpu-mem "), &ret->size.mem, &ret->limit.mem))
                return false;
        return str_is_empty(*s) || !str_has_prefix(*s, STR(", ")) ||
               take_size(s, STR(", gpu-core "), &ret->size.core, &ret->limit.core);
}

/* Finds the last "in force: ". A refusal, which comes before it, may quote these words. */
static size_t find_in_force(Str text) {
        for (size_t at = text.len; at-- > 0;)
                if (str_has_prefix(skip(text, at), STR(IN_FORCE)))
                        return at;
        return text.len;
}

static bool read_status(Str text, ResizeStatus *s) {
        size_t at = find_in_force(text);
        Str before = {text.data, at}, list = skip(text, at);

        Str *why = take(&before, STR(REFUSED)) ? &s->refused : take(&before, STR(WAITS)) ? &s->waits : NULL;

        if (!why && at > 0)
                return false;
        if (why && at < text.len && before.len < strlen(BETWEEN))
                return false;
        if (why)
                *why = (Str){before.data, before.len - (at < text.len ? strlen(BETWEEN) : 0)};
        if (!take(&list, STR(IN_FORCE)))
                return str_is_empty(list);
        do {
                if (s->n == ELEMENTSOF(s->list) || !take_container(&list, &s->list[s->n++]))
                        return false;
        } while (take(&list, STR(BETWEEN)));
        return str_is_empty(list);
}

int resize_status_read(Str text, ResizeStatus *ret) {
        *ret = (ResizeStatus){.n = 0};
        if (read_status(text, ret))
                return 0;
        *ret = (ResizeStatus){.n = 0};
        return RESIZE_STATUS_E_MALFORMED;
}

const ResizeInForce *resize_status_find(const ResizeStatus *s, uint32_t index) {
        for (size_t i = 0; i < s->n; i++)
                if (s->list[i].index == index)
                        return &s->list[i];
        return NULL;
}

bool resize_status_differs(const ResizeStatus *s) {
        for (size_t i = 0; i < s->n; i++)
                if (s->list[i].size.mem != s->list[i].limit.mem ||
                    s->list[i].size.core != s->list[i].limit.core)
                        return true;
        return false;
}

bool resize_status_fulfils(const ResizeStatus *s, Str mem, Str core) {
        ResizeLimit limits[RESIZE_STATUS_CONTAINERS];
        ResizeSize wanted[RESIZE_STATUS_CONTAINERS];

        for (size_t i = 0; i < s->n; i++)
                limits[i] = (ResizeLimit){.index = s->list[i].index,
                                          .mem = s->list[i].limit.mem,
                                          .core = s->list[i].limit.core,
                                          .cards = 1,
                                          .grows = true};
        if (resize_request_read(mem, core, limits, s->n, wanted, NULL) != 0)
                return false;
        for (size_t i = 0; i < s->n; i++)
                if (wanted[i].mem != s->list[i].size.mem || wanted[i].core != s->list[i].size.core)
                        return false;
        return true;
}
