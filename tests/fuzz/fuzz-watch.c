/* SPDX-License-Identifier: Apache-2.0 */

/* The reflector's decoder: the events and the result are the same, however a list or a watch is cut
 * into pieces. The first three bytes say which of the two it is, the limit of an object, and the
 * cuts. */

#include <assert.h>
#include <errno.h>

#include "base/buf.h"
#include "kube/watch_decoder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_event(void *userdata, const WatchEvent *event) {
        Buf *log = userdata;

        assert(event->resource_version.len <= WATCH_MAX_VERSION);
        buf_appendf(log, "%d %d ", (int) event->type, (int) event->status.code);
        buf_append_str(log, event->object);
        buf_append_str(log, event->resource_version);
        buf_append_str(log, event->status.message);
        buf_append_char(log, '\n');
        return event->type == WATCH_ERROR ? -ESTALE : 0;
}

/* Each piece in a block of its own size, freed before the next. step 0: all at once. */
static int decode(const uint8_t *head, Str text, unsigned step, Buf *log) {
        _cleanup_(watch_decoder_freep) WatchDecoder *d = NULL;
        WatchKind kind = head[0] & 1 ? WATCH_KIND_LIST : WATCH_KIND_WATCH;
        int r;

        assert(watch_decoder_new(kind, head[1] * 16U, on_event, log, &d) == 0);
        for (unsigned turn = step; text.len > 0; turn = turn * 5 + step) {
                size_t n = step == 0 ? text.len : turn % 97 + 1;
                _cleanup_free_ char *piece = NULL;

                n = n < text.len ? n : text.len;
                piece = malloc(n);
                assert(piece);
                memcpy(piece, text.data, n);
                r = watch_decoder_feed(d, (Str){piece, n}, NULL);
                if (r != 0)
                        return r;
                text.data += n;
                text.len -= n;
        }
        r = watch_decoder_finish(d, NULL);
        buf_append_str(log, watch_decoder_resource_version(d));
        buf_append_str(log, watch_decoder_continue(d));
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_buf_ Buf whole = BUF_NULL, pieces = BUF_NULL;
        Str text;
        int r;

        if (size < 3)
                return 0;
        text = (Str){(const char *) data + 3, size - 3};
        r = decode(data, text, 0, &whole);
        assert(r == 0 || r == WATCH_E_MALFORMED || r == -ESTALE);
        assert(decode(data, text, data[2] + 1U, &pieces) == r);
        assert(str_eq(buf_str(&whole), buf_str(&pieces)));
        return 0;
}
