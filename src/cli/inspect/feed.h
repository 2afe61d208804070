/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A Kubernetes List of any length, read piece by piece into an Inspect: mixed (`kubectl get
 * nodes,pods -o json`) or typed (NodeList, PodList, whose items do not say what they are). */

#include "base/arena.h"
#include "cli/inspect/inspect.h"
#include "wire/json_stream.h"

/* The text is no such list; the fault says where. */
enum { FEED_E_MALFORMED = 1 };

typedef struct Feed {
        Inspect *inspect;
        const char *source; /* for messages: the file, the command */
        Str only;           /* take objects of this kind and pass over others; empty: all */
        void (*warn)(void *userdata, const char *text);
        void *userdata;

        JsonStream *stream;
        Arena arena, scratch;
        Str kind; /* of all items, once a typed list has said so */
        bool is_list;
        size_t n_items;
        size_t n_left_out;  /* objects that do not decode: warned of, and not in the report */
        bool begun, at_end; /* everything was read, so that a fault means that something is missing */
} Feed;

/* Takes the members above the blank line as they are. 0 or -ENOMEM. */
int feed_init(Feed *f);
void feed_done(Feed *f);

/* 0, FEED_E_MALFORMED, -ENOMEM, or the errno of read(). */
int feed_bytes(Feed *f, Str bytes, Fault *fault);
int feed_end(Feed *f, Fault *fault);
int feed_fd(Feed *f, int fd, Fault *fault); /* to its end, and feed_end() */
