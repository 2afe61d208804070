/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The part of the Kubernetes API that our programs use, in memory, over loopback HTTP. kind.c lists
 * the resources.
 *
 * It has lists in pages with continue tokens, and watches with bookmarks and 410 for forgotten
 * versions. It also has create, get, update, merge patch, strategic merge patch (of conditions),
 * delete, status and discovery, and pods/NAME/binding with annotations and UID precondition. One
 * resourceVersion counter serves all objects, as in etcd.
 *
 * For tests, benchmarks and `aliquot local`: no authentication, no admission, and only the defaults
 * that our programs read (uid, creationTimestamp, resourceVersion, schedulerName, phase,
 * namespace). */

#include <systemd/sd-event.h>

#include "base/fault.h"
#include "base/str.h"
#include "local/apiserver/fault_injection.h"

typedef struct Store Store;

typedef struct StoreOptions {
        const char *listen; /* NULL: 127.0.0.1:0 */
        size_t history;     /* changes that are remembered, each with its object; 0: 65536 */
} StoreOptions;

int store_new(sd_event *event, const StoreOptions *options, Store **ret, Fault *fault);
Store *store_free(Store *s);
const char *store_url(const Store *s); /* http://127.0.0.1:PORT */

enum { STORE_E_INVALID = 1, STORE_E_EXISTS, STORE_E_NOT_FOUND };

/* Creates from a manifest, as POST does. A namespaced object without namespace goes to `default`.
 * The server sets uid, resourceVersion, timestamps, and status except that of nodes. Lists are
 * split, up to the first item that is refused.
 *
 * Returns 0, -ENOMEM, or STORE_E_* with a fault that names kind, name, field and rule.
 * STORE_E_NOT_FOUND: the kind is not served. */
int store_apply(Store *s, Str manifest_json, Fault *fault);

/* Calls `each` for every object of a resource ("pods", "nodes"), in order of namespace/name. The
 * text is valid until the next change. Returns 0, -ENOENT for an unknown resource, or the nonzero
 * result of `each`, which ends the walk. */
int store_each(Store *s, const char *resource, int (*each)(void *userdata, Str object), void *userdata);

/* For tests: adds a fault (copied). Returns 0, or an error of store_faults_add(). */
int store_inject(Store *s, const StoreFault *fault);

/* For tests: gone closes the port and every connection; false opens the same port again. Returns 0
 * or the error of listening. */
int store_vanish(Store *s, bool gone);

/* For tests: from now on every older resourceVersion is answered with 410. */
void store_forget_history(Store *s);

DEFINE_CLEANUP(Store *, store_free)
