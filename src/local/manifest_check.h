/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a cluster refuses of a manifest, beside what the API server here judges. That is a field
 * that its kind does not have, as kubectl's strict validation judges it: a misspelt `limits` would
 * else lose a pod's GPU without a word. It is a member that only an object that exists may have,
 * and a container without an image. And it is a toleration or a requirement of node affinity that
 * says nothing, because pods are placed by these. */

#include "base/fault.h"
#include "local/tree.h"

enum { MANIFEST_CHECK_E_REFUSED = 1 };

/* The fields are those of the Kubernetes release of manifest_fields.c; status and managedFields are
 * not looked at. An object with metadata.uid is from the dump of a cluster, which has taken it: it
 * is not checked, and neither is a kind without a table.
 *
 * Returns 0, -ENOMEM, or MANIFEST_CHECK_E_REFUSED with the API server's words, and the name that
 * was probably meant. */
int manifest_check(const json_t *object, Fault *fault);
