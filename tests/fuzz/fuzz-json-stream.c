/* SPDX-License-Identifier: Apache-2.0 */

/* The values and the result are the same, however a text is cut into pieces. The first four bytes
 * say the kind of stream, the limit of a value, and the cuts. */

#include <assert.h>

#include "wire/json_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_value(void *userdata, Str member, Str value, Fault *fault) {
        Buf *log = userdata;

        buf_append_str(log, member);
        buf_append_char(log, '\0');
        buf_append_str(log, value);
        buf_append_char(log, '\0');
        return 0;
}

/* Each piece in a block of its own size, freed before the next. step 0: all at once. */
static int stream(const uint8_t *head, Str text, unsigned step, Buf *log) {
        _cleanup_(json_stream_freep) JsonStream *s = NULL;
        JsonStreamKind kind = head[0] & 1 ? JSON_STREAM_LIST : JSON_STREAM_VALUES;

        assert(json_stream_new(kind, head[1] * 16U, on_value, log, &s) == 0);
        for (unsigned turn = step; text.len > 0; turn = turn * 5 + head[3]) {
                size_t n = step == 0 ? text.len : turn % 97 + 1;
                _cleanup_free_ char *piece = NULL;
                int r;

                n = n < text.len ? n : text.len;
                piece = malloc(n);
                assert(piece);
                memcpy(piece, text.data, n);
                r = json_stream_feed(s, (Str){piece, n}, NULL);
                if (r != 0)
                        return r;
                text.data += n;
                text.len -= n;
        }
        return json_stream_finish(s, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_buf_ Buf whole = BUF_NULL, pieces = BUF_NULL;
        Str text;
        int r;

        if (size < 4)
                return 0;
        text = (Str){(const char *) data + 4, size - 4};
        r = stream(data, text, 0, &whole);
        assert(r == 0 || r == JSON_STREAM_E_MALFORMED || r == JSON_STREAM_E_TOO_LONG);
        assert(stream(data, text, data[2] + 1U, &pieces) == r);
        assert(str_eq(buf_str(&whole), buf_str(&pieces)));
        return 0;
}
