/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/uvm_mapping.h"

#include <errno.h>

#include "preload/memory/uvm_object.h"
#include "preload/memory/uvm_range.h"

enum {
        /* attempts; one is enough, unless another thread makes and frees objects meanwhile */
        TRIES_MAX = 100,
};

/* A call that maps an object, on each of n cards. */
typedef struct MapCall {
        uint32_t request;
        uint8_t *params;
        size_t status_at;
        uint64_t base, length;
        int ctl;
        uint32_t n;
        uint8_t cards[UVM_GPUS_MAX];
        const uint8_t *uuids; /* UUID of the first card; those of the others follow in the list */
        UvmNoteKind kind;
} MapCall;

static long refuse_call(const UvmCall *u, const MapCall *c, uint32_t status) {
        gate_log(u->g, "refused: a mapping of a memory object", c->length, status);
        return uvm_call_answer(u, c->status_at, status);
}

static uint32_t gpus_of(const MapCall *c) {
        uint32_t gpus = 0;

        for (uint32_t i = 0; i < c->n; i++)
                gpus |= 1u << c->cards[i];
        return gpus;
}

static void add_notes(const UvmCall *u, const MapCall *c, const UvmObject *m) {
        UvmNote note = {
                .key = u->key, .start = c->base, .end = c->base + c->length, .kind = (uint8_t) c->kind};

        for (uint32_t i = 0; i < c->n; i++) {
                note.gpu = c->cards[i];
                uvm_object_add_mapping(u->g, m, &note);
        }
        for (unsigned kind = UVM_NOTE_RANGE; c->kind == UVM_NOTE_P2P && kind <= UVM_NOTE_POOL; kind++)
                uvm_range_add(u, c->base, c->length, (UvmNoteKind) kind);
}

/* Takes back what the driver has mapped. If it refuses, that stays charged. */
static void undo_call(const UvmCall *u, const MapCall *c) {
        uint8_t params[sizeof(UvmCreateRange)] __attribute__((aligned(8))) = {0};
        size_t at;

        put64(params, c->base);
        put64(params + 8, c->length);
        if (c->kind == UVM_NOTE_P2P)
                (void) uvm_range_free(u, c->base, params, &at);
        for (uint32_t i = 0; c->kind == UVM_NOTE_MAP && i < c->n; i++) {
                UvmUnmapExternal p = {.base = c->base, .length = c->length, .status = UVM_NO_ANSWER};
                uint32_t now = uvm_maps_now(&u->g->maps);

                bytes_copy(p.uuid, c->uuids + i * sizeof(UvmMapping), sizeof p.uuid);
                if (uvm_call_driver(u, UVM_UNMAP_EXTERNAL_CMD, &p) >= 0 && p.status == RM_OK)
                        uvm_call_end_part(u, c->base, c->length, 1u << c->cards[i], now);
        }
}

/* Maps once. false: another thread has made or freed objects meanwhile, and nothing is mapped. */
static bool map_once(const UvmCall *u, const MapCall *c, UvmObject *m, long *ret) {
        uint32_t now = uvm_maps_now(&u->g->maps), status;

        put32(c->params + c->status_at, UVM_NO_ANSWER);
        *ret = uvm_call_driver(u, c->request, c->params);
        status = get32(c->params + c->status_at);
        if (*ret < 0 || status != RM_OK) {
                uvm_object_drop(u->g, m);
                *ret = *ret < 0 ? *ret : uvm_call_answer(u, c->status_at, status);
                return true;
        }
        add_notes(u, c, m);       /* with key 0 nothing ends them */
        uvm_object_drop(u->g, m); /* the mappings hold it */
        if (uvm_object_has_changed(u->g, m)) {
                undo_call(u, c);
                return false;
        }
        uvm_call_end_part(u, c->base, c->length, gpus_of(c), now);
        *ret = uvm_call_answer(u, c->status_at, status);
        return true;
}

static long map_object(const UvmCall *u, const MapCall *c, UvmObject *m) {
        long r;

        for (uint32_t i = 0; i < c->n; i++)
                if (c->cards[i] >= GATE_CARDS)
                        /* it is not registered with uvm, either */
                        return refuse_call(u, c, RM_ERR_INVALID_DEVICE);
        for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
                if (!uvm_object_look_up(u->g, c->ctl, c->cards[0], m))
                        break;
                if (m->charge != 0 && !uvm_file_pin(u->g, u->fd, u->key, m->source.row)) {
                        uvm_object_drop(u->g, m);
                        break;
                }
                if (map_once(u, c, m, &r))
                        return r;
        }
        return refuse_call(u, c, RM_ERR_NO_MEMORY);
}

long uvm_mapping_external(const UvmCall *u) {
        uint8_t params[sizeof(UvmMapExternal)] __attribute__((aligned(8))) = {0};
        uint32_t gpus = uvm_call_gpus(u);
        const size_t less = uvm_call_shorter(gpus);
        MapCall c = {.request = UVM_MAP_EXTERNAL_CMD, .params = params, .kind = UVM_NOTE_MAP};
        UvmObject m;
        uint64_t n;
        long r;

        if (gpus == 0)
                return -EINVAL;
        if (uvm_call_copy_in(u, params, sizeof params - less) < sizeof params - less)
                return -EFAULT;
        c.status_at = offsetof(UvmMapExternal, status) - less;
        c.base = get64(params);
        c.length = get64(params + offsetof(UvmMapExternal, length));
        c.uuids = params + offsetof(UvmMapExternal, gpus);
        n = get64(params + offsetof(UvmMapExternal, n) - less);
        c.ctl = (int) get32(params + offsetof(UvmMapExternal, ctl) - less);
        m.client = get32(params + offsetof(UvmMapExternal, client) - less);
        m.memory = get32(params + offsetof(UvmMapExternal, memory) - less);
        if (n == 0 || n > gpus || c.base + c.length <= c.base) { /* the driver refuses it */
                r = uvm_call_driver(u, c.request, params);
                return r < 0 ? r : uvm_call_answer(u, c.status_at, get32(params + c.status_at));
        }
        c.n = (uint32_t) n;
        for (uint32_t i = 0; i < c.n; i++)
                c.cards[i] = uvm_call_card(u, c.uuids + i * sizeof(UvmMapping));
        return map_object(u, &c, &m);
}

long uvm_mapping_p2p(const UvmCall *u) {
        UvmAllocP2p p;
        MapCall c = {.request = UVM_ALLOC_P2P_CMD,
                     .params = (uint8_t *) &p,
                     .status_at = offsetof(UvmAllocP2p, status),
                     .n = 1,
                     .uuids = p.uuid,
                     .kind = UVM_NOTE_P2P};
        UvmObject m;

        if (usermem_read(&p, u->argument, sizeof p) < 0)
                return -EFAULT;
        c.base = p.base;
        c.length = p.length;
        c.ctl = p.ctl;
        c.cards[0] = uvm_call_card(u, p.uuid);
        m.client = p.client;
        m.memory = p.memory;
        return map_object(u, &c, &m);
}
