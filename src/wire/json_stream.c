/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json_stream.h"

#include <errno.h>
#include <inttypes.h>

#include "wire/json.h"
#include "wire/json_scan.h"

/* Two state machines, one in the other. The inner one finds the end of a value: it counts brackets
 * outside of strings, 64 bytes at a time, and looks at nothing else. The outer one reads the few
 * bytes around the values. Both keep their whole state in this struct between two pieces. A value
 * that lies within one piece is never copied. */

typedef enum StreamState {
        AT_TOP,           /* VALUES: between two values */
        AT_START,         /* LIST: before the object */
        AT_FIRST_KEY,     /* behind its {: a key or } */
        AT_KEY,           /* behind a comma */
        AT_COLON,         /* behind a key */
        AT_MEMBER,        /* behind the colon */
        AT_FIRST_ELEMENT, /* behind the [ of items: an element or ] */
        AT_ELEMENT,       /* behind a comma */
        AT_ELEMENT_END,   /* behind an element: a comma or ] */
        AT_MEMBER_END,    /* behind a member: a comma or } */
        AT_END,           /* behind the list */
} StreamState;

typedef enum Shape { SHAPE_NONE, SHAPE_NESTED, SHAPE_STRING, SHAPE_SCALAR } Shape;

struct JsonStream {
        JsonStreamKind kind;
        size_t max_value;
        JsonStreamValue deliver;
        void *userdata;
        bool skip_long;

        StreamState state;
        Shape shape; /* of the current value; SHAPE_NONE between values */
        size_t depth;
        bool in_string;
        bool escaped;  /* the next byte stands behind a backslash */
        bool skipping; /* the value is too long: its bytes are dropped */
        Buf held;      /* the value's bytes from earlier pieces */
        Buf key;       /* the current top-level key, without quotes */

        uint64_t offset; /* bytes of earlier pieces, for faults */
        int result;      /* 0, or the error that stopped the stream */
};

/* Frees the buffer when one long value has made it large: most values are small. */
enum { HELD_KEEP_MAX = 256 * 1024 };

int json_stream_new(JsonStreamKind kind, size_t max_value, JsonStreamValue value, void *userdata,
                    JsonStream **ret) {
        JsonStream *s = calloc(1, sizeof *s);

        if (!s)
                return -ENOMEM;
        s->kind = kind;
        s->max_value = max_value;
        s->deliver = value;
        s->userdata = userdata;
        s->state = kind == JSON_STREAM_LIST ? AT_START : AT_TOP;
        *ret = s;
        return 0;
}

JsonStream *json_stream_free(JsonStream *s) {
        if (!s)
                return NULL;
        buf_done(&s->held);
        buf_done(&s->key);
        free(s);
        return NULL;
}

void json_stream_skip_long(JsonStream *s) {
        s->skip_long = true;
}

/* ---- where a value ends ---- */

/* The bits of the bytes that a backslash escapes. Escapes are rare enough to take them one by
 * one. */
static uint64_t escaped_bits(uint64_t backslash, bool *escaped) {
        uint64_t bits = *escaped;

        backslash &= ~bits;
        *escaped = false;
        while (backslash) {
                uint64_t bit = backslash & -backslash;

                bits |= bit << 1;
                *escaped = bit >> 63;
                backslash &= ~(bit | bit << 1);
        }
        return bits;
}

/* Each bit becomes the exclusive or of itself and all lower bits: it is set from an opening quote
 * up to the closing one. */
static uint64_t between_quotes(uint64_t quotes) {
        for (unsigned shift = 1; shift < 64; shift *= 2)
                quotes ^= quotes << shift;
        return quotes;
}

/* How many of the block's bytes belong to the value that ends in it; 0 when it goes on. */
static size_t end_of_nested_in_block(JsonStream *s, const char *p) {
        ScanMasks m = scan_masks(p);
        uint64_t quotes = m.quote & ~escaped_bits(m.backslash, &s->escaped);
        uint64_t inside = between_quotes(quotes) ^ (s->in_string ? ~UINT64_C(0) : 0);

        for (uint64_t brackets = (m.open | m.close) & ~inside; brackets; brackets &= brackets - 1) {
                if (m.open & brackets & -brackets)
                        s->depth++;
                else if (--s->depth == 0)
                        return (size_t) __builtin_ctzll(brackets) + 1;
        }
        s->in_string = inside >> 63;
        return 0;
}

/* Whether the value ends with this byte, by the same rules. A backslash escapes outside of strings
 * as well, where no valid text has one. */
static bool nested_ends_at(JsonStream *s, char c) {
        if (s->escaped)
                s->escaped = false;
        else if (c == '\\')
                s->escaped = true;
        else if (c == '"') {
                s->in_string = !s->in_string;
                return false;
        }
        if (s->in_string)
                return false;
        if (c == '{' || c == '[')
                s->depth++;
        else if (c == '}' || c == ']')
                return --s->depth == 0;
        return false;
}

static const char *end_of_nested(JsonStream *s, const char *p, const char *end) {
        for (; end - p >= 64; p += 64) {
                size_t n = end_of_nested_in_block(s, p);

                if (n > 0)
                        return p + n;
        }
        for (; p < end; p++)
                if (nested_ends_at(s, *p))
                        return p + 1;
        return NULL;
}

static const char *end_of_string(JsonStream *s, const char *p, const char *end) {
        for (; p < end; p++) {
                if (s->escaped)
                        s->escaped = false;
                else if (*p == '\\')
                        s->escaped = true;
                else if (*p == '"' && s->in_string)
                        return p + 1;
                s->in_string = true;
        }
        return NULL;
}

/* The end of a number, true, false or null; NULL when it may go on in the next piece. */
static const char *end_of_scalar(const char *p, const char *end) {
        for (; p < end; p++) {
                bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');

                if (!letter && !(*p >= '0' && *p <= '9') && *p != '-' && *p != '+' && *p != '.')
                        return p;
        }
        return NULL;
}

static const char *end_of_value(JsonStream *s, const char *p, const char *end) {
        switch (s->shape) {
        case SHAPE_NESTED:
                return end_of_nested(s, p, end);
        case SHAPE_STRING:
                return end_of_string(s, p, end);
        case SHAPE_SCALAR:
        case SHAPE_NONE:
                break;
        }
        return end_of_scalar(p, end);
}

static Shape shape_of(char first) {
        switch (first) {
        case '{':
        case '[':
                return SHAPE_NESTED;
        case '"':
                return SHAPE_STRING;
        case '-':
        case '0' ... '9':
        case 't':
        case 'f':
        case 'n':
                return SHAPE_SCALAR;
        default:
                return SHAPE_NONE;
        }
}

/* ---- what stands around the values ---- */

static int malformed_at(JsonStream *s, Fault *fault, uint64_t at, const char *expected) {
        return fault_set(fault, JSON_STREAM_E_MALFORMED, "%s expected at byte %" PRIu64, expected,
                         s->offset + at);
}

static bool in_items(const JsonStream *s) {
        return s->kind == JSON_STREAM_LIST && json_key_is(buf_str(&s->key), "items");
}

static const char *expected_here(const JsonStream *s) {
        static const char *const words[] = {
                [AT_TOP] = "a JSON value is",
                [AT_START] = "the { of a list is",
                [AT_FIRST_KEY] = "a key or } is",
                [AT_KEY] = "a key is",
                [AT_COLON] = "a colon is",
                [AT_MEMBER] = "a JSON value is",
                [AT_FIRST_ELEMENT] = "an element or ] is",
                [AT_ELEMENT] = "an element is",
                [AT_ELEMENT_END] = "a comma or ] is",
                [AT_MEMBER_END] = "a comma or } is",
                [AT_END] = "nothing more is",
        };

        if (s->state == AT_MEMBER && in_items(s))
                return "a list of items is";
        return words[s->state];
}

/* Takes one byte of punctuation; false when this state knows no such byte. */
static bool take_punctuation(JsonStream *s, char c) {
        static const struct {
                StreamState at;
                char c;
                StreamState next;
        } moves[] = {
                {AT_START, '{', AT_FIRST_KEY},     {AT_FIRST_KEY, '}', AT_END},
                {AT_COLON, ':', AT_MEMBER},        {AT_FIRST_ELEMENT, ']', AT_MEMBER_END},
                {AT_ELEMENT_END, ',', AT_ELEMENT}, {AT_ELEMENT_END, ']', AT_MEMBER_END},
                {AT_MEMBER_END, ',', AT_KEY},      {AT_MEMBER_END, '}', AT_END},
        };

        for (size_t i = 0; i < ELEMENTSOF(moves); i++)
                if (moves[i].at == s->state && moves[i].c == c) {
                        s->state = moves[i].next;
                        return true;
                }
        if (s->state == AT_MEMBER && c == '[' && in_items(s)) {
                s->state = AT_FIRST_ELEMENT;
                return true;
        }
        return false;
}

/* Whether a value, or a key, may begin with this byte here. */
static bool begins_value(JsonStream *s, char c) {
        Shape shape = shape_of(c);

        switch (s->state) {
        case AT_FIRST_KEY:
        case AT_KEY:
                return shape == SHAPE_STRING;
        case AT_MEMBER: /* items must be a list or null; null is checked when it is complete */
                return shape != SHAPE_NONE && !(in_items(s) && c != 'n');
        case AT_TOP:
        case AT_FIRST_ELEMENT:
        case AT_ELEMENT:
                return shape != SHAPE_NONE;
        case AT_START:
        case AT_COLON:
        case AT_ELEMENT_END:
        case AT_MEMBER_END:
        case AT_END:
                break;
        }
        return false;
}

/* Moves *p behind punctuation, or leaves it at the first byte of a value. */
static int step_byte(JsonStream *s, const char **p, uint64_t at, Fault *fault) {
        if (take_punctuation(s, **p)) {
                (*p)++;
                return 0;
        }
        if (!begins_value(s, **p))
                return malformed_at(s, fault, at, expected_here(s));
        s->shape = shape_of(**p);
        s->depth = 0;
        s->in_string = s->escaped = false;
        return 0;
}

static int take_key(JsonStream *s, Str quoted) {
        buf_clear(&s->key);
        buf_append(&s->key, quoted.data + 1, quoted.len - 2);
        s->state = AT_COLON;
        return buf_result(&s->key);
}

/* Acts on a complete value or key, as the state demands. */
static int take_value(JsonStream *s, Str value, uint64_t at, Fault *fault) {
        switch (s->state) {
        case AT_FIRST_KEY:
        case AT_KEY:
                return take_key(s, value);
        case AT_MEMBER:
                s->state = AT_MEMBER_END;
                if (!in_items(s))
                        break;
                if (!str_eq(value, STR("null")))
                        return malformed_at(s, fault, at, "a list of items is");
                return 0;
        case AT_FIRST_ELEMENT:
        case AT_ELEMENT:
                s->state = AT_ELEMENT_END;
                break;
        default:
                break; /* AT_TOP stays */
        }
        return s->deliver(s->userdata, buf_str(&s->key), value, fault);
}

static int take_held(JsonStream *s, uint64_t at, Fault *fault) {
        int r = take_value(s, buf_str(&s->held), at, fault);

        if (s->held.capacity > HELD_KEEP_MAX)
                buf_done(&s->held);
        buf_clear(&s->held);
        return r;
}

static bool at_key(const JsonStream *s) {
        return s->state == AT_KEY || s->state == AT_FIRST_KEY;
}

/* Follows the structure of a value that is too long, and drops its bytes. */
static int skip_value(JsonStream *s, bool ended, uint64_t at, Fault *fault) {
        buf_done(&s->held);
        s->skipping = !ended;
        return ended ? take_value(s, (Str){NULL, 0}, at, fault) : 0;
}

/* Takes the bytes of the value that *p stands in, up to its end or the piece's end. */
static int go_on(JsonStream *s, const char **p, Str bytes, Fault *fault) {
        const char *start = *p, *limit = bytes.data + bytes.len, *end = end_of_value(s, start, limit);
        Str part = {start, (size_t) ((end ? end : limit) - start)};
        uint64_t at = (uint64_t) (start - bytes.data);
        bool too_long = s->skipping || part.len > s->max_value - s->held.len;

        if (too_long && !(s->skip_long && !at_key(s)))
                return fault_set(fault, JSON_STREAM_E_TOO_LONG,
                                 "a value of more than %zu bytes is refused, at byte %" PRIu64, s->max_value,
                                 s->offset + at - s->held.len);
        *p += part.len;
        if (end)
                s->shape = SHAPE_NONE;
        if (too_long)
                return skip_value(s, end != NULL, at, fault);
        if (end && s->held.len == 0)
                return take_value(s, part, at, fault);
        buf_append_str(&s->held, part);
        if (s->held.broken)
                return -ENOMEM;
        return end ? take_held(s, at, fault) : 0;
}

int json_stream_feed(JsonStream *s, Str bytes, Fault *fault) {
        const char *p = bytes.data, *end;

        if (s->result != 0)
                return fault_set(fault, s->result, "the stream has ended with an error before");
        if (!p)
                return 0; /* an empty piece */
        end = p + bytes.len;
        while (p < end && s->result == 0) {
                if (s->shape != SHAPE_NONE) {
                        s->result = go_on(s, &p, bytes, fault);
                        continue;
                }
                p = scan_blanks(p, end);
                if (p < end)
                        s->result = step_byte(s, &p, (uint64_t) (p - bytes.data), fault);
        }
        s->offset += bytes.len;
        return s->result;
}

int json_stream_finish(JsonStream *s, Fault *fault) {
        if (s->result != 0)
                return fault_set(fault, s->result, "the stream has ended with an error before");
        if (s->shape == SHAPE_SCALAR && s->state == AT_TOP) {
                s->shape = SHAPE_NONE;
                s->result = take_held(s, 0, fault);
                return s->result;
        }
        if (s->shape != SHAPE_NONE || (s->state != AT_TOP && s->state != AT_END))
                s->result = fault_set(fault, JSON_STREAM_E_MALFORMED,
                                      "the text ends too early, at byte %" PRIu64, s->offset);
        return s->result;
}
