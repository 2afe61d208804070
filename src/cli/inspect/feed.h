/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads a Kubernetes List of any length, piece by piece, into an Inspect. The list is mixed
 * (`kubectl get nodes,pods -o json`) or typed (NodeList, PodList, whose items do not name their
 * kind). */

#include "base/arena.h"
#include "cli/inspect/inspect.h"
#include "wire/json_stream.h"

/* The text is not such a list; the fault says where. */
enum { FEED_E_MALFORMED = 1 };

typedef struct Feed {
        Inspect *inspect;
        const char *source; /* for messages: the file, the command */
        Str only;           /* skip objects of other kinds; empty: take all */
        void (*warn)(void *userdata, const char *text);
        void *userdata;

        JsonStream *stream;
        Arena arena, scratch;
        Str kind; /* kind of all items of a typed list */
        bool is_list;
        size_t n_items;
        /* objects that do not decode: warned about, and missing in the report */
        size_t n_left_out;
        /* at_end: everything was read, so a fault means that something is missing */
        bool begun, at_end;
} Feed;

/* Makes the stream; the caller sets the members above the blank line. Returns 0 or -ENOMEM. */
int feed_init(Feed *f);
void feed_done(Feed *f);

/* Take a piece of the list, and its end. Return 0, FEED_E_MALFORMED, -ENOMEM, or the errno of
 * read(). */
int feed_bytes(Feed *f, Str bytes, Fault *fault);
int feed_end(Feed *f, Fault *fault);
int feed_fd(Feed *f, int fd, Fault *fault); /* reads to the end, then feed_end() */
