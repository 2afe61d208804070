/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json.h"

#include <assert.h>
#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/json-internal.h"
#include "wire/json_scan.h"

/* JsonReader.fault is this very text when an allocation failed: it is recognized by its address. */
static const char out_of_memory[] = "out of memory";

void json_init(JsonReader *r, Str text) {
        const char *start = text.data ? text.data : "";

        /* Frames are written when they are entered: clearing 5 KiB per object would cost more than
         * small objects do. */
        r->start = r->at = start;
        r->end = start + text.len;
        r->fault = r->fault_at = NULL;
        r->depth = 0;
}

void json_fault(JsonReader *r, const char *text) {
        (void) json_lex_fault(r, r->at, text);
}

void json_no_memory(JsonReader *r) {
        json_fault(r, out_of_memory);
}

bool json_failed(const JsonReader *r) {
        return r->fault != NULL;
}

JsonType json_peek(JsonReader *r) {
        r->at = scan_blanks(r->at, r->end);
        if (r->at == r->end)
                return JSON_INVALID;
        switch (*r->at) {
        case '{':
                return JSON_OBJECT;
        case '[':
                return JSON_ARRAY;
        case '"':
                return JSON_STRING;
        case '-':
        case '0' ... '9':
                return JSON_NUMBER;
        case 't':
        case 'f':
                return JSON_BOOL;
        case 'n':
                return JSON_NULL;
        default:
                return JSON_INVALID;
        }
}

bool json_expect(JsonReader *r, JsonType type, const char *otherwise) {
        JsonType found = json_peek(r);
        const char *p;

        if (found == type)
                return true;
        if (found == JSON_NULL) {
                p = json_lex_scalar(r, r->at);
                if (p)
                        r->at = p;
        } else if (found == JSON_INVALID)
                json_fault(r, r->at == r->end ? "the text ends where a value is expected"
                                              : "no value starts here");
        else
                json_fault(r, otherwise);
        return false;
}

static bool enter_container(JsonReader *r, bool array) {
        if (r->depth == JSON_MAX_DEPTH) {
                json_fault(r, "nested too deeply");
                return false;
        }
        r->frames[r->depth++] = (JsonFrame){.array = array};
        r->at++;
        return true;
}

bool json_object_begin(JsonReader *r) {
        return json_expect(r, JSON_OBJECT, "not an object") && enter_container(r, false);
}

bool json_array_begin(JsonReader *r) {
        return json_expect(r, JSON_ARRAY, "not an array") && enter_container(r, true);
}

/* Whether the container has another member. Moves the cursor behind the comma before that member,
 * or behind the closing bracket. */
static bool has_another(JsonReader *r, char closing, const char *otherwise) {
        JsonFrame *frame = &r->frames[r->depth - 1];

        r->at = scan_blanks(r->at, r->end);
        if (r->at == r->end) {
                json_fault(r, "the text ends within an object or array");
                return false;
        }
        if (*r->at == closing) {
                r->at++;
                r->depth--;
                return false;
        }
        if (frame->begun > 0) {
                if (*r->at != ',') {
                        json_fault(r, otherwise);
                        return false;
                }
                r->at++;
        }
        frame->begun++;
        frame->key = (Str){NULL, 0};
        return true;
}

/* Reads `"key" :`, with blanks before it. Returns the position behind the colon. */
static const char *lex_key(JsonReader *r, const char *p, Str *ret_key) {
        const char *start;
        bool escaped;

        p = scan_blanks(p, r->end);
        if (p == r->end)
                return json_lex_fault(r, p, "the text ends where a key is expected");
        if (*p != '"')
                return json_lex_fault(r, p, "a key is expected");
        start = ++p;
        p = json_lex_string(r, p, &escaped);
        if (!p)
                return NULL;
        *ret_key = (Str){start, (size_t) (p - start)};
        p = scan_blanks(p + 1, r->end);
        if (p == r->end || *p != ':')
                return json_lex_fault(r, p, "a colon is expected");
        return p + 1;
}

bool json_object_next(JsonReader *r, Str *ret_key) {
        JsonFrame *frame;
        const char *p;

        /* After a fault the caller unwinds through containers that were never entered. */
        if (r->fault || !has_another(r, '}', "a comma or } is expected"))
                return false;
        frame = &r->frames[r->depth - 1];
        p = lex_key(r, r->at, &frame->key);
        if (!p)
                return false;
        r->at = p;
        *ret_key = frame->key;
        return true;
}

bool json_array_next(JsonReader *r) {
        return !r->fault && has_another(r, ']', "a comma or ] is expected");
}

enum { KEY_RAW_MAX = 6 * 64 }; /* no known name is longer than 64 characters */

bool json_key_eq(Str raw, Str text) {
        char plain[3 * KEY_RAW_MAX];
        size_t n;

        if (raw.len <= text.len)
                return str_eq(raw, text);
        /* \u0061 is the longest way to write an ASCII character: 6 bytes for one. */
        if (raw.len > 6 * text.len || raw.len > KEY_RAW_MAX || !memchr(raw.data, '\\', raw.len))
                return false;
        n = json_unescape(raw, plain);
        return str_eq((Str){plain, n}, text);
}

/* ---- passing over ---- */

/* The containers around the value while it is skipped: a bit for each, set for arrays. */
typedef struct Nest {
        uint64_t array[JSON_MAX_DEPTH / 64];
        unsigned base, depth;
} Nest;

Str json_plain_key(Str raw, Arena *arena) {
        JsonReader r;
        Str key = raw;

        if (str_is_empty(raw) || !memchr(raw.data, '\\', raw.len))
                return raw;
        json_init(&r, (Str){raw.data - 1, raw.len + 2}); /* with its quotes it is a JSON string */
        json_string(&r, arena, &key);
        return key;
}

static bool nest_in_array(const Nest *n) {
        unsigned i = n->depth - 1;

        return n->array[i / 64] >> i % 64 & 1;
}

static bool nest_enter(Nest *n, bool array) {
        unsigned i = n->depth;

        if (i == JSON_MAX_DEPTH)
                return false;
        n->array[i / 64] = (n->array[i / 64] & ~(UINT64_C(1) << i % 64)) | (uint64_t) array << i % 64;
        n->depth++;
        return true;
}

/* p: behind a value or, when `fresh`, behind an opening bracket. Closes the containers that end
 * here, then goes to the next value, if there is one. */
static const char *skip_between(JsonReader *r, Nest *n, const char *p, bool fresh) {
        while (n->depth > n->base) {
                bool array = nest_in_array(n);
                Str key;

                p = scan_blanks(p, r->end);
                if (p == r->end)
                        return json_lex_fault(r, p, "the text ends within an object or array");
                if (*p == (array ? ']' : '}')) {
                        n->depth--;
                        fresh = false;
                        p++;
                        continue;
                }
                if (!fresh && *p != ',')
                        return json_lex_fault(
                                r, p, array ? "a comma or ] is expected" : "a comma or } is expected");
                p += !fresh;
                return array ? p : lex_key(r, p, &key);
        }
        return p;
}

static const char *skip_value(JsonReader *r, const char *p) {
        Nest n = {.base = r->depth, .depth = r->depth};

        do {
                bool opens;

                p = scan_blanks(p, r->end);
                if (p == r->end)
                        return json_lex_fault(r, p, "the text ends where a value is expected");
                opens = *p == '{' || *p == '[';
                if (opens && !nest_enter(&n, *p == '['))
                        return json_lex_fault(r, p, "nested too deeply");
                p = opens ? p + 1 : json_lex_scalar(r, p);
                if (!p)
                        return NULL;
                p = skip_between(r, &n, p, opens);
        } while (p && n.depth > n.base);
        return p;
}

void json_raw(JsonReader *r, Str *ret_raw) {
        const char *start = scan_blanks(r->at, r->end), *end = skip_value(r, start);

        if (!end)
                return;
        r->at = end;
        *ret_raw = (Str){start, (size_t) (end - start)};
}

void json_skip(JsonReader *r) {
        Str raw;

        json_raw(r, &raw);
}

static bool is_name_byte(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
               (c >= 'A' && c <= 'Z');
}

bool json_plain_name(JsonReader *r, Str *ret_raw) {
        const char *p = r->at;

        if (p == r->end || *p != '"')
                return false;
        for (p++; p < r->end && is_name_byte(*p); p++)
                ;
        if (p == r->end || *p != '"')
                return false;
        *ret_raw = (Str){r->at, (size_t) (p + 1 - r->at)};
        r->at = p + 1;
        return true;
}

/* ---- the result ---- */

enum { PATH_KEY_MAX = 64 }; /* a longer key is cut: the start is enough to find it */

static bool is_identifier(Str key) {
        for (size_t i = 0; i < key.len; i++) {
                char c = key.data[i];
                bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

                if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-')
                        return false;
        }
        return key.len > 0;
}

/* Appends a step of the path as Kubernetes writes it:
 * spec.containers[1].resources.limits[aliyun.com/gpu-mem]. */
static void path_append(const JsonFrame *frame, Buf *out) {
        Str key = frame->key;

        if (frame->array) {
                if (frame->begun > 0)
                        buf_appendf(out, "[%zu]", frame->begun - 1);
                return;
        }
        if (!key.data)
                return;
        if (!is_identifier(key)) {
                bool cut = key.len > PATH_KEY_MAX;

                buf_appendf(out, "[%.*s%s]", (int) (cut ? PATH_KEY_MAX : key.len), key.data,
                            cut ? "..." : "");
                return;
        }
        buf_appendf(out, "%s%.*s", out->len > 0 ? "." : "", STR_CUT(key, PATH_KEY_MAX));
}

int json_finish(JsonReader *r, Fault *fault) {
        _cleanup_buf_ Buf path = BUF_NULL;

        if (!r->fault) {
                assert(r->depth == 0); /* every container was read to its end */
                r->at = scan_blanks(r->at, r->end);
                if (r->at == r->end)
                        return 0;
                json_fault(r, "something follows the value");
        }
        if (r->fault == out_of_memory)
                return -ENOMEM;
        for (unsigned i = 0; i < r->depth; i++)
                path_append(&r->frames[i], &path);
        return fault_set(fault, JSON_E_MALFORMED, "%s%s%s at byte %zu", path.len > 0 ? path.data : "",
                         path.len > 0 ? ": " : "", r->fault, (size_t) (r->fault_at - r->start));
}
