/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/rm_call.h"

#include <errno.h>

#include "gpu/rm/query.h"
#include "preload/inject/bytes.h"
#include "preload/inject/usermem.h"
#include "preload/memory/card_lookup.h"
#include "preload/memory/driver_fd.h"
#include "preload/memory/reserve.h"
#include "preload/memory/rewrite.h"
#include "preload/memory/rows.h"

/* Writes back the words that the driver changed, from the first to the last, because only the
 * driver knows the size of the inner structure. The outer structure is written as a whole, as the
 * driver does. */
static int write_changes(uint64_t to, const uint8_t *now, const uint8_t *before, uint32_t n) {
        uint32_t first = 0, last = n & ~7u;

        while (first < last && get64(now + first) == get64(before + first))
                first += 8;
        while (last > first && get64(now + last - 8) == get64(before + last - 8))
                last -= 8;
        return first == last ? 0 : usermem_write(to + first, now + first, last - first);
}

long rm_call_answer(RmCall *c, long r) {
        if (r < 0)
                return r;
        if (c->n_inner > 0 && rm_status(&c->request, c->outer) == RM_OK &&
            write_changes(c->request.params, c->inner, c->inner_sent, c->n_inner) < 0)
                rm_set_status(&c->request, c->outer, RM_ERR_INVALID_ADDRESS); /* the object stays */
        return usermem_write(c->argument, c->outer, c->request.size) < 0 ? -EFAULT : r;
}

long rm_call_refuse(RmCall *c, uint32_t status) {
        bytes_copy(c->outer, c->sent, c->request.size);
        bytes_copy(c->inner, c->inner_sent, c->n_inner);
        rm_set_status(&c->request, c->outer, status);
        return rm_call_answer(c, 0);
}

/* During the call the structure points at the copy of the parameters. */
long rm_call_driver(RmCall *c) {
        uint8_t *params = c->outer + offsetof(RmAlloc, params);
        long r;

        if (c->n_inner > 0)
                put64(params, (uint64_t) (uintptr_t) c->inner);
        r = gate_next_ioctl(c->fd, c->ioctl, c->outer);
        if (c->n_inner > 0)
                put64(params, c->request.params);
        return r;
}

long rm_call_driver_with(RmCall *c, void *params) {
        uint8_t *at = c->outer + offsetof(RmControl, params);
        long r;

        put64(at, (uint64_t) (uintptr_t) params);
        r = gate_next_ioctl(c->fd, c->ioctl, c->outer);
        put64(at, c->request.params);
        return r;
}

bool rm_call_ok(const RmCall *c, long r) {
        return r >= 0 && rm_status(&c->request, c->outer) == RM_OK;
}

void rm_call_free_object(RmCall *c, uint32_t object) {
        RmFree f = {.root = c->request.client, .parent = c->request.parent, .old = object};

        /* on failure the node's audit reports it */
        (void) gate_driver(c->fd, RM_IOCTL(RM_ESC_FREE, sizeof f), &f);
}

bool rm_call_pin(RmCall *c, int card) {
        return gate_pin_parent(c->g, card, c->fd, &c->parent);
}

RmSliceInfo rm_call_slice_info(Gate *g, int card) {
        GateCard *c = card >= 0 ? &g->cards[card] : NULL;

        if (!c || !c->usable)
                return (RmSliceInfo){.sliced = c != NULL};
        return (RmSliceInfo){
                .sliced = true, .limit = slice_limit(&c->slice), .group_bytes = c->slice.limits->group_bytes};
}

/* ---- memory and channel groups ---- */

/* Charges what the driver really took: more than was reserved if its pages are larger than known.
 * If the slice has no room for that, the object is freed again, because rounding must not exceed a
 * limit. */
static int adjust_charge(RmCall *c, uint64_t charged, uint64_t taken) {
        if (taken > charged)
                return gate_reserve(c->g, c->card, c->parent.row, taken - charged, c->fd, c->request.client);
        if (taken < charged)
                slice_release(gate_slice(c->g, c->card, c->parent.row), charged - taken);
        return 0;
}

static long allocate_object(RmCall *c, uint64_t bytes) {
        FreedBytes freed;
        uint64_t taken = bytes;
        uint32_t object;
        long r;

        freed_bytes_clear(&freed);
        if (bytes == 0)
                return rm_call_answer(c, rm_call_driver(c));
        if (!rm_call_pin(c, c->card))
                return rm_call_refuse(c, RM_ERR_NO_MEMORY);
        if (gate_reserve(c->g, c->card, c->parent.row, bytes, c->fd, c->request.client) < 0) {
                gate_log(c->g, "refused: no room in the slice", bytes, (uint64_t) c->card);
                return rm_call_refuse(c, RM_ERR_NO_MEMORY);
        }
        r = rm_call_driver(c);
        if (!rm_call_ok(c, r)) {
                slice_release(gate_slice(c->g, c->card, c->parent.row), bytes);
                return rm_call_answer(c, r);
        }
        object = rm_new_handle(&c->request, c->outer);
        if (c->request.kind == RM_ALLOC_VIDMEM)
                taken = rm_taken(&c->request, c->outer, c->inner, c->n_inner);
        if (!rm_objects_is_valid(&c->g->objects, &c->parent) || adjust_charge(c, bytes, taken) < 0) {
                rm_call_free_object(c, object);
                slice_release(gate_slice(c->g, c->card, c->parent.row), bytes);
                return rm_call_refuse(c, RM_ERR_NO_MEMORY);
        }
        c->parent.card = (uint8_t) c->card;
        /* If this fails, the bytes stay charged until the process ends. */
        (void) rm_objects_add(&c->g->objects, &c->parent, object, RM_OBJECT_LEAF, taken, 0, &freed);
        return rm_call_answer(c, r);
}

/* Copies the parameters, as far as they are readable: only the driver knows their size. */
static int copy_inner(RmCall *c) {
        uint32_t least = c->request.kind == RM_ALLOC_VIDMEM ? offsetof(RmMemoryParams, numa_node) : 8;

        c->n_inner = (uint32_t) usermem_read_some(c->inner, c->request.params, sizeof c->inner) & ~7u;
        if (c->n_inner < least) {
                c->n_inner = 0;
                return -EFAULT;
        }
        bytes_copy(c->inner_sent, c->inner, c->n_inner);
        rm_decode_inner(&c->request, c->inner, c->n_inner);
        return 0;
}

/* ---- objects without bytes ---- */

/* Queries the card of a new device: this file can answer, and others may not. */
static void learn_card(const RmCall *c, uint32_t device) {
        RmParent parent = rm_objects_parent(&c->g->objects, c->request.client, device);

        /* if it is not known, it is queried again when it matters */
        (void) gate_card(c->g, c->fd, &parent);
}

static RmObjectKind object_kind(RmKind what) {
        if (what == RM_ALLOC_CLIENT)
                return RM_OBJECT_CLIENT;
        return what == RM_ALLOC_DEVICE ? RM_OBJECT_DEVICE : RM_OBJECT_SUBDEVICE;
}

static void note_object(RmCall *c, uint32_t object) {
        FreedBytes freed;

        freed_bytes_clear(&freed);
        /* If this fails, the driver is asked for the card. */
        (void) rm_objects_add(&c->g->objects, &c->parent, object, object_kind(c->request.kind), 0, 0, &freed);
        gate_release_bytes(c->g, &freed);
}

/* Makes the client through a descriptor of the gate's own. The file that is pinned is then the one
 * that the client lives on, even if the program reuses the number meanwhile. */
static long new_client(RmCall *c) {
        int fd = c->fd;
        uint8_t row = RM_OBJECTS_OWN;
        bool pinned;
        long r = 0;

        pinned = gate_hold_fd(&c->fd) && gate_pin_client(c->g, c->fd, &row);
        if (pinned)
                r = rm_call_driver(c);
        gate_release_fd(c->fd);
        c->fd = fd;
        if (!pinned)
                return rm_call_refuse(c, RM_ERR_NO_MEMORY);
        if (rm_call_ok(c, r)) {
                c->parent = (RmParent){.client = rm_new_handle(&c->request, c->outer),
                                       .card = RM_OBJECTS_NO_CARD,
                                       .row = row};
                note_object(c, c->parent.client);
        }
        return rm_call_answer(c, r);
}

static long remember_object(RmCall *c) {
        uint32_t object;
        long r;

        if (c->request.kind == RM_ALLOC_CLIENT)
                return new_client(c);
        r = rm_call_driver(c);
        if (!rm_call_ok(c, r))
                return rm_call_answer(c, r);
        object = rm_new_handle(&c->request, c->outer);
        note_object(c, object);
        if (c->request.kind == RM_ALLOC_DEVICE)
                learn_card(c, object);
        return rm_call_answer(c, r);
}

static long forget_object(RmCall *c) {
        bool root = c->request.object == c->request.client, marked = root || c->known;
        FreedBytes freed;
        long r;

        freed_bytes_clear(&freed);
        if (root)
                c->mark = rm_objects_mark_client(&c->g->objects, c->request.client);
        if (marked)
                rm_objects_begin_free(&c->g->objects, &c->mark);
        r = rm_call_driver(c);
        if (marked && rm_call_ok(c, r)) {
                rm_objects_remove(&c->g->objects, &c->mark, &freed);
                gate_release_bytes(c->g, &freed);
        } else if (marked) {
                rm_objects_cancel_free(&c->g->objects, &c->mark);
        }
        return rm_call_answer(c, r);
}

/* ---- questions about memory ---- */

/* Returns the driver's version; NULL: this file or this driver does not report it. */
static const char *ask_version(const RmCall *c, RmVersion *v) {
        v->cmd = RM_VERSION_QUERY;
        v->reply = 0;
        v->version[0] = '\0';
        if (gate_driver(c->fd, RM_IOCTL(RM_ESC_CHECK_VERSION, sizeof *v), v) < 0 || v->version[0] == '\0')
                return NULL;
        v->version[sizeof v->version - 1] = '\0';
        return v->version;
}

static void rewrite_list(const RmCall *c, RewriteView *view, uint64_t list, uint32_t n) {
        RmVersion version;
        bool asked = false;

        for (uint32_t i = 0; i < n; i++) {
                uint64_t at = list + i * sizeof(RmFbEntry);
                uint32_t data;
                RmFbEntry entry;

                if (usermem_read(&entry, at, sizeof entry) < 0)
                        return;
                if (!asked && rewrite_fb_needs_version(entry.index)) {
                        view->version = ask_version(c, &version);
                        asked = true;
                }
                data = rewrite_fb(view, entry.index, entry.data);
                if (data != entry.data)
                        (void) usermem_write(at + offsetof(RmFbEntry, data), &data,
                                             sizeof data); /* if not: unmapped since the driver wrote it */
        }
}

/* FB_GET_INFO may have a long list. Since 550 the driver does not look at its size
 * (rmapi_deprecated_control.c), and before that a list may be as long as the driver copies: 1 MiB
 * (param_copy.h). */
static void rewrite_fb_list(const RmCall *c, RewriteView *view) {
        enum { LIST_MAX = (1 << 20) / sizeof(RmFbEntry) };
        bool inline_ = c->request.kind == RM_QUERY_FB;
        uint32_t head = inline_ ? offsetof(RmFbInfoV2, list) : sizeof(RmFbInfo), n;
        RmFbInfo info = {.n = 0};

        if ((inline_ && c->request.params_size < head) || usermem_read(&info, c->request.params, head) < 0)
                return;
        n = info.n;
        if (inline_ && n > (c->request.params_size - head) / sizeof(RmFbEntry))
                n = (c->request.params_size - head) / (uint32_t) sizeof(RmFbEntry);
        rewrite_list(c, view, inline_ ? c->request.params + head : info.list, n < LIST_MAX ? n : LIST_MAX);
}

static void rewrite_region_list(const RmCall *c, const RewriteView *view) {
        uint8_t regions[sizeof(RmFbRegions)] __attribute__((aligned(8)));
        uint32_t n =
                c->request.params_size < sizeof regions ? c->request.params_size : (uint32_t) sizeof regions;

        if (usermem_read(regions, c->request.params, n) < 0)
                return;
        rewrite_regions(view, regions, n);
        (void) usermem_write(c->request.params, regions, n); /* if not: unmapped since the driver wrote it */
}

/* Rewrites all words of the parameters. The driver accepted their size, so it is right. */
static void rewrite_words(const RmCall *c, const RewriteView *view) {
        uint64_t words[64];
        uint32_t n = c->request.params_size / sizeof *words;

        for (uint32_t at = 0, now; at < n; at += now) {
                uint64_t address = c->request.params + at * sizeof *words;

                now = n - at < sizeof words / sizeof *words ? n - at
                                                            : (uint32_t) (sizeof words / sizeof *words);
                if (usermem_read(words, address, now * sizeof *words) < 0)
                        return;
                for (uint32_t i = 0; i < now; i++)
                        words[i] = c->request.kind == RM_QUERY_UGPU ? rewrite_ugpu(view, at + i, words[i])
                                                                    : rewrite_stats(view, at + i, words[i]);
                (void) usermem_write(address, words,
                                     now * sizeof *words); /* if not: unmapped since the driver wrote it */
        }
}

static long query_card(RmCall *c) {
        GateCard *card = &c->g->cards[c->card];
        RewriteView view = {.limit = 0};
        long r = rm_call_driver(c);

        if (!rm_call_ok(c, r))
                return rm_call_answer(c, r);
        gate_refresh(c->g, c->card, c->fd, c->request.client);
        if (card->usable)
                view = (RewriteView){.limit = slice_limit(&card->slice), .used = slice_used(&card->slice)};
        if (c->request.kind == RM_QUERY_HEAP)
                rewrite_heap(&view, c->outer);
        else if (c->request.kind == RM_QUERY_HEAP_LIMIT)
                rewrite_limit(&view, c->outer);
        else if (c->request.kind == RM_QUERY_REGIONS)
                rewrite_region_list(c, &view);
        else if (c->request.kind == RM_QUERY_UGPU || c->request.kind == RM_QUERY_STATS)
                rewrite_words(c, &view);
        else
                rewrite_fb_list(c, &view);
        return rm_call_answer(c, r);
}

/* ---- the call ---- */

/* Whether the parent is a channel group: no other charged object has channels below it. */
static bool is_in_group(const RmCall *c) {
        RmObjectMark parent;

        return rm_objects_find(&c->g->objects, c->request.client, c->request.parent, &parent) &&
               parent.object.kind == RM_OBJECT_LEAF;
}

static RmVerdict admit_request(RmCall *c) {
        RmSliceInfo known;

        if (!rm_needs_card(&c->request))
                return rm_admit(&c->request, NULL);
        if (c->request.kind == RM_ALLOC_CHANNEL && is_in_group(c))
                return rm_admit(&c->request, &(const RmSliceInfo){.grouped = true});
        c->card = gate_card(c->g, c->fd, &c->parent);
        known = rm_call_slice_info(c->g, c->card);
        /* The parameters of a channel are longer than the copy, and do not matter. */
        if (c->request.nr == RM_ESC_ALLOC && c->request.kind != RM_ALLOC_CHANNEL && c->request.params != 0 &&
            copy_inner(c) < 0)
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_INVALID_ADDRESS};
        return rm_admit(&c->request, &known);
}

static long refuse_by(RmCall *c, const RmVerdict *verdict) {
        GateCard *card = c->card >= 0 ? &c->g->cards[c->card] : NULL;

        if (card && card->usable && verdict->status == RM_ERR_NO_MEMORY) {
                atomic_fetch_add_explicit(&card->slice.counters->refused, 1, memory_order_relaxed);
                gate_say_refused(c->g, card, c->request.bytes);
        }
        gate_log(c->g, "refused, with status", c->request.bytes, verdict->status);
        return rm_call_refuse(c, verdict->status);
}

static long act_on_request(RmCall *c) {
        RmVerdict verdict = admit_request(c);

        switch (verdict.action) {
        case RM_CHARGE:
                return allocate_object(c, verdict.bytes);
        case RM_REFUSE:
                return refuse_by(c, &verdict);
        case RM_REMEMBER:
                return remember_object(c);
        case RM_FORGET:
                return forget_object(c);
        case RM_MEASURE:
                return c->request.kind == RM_DUPLICATE ? rm_call_duplicate(c) : rm_call_import(c);
        case RM_TRACK_EXPORT:
                return c->request.kind == RM_ATTACH         ? rm_call_attach(c)
                       : c->request.kind == RM_ALLOC_FABRIC ? rm_call_fabric(c)
                                                            : rm_call_export(c);
        case RM_SCHEDULE:
                return rm_call_schedule(c);
        case RM_REWRITE:
                return query_card(c);
        case RM_FORWARD:
        default:
                return rm_call_answer(c, rm_call_driver(c));
        }
}

/* Whether the call is for the driver. One that names a known client and an object of it is, without
 * a look at the file. If the descriptor is of another file, or of none, the driver or the kernel
 * refuses, as without the gate. */
static bool is_for_driver(RmCall *c) {
        if (c->request.kind == RM_FREE_OBJECT) {
                c->known = rm_objects_find(&c->g->objects, c->request.client, c->request.object, &c->mark);
        } else {
                c->parent = rm_objects_parent(&c->g->objects, c->request.client, c->request.parent);
                c->known = c->parent.known;
        }
        return c->known || gate_file(c->g, c->fd) == GATE_FILE_RM;
}

/* Forwards the copy that was decided about: another thread may change the application's memory. */
static long forward_copy(RmCall *c, unsigned long request, uint64_t argument, uint32_t size) {
        uint32_t client = get32(c->outer);
        RmObjectMark mark;
        long r;

        if (!rm_objects_find(&c->g->objects, client, client, &mark) && gate_file(c->g, c->fd) != GATE_FILE_RM)
                return GATE_NOT_OURS;
        r = gate_next_ioctl(c->fd, request, c->outer);
        if (r < 0)
                return r;
        return usermem_write(argument, c->outer, size) < 0 ? -EFAULT : r;
}

long gate_call(Gate *g, int fd, unsigned long request, uint64_t argument, uint32_t nr, uint32_t size) {
        RmCall c;

        if (nr == RM_ESC_EXPORT_DMA_BUF)
                return rm_call_dma_buf(g, fd, request, argument, size);
        /* Not left to the driver: another thread may map this address meanwhile. */
        if (usermem_read(c.outer, argument, size) < 0)
                return gate_file(g, fd) == GATE_FILE_RM ? -EFAULT : GATE_NOT_OURS;
        rm_decode(nr, size, c.outer, &c.request);
        c.g = g;
        c.fd = fd;
        /* Other devices may have such calls. While the driver's files are unknown, calls of other
         * devices are not refused. */
        if (c.request.kind == RM_OTHER || (c.request.kind == RM_UNKNOWN && !gate_is_driver(g, fd)))
                return forward_copy(&c, request, argument, size);
        if (!is_for_driver(&c))
                return GATE_NOT_OURS;
        bytes_copy(c.sent, c.outer, size);
        c.ioctl = request;
        c.argument = argument;
        c.card = GATE_NO_CARD;
        c.n_inner = 0;
        return act_on_request(&c);
}
