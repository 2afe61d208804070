/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps a view of one kind of object equal to the API server's. LIST in pages, WATCH with bookmarks
 * from there, resume at the last resourceVersion, re-list on 410 Gone, back-off with jitter.
 * Objects are passed as text, one at a time; memory is bounded by one object, not by the list.
 *
 * on_list_begin and on_list_end frame a list. The owner marks its objects at the beginning and
 * drops at the end those that were not listed. A list that breaks off starts over. on_list_begin is
 * called before the first page is requested, so the list has all that the API server had written by
 * then. */

#include "kube/client.h"

typedef struct Reflector Reflector;

typedef enum ReflectorEvent {
        /* an element of a list; without kind and apiVersion, which Go omits there */
        REFLECTOR_LISTED,
        REFLECTOR_ADDED,
        REFLECTOR_MODIFIED,
        REFLECTOR_DELETED, /* object: its last state */
} ReflectorEvent;

/* Any of them may free the reflector and the client. */
typedef struct ReflectorHandler {
        void (*on_list_begin)(void *userdata);
        void (*on_object)(void *userdata, ReflectorEvent event, Str object);
        void (*on_list_end)(void *userdata); /* the view is in sync from here on */
        /* contact was lost, and it goes on trying; or an object was passed over. May be NULL */
        void (*on_trouble)(void *userdata, const Fault *fault);
        /* before that: an object is passed over for its size, so the list lacks it. May be NULL */
        void (*on_passed_over)(void *userdata);
} ReflectorHandler;

typedef struct ReflectorOptions {
        const char *path; /* /api/v1/pods */
        /* escaped query such as "fieldSelector=spec.nodeName%3Dn1", or NULL */
        const char *selector;
        unsigned page;               /* objects per page of a list; 0: 500 */
        size_t max_object;           /* longer objects are skipped with on_trouble; 0: 8 MiB */
        usec_t backoff, backoff_cap; /* the first wait, and the longest; 0: 500 ms and 30 s */
        /* a watch without bytes for so long is dead (bookmarks come every minute); 0: 150 s */
        usec_t idle;
} ReflectorOptions;

/* Makes a reflector, which starts with the next turn of the event loop. The first list carries no
 * resourceVersion (quorum read), so a restart begins with the current state. Returns 0 or -ENOMEM;
 * no handler is called before this returns. */
int reflector_new(KubeClient *client, const ReflectorOptions *options, const ReflectorHandler *handler,
                  void *userdata, Reflector **ret);
Reflector *reflector_free(Reflector *r); /* call it before the client is freed */

/* Whether a list is complete and the watch is not known to be behind. */
bool reflector_in_sync(const Reflector *r);

/* When the API server last sent an event, a bookmark or a page of a list, by the monotonic clock;
 * 0: never. */
usec_t reflector_heard(const Reflector *r);

DEFINE_CLEANUP(Reflector *, reflector_free)
