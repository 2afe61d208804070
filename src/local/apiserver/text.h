/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Objects are stored as text. A change reads only the members that it needs and copies the rest.
 * Input is brought into one form first (store_admit()), after which members can be compared byte by
 * byte.
 *
 * A stored object begins with kind, apiVersion and metadata, and metadata begins with
 * resourceVersion:
 *
 *     {"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"17","name":...},"spec":...}
 *
 * So two states can be compared, and a state can get another version, without parsing. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"
#include "local/apiserver/kind.h"

enum { STORE_TEXT_E_MALFORMED = 1 };

typedef struct StoreMember {
        Str key, value; /* raw text; the key without its quotes */
} StoreMember;

/* Appends the value without blanks and without escapes in keys. Numbers that stand for quantities
 * (limits, requests, capacity, allocatable) become strings, as in the API server. Returns 0,
 * STORE_TEXT_E_MALFORMED (not one JSON value, or duplicate keys) or -ENOMEM. */
int store_admit(Str body, Buf *out, Fault *fault);

/* All of these take admitted text and never fail. A value of another type counts as absent. */
Str store_member(Str object, const char *key);  /* the value's text, empty when absent */
Str store_path(Str object, const char *dotted); /* "spec.nodeName" */
Str store_string(Str value, Arena *arena);      /* unescaped; empty when it is not a string */
int store_members(Str object, Arena *arena, StoreMember **ret, size_t *ret_n);
bool store_is_object(Str value);
bool store_is_null(Str value); /* null or absent, which the API server treats alike */

/* The part of an object's metadata that belongs to the server. Strings are unescaped. */
typedef struct StoreIdentity {
        Str name, namespace_, uid, created;
        Str deletion;   /* deletionTimestamp; empty when it is not being deleted */
        uint64_t grace; /* deletionGracePeriodSeconds of a deletion */
} StoreIdentity;

void store_identity(Str object, Arena *arena, StoreIdentity *ret);
/* metadata.resourceVersion; 0 when absent or not a number */
uint64_t store_text_version(Str object);

/* Writes the stored form: `metadata` without the server's members, then `base` without kind,
 * apiVersion, metadata and status, then status, if there is one. */
void store_compose(const StoreKind *kind, uint64_t version, const StoreIdentity *id, Str metadata, Str base,
                   Str status, Buf *out);

/* Whether two stored texts differ in nothing but resourceVersion. */
bool store_same_but_version(const StoreKind *kind, Str a, Str b);

/* Writes a stored text under another version. */
void store_renumber(const StoreKind *kind, Str text, uint64_t version, Buf *out);

/* JSON merge patch (RFC 7386): appends the patched `target` (empty: nothing to patch). strategic:
 * lists called conditions are merged by the type of their elements, as by a strategic merge patch.
 * Both texts are admitted. Returns 0 or -ENOMEM. */
int store_merge_patch(Str target, Str patch, bool strategic, Arena *arena, Buf *out);
