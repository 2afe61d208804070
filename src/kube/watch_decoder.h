/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decodes the pages of a list, or the lines of a watch, from pieces of any size. No I/O, no clock;
 * memory is bounded by one object. */

#include "kube/status.h"

typedef enum WatchType {
        WATCH_LISTED, /* an element of a list */
        WATCH_ADDED,
        WATCH_MODIFIED,
        WATCH_DELETED,
        WATCH_BOOKMARK, /* only resource_version */
        WATCH_ERROR,    /* only status */
        WATCH_TOO_LONG, /* an object over the limit was skipped; nothing else is known of it */
} WatchType;

typedef struct WatchEvent {
        WatchType type;
        Str object;
        Str resource_version; /* "" in lists, and where the server sent none */
        KubeStatus status;
} WatchEvent;

/* The event holds views, valid during the call. A nonzero result stops the decoder and is returned
 * by watch_decoder_feed(). The decoder must not be freed in here. */
typedef int (*WatchSink)(void *userdata, const WatchEvent *event);

typedef enum WatchKind { WATCH_KIND_LIST, WATCH_KIND_WATCH } WatchKind;

typedef struct WatchDecoder WatchDecoder;

enum { WATCH_E_MALFORMED = 1 };
enum { WATCH_MAX_VERSION = 128, WATCH_MAX_CONTINUE = 16 * 1024 };

/* Returns 0 or -ENOMEM. max_object: bytes of one object's text. */
int watch_decoder_new(WatchKind kind, size_t max_object, WatchSink sink, void *userdata, WatchDecoder **ret);
WatchDecoder *watch_decoder_free(WatchDecoder *d);

/* watch_decoder_feed() takes the next bytes, watch_decoder_finish() ends the text. Both return 0,
 * WATCH_E_MALFORMED (also for a text cut within a value), -ENOMEM, or the sink's result. */
int watch_decoder_feed(WatchDecoder *d, Str bytes, Fault *fault);
int watch_decoder_finish(WatchDecoder *d, Fault *fault);

/* resourceVersion and continue token of a list that was read to its end. */
Str watch_decoder_resource_version(const WatchDecoder *d);
Str watch_decoder_continue(const WatchDecoder *d); /* "" on the last page */

DEFINE_CLEANUP(WatchDecoder *, watch_decoder_free)
