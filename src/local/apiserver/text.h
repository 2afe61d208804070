/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Objects are kept as text and nothing else: a change reads the few members it is about and copies
 * the rest. What comes in is brought into one form at the door (store_admit); from there on members
 * can be compared byte by byte.
 *
 * A stored object begins with kind, apiVersion and metadata, and metadata begins with resourceVersion:
 *     {"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"17","name":...},"spec":...,"status":...}
 * so that two states can be compared, and a state be given another version, without parsing
 * them. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"
#include "local/apiserver/kind.h"

enum { STORE_TEXT_E_MALFORMED = 1 };

typedef struct StoreMember {
        Str key, value; /* as they stand in the text, the key without its quotes */
} StoreMember;

/* Appends the value without blanks and without escapes in keys; numbers that stand for quantities
 * (limits, requests, capacity, allocatable) become strings, as the API server hands them back.
 * Refuses what is not one JSON value, and duplicate keys. Returns 0, STORE_TEXT_E_MALFORMED or
 * -ENOMEM. */
int store_admit(Str body, Buf *out, Fault *fault);

/* All of these take admitted text and never fail for malformed input; a value of another type
 * counts as absent. */
Str store_member(Str object, const char *key);  /* the value's text, empty when absent */
Str store_path(Str object, const char *dotted); /* "spec.nodeName" */
Str store_string(Str value, Arena *arena);      /* unescaped; empty when it is not a string */
int store_members(Str object, Arena *arena, StoreMember **ret, size_t *ret_n);
bool store_is_object(Str value);
bool store_is_null(Str value); /* null or absent: the same to the API server */

/* What of an object's metadata belongs to the server. Strings are unescaped. */
typedef struct StoreIdentity {
        Str name, namespace_, uid, created;
        Str deletion;   /* deletionTimestamp; empty when it is not being deleted */
        uint64_t grace; /* deletionGracePeriodSeconds, with it */
} StoreIdentity;

void store_identity(Str object, Arena *arena, StoreIdentity *ret);
uint64_t store_text_version(Str object); /* metadata.resourceVersion; 0 when absent or not a number */

/* Writes the stored form: `metadata` without what the server owns and `base` without kind,
 * apiVersion, metadata and status; status last, when there is one. */
void store_compose(const StoreKind *kind, uint64_t version, const StoreIdentity *id, Str metadata, Str base,
                   Str status, Buf *out);

/* Two stored texts that differ in nothing but resourceVersion. */
bool store_same_but_version(const StoreKind *kind, Str a, Str b);

/* A stored text under another version. */
void store_renumber(const StoreKind *kind, Str text, uint64_t version, Buf *out);

/* JSON merge patch (RFC 7386): appends what `target` (empty: nothing) becomes. strategic: lists
 * called conditions are merged by the type of their elements, as a strategic merge patch does. Both
 * admitted. Returns 0 or -ENOMEM. */
int store_merge_patch(Str target, Str patch, bool strategic, Arena *arena, Buf *out);
