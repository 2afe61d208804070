/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps somebody's view of one kind of object equal to the API server's: LIST in pages, WATCH with
 * bookmarks from there, resume at the last resourceVersion, re-list on 410 Gone, back-off with
 * jitter between. Objects pass by as text, one at a time; memory is bounded by one object, not by
 * the list.
 *
 * A list is framed by on_list_begin and on_list_end. The owner marks what it holds at the
 * beginning, and drops at the end what did not come by: that is the compare. A list that breaks off
 * is begun again from the start. */

#include "kube/client.h"

typedef struct Reflector Reflector;

typedef enum ReflectorEvent {
        REFLECTOR_LISTED, /* an element of a list; without kind and apiVersion, as Go leaves them out there */
        REFLECTOR_ADDED,
        REFLECTOR_MODIFIED,
        REFLECTOR_DELETED, /* object: its last state */
} ReflectorEvent;

/* Any of them may free the reflector, and the client. */
typedef struct ReflectorHandler {
        void (*on_list_begin)(void *userdata);
        void (*on_object)(void *userdata, ReflectorEvent event, Str object);
        void (*on_list_end)(void *userdata); /* from here on the view is in sync */
        void (*on_trouble)(void *userdata,
                           const Fault *fault); /* lost touch; it goes on trying. May be NULL */
} ReflectorHandler;

typedef struct ReflectorOptions {
        const char *path;            /* /api/v1/pods */
        const char *selector;        /* escaped query such as "fieldSelector=spec.nodeName%3Dn1", or NULL */
        unsigned page;               /* objects per page of a list; 0: 500 */
        size_t max_object;           /* longer objects are skipped with on_trouble; 0: 8 MiB */
        usec_t backoff, backoff_cap; /* the first wait, and the longest; 0: 500 ms and 30 s */
        usec_t idle; /* a watch that is silent for so long is dead (bookmarks come every minute); 0: 150 s */
} ReflectorOptions;

/* Starts at once. The first list carries no resourceVersion (quorum read), so that a restart
 * rebuilds from the truth. 0 or -ENOMEM; no handler is called before this returns. */
int reflector_new(KubeClient *client, const ReflectorOptions *options, const ReflectorHandler *handler,
                  void *userdata, Reflector **ret);
Reflector *reflector_free(Reflector *r); /* before its client */

/* A list is complete, and the watch is not known to be behind: it stands, or has ended as
 * planned. */
bool reflector_in_sync(const Reflector *r);

DEFINE_CLEANUP(Reflector *, reflector_free)
