/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The device IDs that the kubelet counts in place of memory and compute. "3-17" is memory unit 17
 * of card 3, and "c3-17" is percent 17 of it. IDs are short, because ListAndWatch is limited to 4
 * MiB and the kubelet copies each ID into the pod's status. They differ between the two resources,
 * because the kubelet looks up health by ID alone (kubernetes#140323).
 *
 * In mode topology a whole card is one unit, so that its device is "3-0". No node offers memory and
 * whole cards at the same time: both are DEVICE_MEM, under two names of resources. */

#include "base/fault.h"
#include "base/str.h"

typedef enum DeviceKind { DEVICE_MEM, DEVICE_CORE, DEVICE_KINDS_ } DeviceKind;

/* the resource's name; of DEVICE_MEM that of memory, not of whole cards */
const char *device_resource(DeviceKind kind);
bool device_kind_of(Str resource, DeviceKind *ret); /* false: no resource of ours */

/* What the node's plugins offer, each under its name. */
typedef enum OfferedResource { OFFERED_MEM, OFFERED_CORE, OFFERED_WHOLE, OFFERED_RESOURCES_ } OfferedResource;
const char *device_offered_name(OfferedResource resource);
DeviceKind device_offered_kind(OfferedResource resource);

enum { DEVICE_NUMBER_BITS = 24, DEVICE_TEXT_MAX = 16, DEVICE_SET_MAX = 1 << 20 };

/* card << 24 | number, so IDs sort by card. */
typedef uint32_t DeviceId;

static inline DeviceId device_id(uint32_t card, uint32_t number) {
        return card << DEVICE_NUMBER_BITS | number;
}
static inline uint32_t device_card(DeviceId id) {
        return id >> DEVICE_NUMBER_BITS;
}

enum { DEVICE_E_MALFORMED = 1 };
int device_parse(Str text, DeviceKind kind, DeviceId *ret);
void device_format(DeviceId id, DeviceKind kind, char ret[static DEVICE_TEXT_MAX]);

/* Sorted, without duplicates. */
typedef struct DeviceSet {
        DeviceId *ids; /* owned */
        size_t n;
} DeviceSet;

#define DEVICE_SET_NULL ((DeviceSet){0})

/* Returns 0, -ENOMEM, or DEVICE_E_MALFORMED with a fault: an ID that is malformed or a duplicate,
 * which it names, or more than DEVICE_SET_MAX IDs. */
int device_set_parse(const Str *texts, size_t n, DeviceKind kind, DeviceSet *ret, Fault *fault);
int device_set_copy(const DeviceSet *s, DeviceSet *ret); /* 0 or -ENOMEM */
void device_set_done(DeviceSet *s);

bool device_set_eq(const DeviceSet *a, const DeviceSet *b);
bool device_set_has(const DeviceSet *s, DeviceId id);
bool device_set_covers(const DeviceSet *s, const DeviceSet *part);
/* whether they have an ID in common */
bool device_set_touches(const DeviceSet *a, const DeviceSet *b);

/* Iterates over the cards of a set. Begin with *at = 0; returns false at the end. */
bool device_set_next_card(const DeviceSet *s, size_t *at, uint32_t *ret_card, uint32_t *ret_count);

uint32_t device_set_count(const DeviceSet *set, uint32_t card); /* how many devices of one card */
uint32_t device_set_count_cards(const DeviceSet *set);

#define _cleanup_devices_ _cleanup_(device_set_done)
