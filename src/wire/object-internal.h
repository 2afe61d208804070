/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the decoders of Kubernetes objects share, such as pod.c and node.c. Each has one table of
 * members per type. A nested decoder writes into the struct of the whole object, because a pod
 * or a node needs a member or two of most inner objects. */

#include "wire/json_field.h"
#include "wire/object.h"

/* The members of `metadata` that every object has. The struct `type` has an ObjectMeta `meta`. */
#define OBJECT_META_FIELDS(type)                                                                             \
        JSON_FIELD(type, meta.name, "name", json_field_str),                                                 \
                JSON_FIELD(type, meta.namespace_, "namespace", json_field_str),                              \
                JSON_FIELD(type, meta.uid, "uid", json_field_str),                                           \
                JSON_FIELD(type, meta.resource_version, "resourceVersion", json_field_str),                  \
                JSON_FIELD(type, meta.creation_timestamp, "creationTimestamp", json_field_str),              \
                JSON_FIELD(type, meta.terminating, "deletionTimestamp", json_field_present),                 \
                JSON_FIELD(type, meta.controller_uid, "ownerReferences", object_read_owners)

/* *ret_str becomes the UID in the ownerReference with controller: true. */
void object_read_owners(JsonReader *r, Arena *arena, void *ret_str);

/* Reads the next element of status.conditions; its array has been begun. Returns false when there
 * is none. */
bool object_next_condition(JsonReader *r, Arena *arena, ObjectCondition *ret);

/* Reads a Quantity as it is written: manifests have 8 as well as "8". Returns false for null, and
 * *ret stays as it is. */
bool object_read_quantity(JsonReader *r, Arena *arena, Str *ret);
void object_read_amount(JsonReader *r, Arena *arena, void *ret_str); /* empty for null */

/* Reads a whole object. A top-level null is a fault: json_field_decode() takes it for an absent
 * object. */
void object_read(JsonReader *r, Arena *arena, const JsonField *fields, size_t n_fields, void *into);

/* Returns r, or OBJECT_E_MALFORMED for JSON_E_MALFORMED. The fault then begins with the object's
 * kind and name, as far as they were read, because a fault in a list must say in which object it
 * is. */
int object_result(int r, const char *kind, const ObjectMeta *meta, Fault *fault);
