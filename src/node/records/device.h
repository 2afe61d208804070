/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Device IDs: what the kubelet counts instead of memory. One is one unit of memory, or one percent
 * of compute, of one card, and says so: "3-17" is unit 17 of card 3, "c3-17" percent 17 of it.
 * Short, because ListAndWatch has a limit of 4 MiB and the kubelet copies every ID into the pod's
 * status; different between the resources, because the kubelet looks up health without asking for
 * the resource (kubernetes#140323). */

#include "base/fault.h"
#include "base/str.h"

typedef enum DeviceKind { DEVICE_MEM, DEVICE_CORE, DEVICE_KINDS_ } DeviceKind;

const char *device_resource(DeviceKind kind); /* aliyun.com/... */

enum { DEVICE_NUMBER_BITS = 24, DEVICE_TEXT_MAX = 16, DEVICE_SET_MAX = 1 << 20 };

/* card << 24 | number: sorted by card. */
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

/* Sorted, each once. */
typedef struct DeviceSet {
        DeviceId *ids; /* owned */
        size_t n;
} DeviceSet;

#define DEVICE_SET_NULL ((DeviceSet){0})

/* 0, DEVICE_E_MALFORMED (fault names the ID: not ours, twice, or too many), -ENOMEM. */
int device_set_parse(const Str *texts, size_t n, DeviceKind kind, DeviceSet *ret, Fault *fault);
int device_set_copy(const DeviceSet *s, DeviceSet *ret); /* 0 or -ENOMEM */
void device_set_done(DeviceSet *s);

bool device_set_eq(const DeviceSet *a, const DeviceSet *b);
bool device_set_has(const DeviceSet *s, DeviceId id);
bool device_set_covers(const DeviceSet *s, const DeviceSet *part);
bool device_set_touches(const DeviceSet *a, const DeviceSet *b); /* one in common */

/* Walks the cards of a set: begin with *at = 0; false at the end. */
bool device_set_next_card(const DeviceSet *s, size_t *at, uint32_t *ret_card, uint32_t *ret_count);

uint32_t device_set_count(const DeviceSet *set, uint32_t card); /* devices of one card */

#define _cleanup_devices_ _cleanup_(device_set_done)
