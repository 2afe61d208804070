/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "gpu/rm/travel.h"
#include "preload/inject/bytes.h"
#include "preload/inject/peek.h"
#include "preload/memory/call.h"
#include "preload/memory/rewrite.h"
#include "preload/memory/rows.h"
#include "preload/memory/travel.h"

/* One metered call. The driver is asked with copies of the parameters: what was decided on is what
 * it gets, and its answer is known also where the application's memory cannot be written, when the
 * driver would have done the work and said EFAULT. */

/* How long the inner structure is, only the driver knows: what it changed is written back, from the
 * first to the last such word. The outer one is written as a whole, as the driver does. */
static int write_changes(uint64_t to, const uint8_t *now, const uint8_t *before, uint32_t n) {
        uint32_t first = 0, last = n & ~7u;

        while (first < last && get64(now + first) == get64(before + first))
                first += 8;
        while (last > first && get64(now + last - 8) == get64(before + last - 8))
                last -= 8;
        return first == last ? 0 : poke(to + first, now + first, last - first);
}

long call_answer(Call *c, long r) {
        if (r < 0)
                return r;
        if (c->n_inner > 0 && rm_status(&c->ask, c->outer) == RM_OK &&
            write_changes(c->ask.params, c->inner, c->inner_sent, c->n_inner) < 0)
                rm_set_status(&c->ask, c->outer,
                              RM_ERR_INVALID_ADDRESS); /* the object is there, as with the driver */
        return poke(c->argument, c->outer, c->ask.size) < 0 ? -EFAULT : r;
}

long call_refuse(Call *c, uint32_t status) {
        bytes_copy(c->outer, c->sent, c->ask.size);
        bytes_copy(c->inner, c->inner_sent, c->n_inner);
        rm_set_status(&c->ask, c->outer, status);
        return call_answer(c, 0);
}

/* The structure that the driver reads has a pointer to the parameters: ours, while it is being
 * asked. */
long call_driver(Call *c) {
        uint8_t *params = c->outer + offsetof(RmAlloc, params);
        long r;

        if (c->n_inner > 0)
                put64(params, (uint64_t) (uintptr_t) c->inner);
        r = gate_pass_on(c->fd, c->request, c->outer);
        if (c->n_inner > 0)
                put64(params, c->ask.params);
        return r;
}

long call_driver_with(Call *c, void *params) {
        uint8_t *at = c->outer + offsetof(RmControl, params);
        long r;

        put64(at, (uint64_t) (uintptr_t) params);
        r = gate_pass_on(c->fd, c->request, c->outer);
        put64(at, c->ask.params);
        return r;
}

bool call_agreed(const Call *c, long r) {
        return r >= 0 && rm_status(&c->ask, c->outer) == RM_OK;
}

void call_free_again(Call *c, uint32_t object) {
        RmFree f = {.root = c->ask.client, .parent = c->ask.parent, .old = object};

        (void) gate_driver(c->fd, RM_IOCTL(RM_ESC_FREE, sizeof f), &f); /* if not, the audit sees it */
}

bool call_pin(Call *c, int card) {
        return gate_pin_seat(c->g, card, c->fd, &c->seat);
}

/* A card whose slice is not good has one of nothing. */
RmKnown call_known(Gate *g, int card) {
        GateCard *c = card >= 0 ? &g->cards[card] : NULL;

        if (!c || !c->good)
                return (RmKnown){.sliced = c != NULL};
        return (RmKnown){
                .sliced = true, .limit = slice_limit(&c->slice), .group_bytes = c->slice.limits->group_bytes};
}

/* ---- memory and channel groups ---- */

/* The driver took more than it was charged for, because its pages are larger than was known: the
 * rest is charged, too. Where the slice has no room for it the object goes again: a limit that a
 * rounding may pass is none. */
static int settle(Call *c, uint64_t charged, uint64_t taken) {
        if (taken > charged)
                return gate_reserve(c->g, c->card, c->seat.row, taken - charged, c->fd, c->ask.client);
        if (taken < charged)
                slice_release(gate_slice(c->g, c->card, c->seat.row), charged - taken);
        return 0;
}

static long allocate(Call *c, uint64_t bytes) {
        ObjectBytes freed;
        uint64_t taken = bytes;
        uint32_t object;
        long r;

        object_bytes_none(&freed);
        if (bytes == 0)
                return call_answer(c, call_driver(c));
        if (!call_pin(c, c->card))
                return call_refuse(c, RM_ERR_NO_MEMORY);
        if (gate_reserve(c->g, c->card, c->seat.row, bytes, c->fd, c->ask.client) < 0) {
                gate_say(c->g, "refused: no room in the slice", bytes, (uint64_t) c->card);
                return call_refuse(c, RM_ERR_NO_MEMORY);
        }
        r = call_driver(c);
        if (!call_agreed(c, r)) {
                slice_release(gate_slice(c->g, c->card, c->seat.row), bytes);
                return call_answer(c, r);
        }
        object = rm_new_handle(&c->ask, c->outer);
        if (c->ask.what == RM_NEW_MEMORY)
                taken = rm_taken(&c->ask, c->outer, c->inner, c->n_inner);
        if (!objects_still(&c->g->objects, &c->seat) || settle(c, bytes, taken) < 0) {
                call_free_again(c, object);
                slice_release(gate_slice(c->g, c->card, c->seat.row), bytes);
                return call_refuse(c, RM_ERR_NO_MEMORY);
        }
        c->seat.card = (uint8_t) c->card;
        (void) objects_add(&c->g->objects, &c->seat, object, OBJECT_LEAF, taken, 0,
                           &freed); /* else charged to the end */
        return call_answer(c, r);
}

/* A copy of the parameters, of which the driver knows how long they are. */
static int take_inner(Call *c) {
        uint32_t least = c->ask.what == RM_NEW_MEMORY ? offsetof(RmMemoryParams, numa_node) : 8;

        c->n_inner = (uint32_t) peek_some(c->inner, c->ask.params, sizeof c->inner) & ~7u;
        if (c->n_inner < least) {
                c->n_inner = 0;
                return -EFAULT;
        }
        bytes_copy(c->inner_sent, c->inner, c->n_inner);
        rm_decode_inner(&c->ask, c->inner, c->n_inner);
        return 0;
}

/* ---- objects without bytes ---- */

/* Which card it is, now that the call came in on a file on which it can be asked; some others do
 * not. */
static void learn_card(const Call *c, uint32_t device) {
        ObjectSeat seat = objects_seat(&c->g->objects, c->ask.client, device);

        (void) gate_card(c->g, c->fd, &seat); /* not told: asked again when it matters */
}

static ObjectKind kind_of(RmWhat what) {
        if (what == RM_NEW_CLIENT)
                return OBJECT_CLIENT;
        return what == RM_NEW_DEVICE ? OBJECT_DEVICE : OBJECT_SUBDEVICE;
}

static void enter(Call *c, uint32_t object) {
        ObjectBytes freed;

        object_bytes_none(&freed);
        (void) objects_add(&c->g->objects, &c->seat, object, kind_of(c->ask.what), 0, 0,
                           &freed); /* else it is asked for */
        gate_give_back(c->g, &freed);
}

/* Through a descriptor of our own: what is pinned is the file that the driver makes it on, whatever
 * the program's number is by then. */
static long new_client(Call *c) {
        int fd = c->fd;
        uint8_t row = OBJECTS_OWN;
        bool pinned;
        long r = 0;

        pinned = filed_hold(&c->fd) && gate_pin_client(c->g, c->fd, &row);
        if (pinned)
                r = call_driver(c);
        filed_let_go(c->fd);
        c->fd = fd;
        if (!pinned)
                return call_refuse(c, RM_ERR_NO_MEMORY);
        if (call_agreed(c, r)) {
                c->seat = (ObjectSeat){
                        .client = rm_new_handle(&c->ask, c->outer), .card = OBJECTS_NO_CARD, .row = row};
                enter(c, c->seat.client);
        }
        return call_answer(c, r);
}

static long remember(Call *c) {
        uint32_t object;
        long r;

        if (c->ask.what == RM_NEW_CLIENT)
                return new_client(c);
        r = call_driver(c);
        if (!call_agreed(c, r))
                return call_answer(c, r);
        object = rm_new_handle(&c->ask, c->outer);
        enter(c, object);
        if (c->ask.what == RM_NEW_DEVICE)
                learn_card(c, object);
        return call_answer(c, r);
}

static long forget(Call *c) {
        bool root = c->ask.object == c->ask.client, marked = root || c->known;
        ObjectBytes freed;
        long r;

        object_bytes_none(&freed);
        if (root)
                c->mark = objects_client(&c->g->objects, c->ask.client);
        if (marked)
                objects_leave(&c->g->objects, &c->mark);
        r = call_driver(c);
        if (marked && call_agreed(c, r)) {
                objects_forget(&c->g->objects, &c->mark, &freed);
                gate_give_back(c->g, &freed);
        } else if (marked) {
                objects_left(&c->g->objects, &c->mark);
        }
        return call_answer(c, r);
}

/* ---- questions ---- */

static void rewrite_list(const RewriteView *view, uint64_t list, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
                uint64_t at = list + i * sizeof(RmFbEntry);
                uint32_t data;
                RmFbEntry entry;

                if (peek(&entry, at, sizeof entry) < 0)
                        return;
                data = rewrite_fb(view, entry.index, entry.data);
                if (data != entry.data)
                        (void) poke(at + offsetof(RmFbEntry, data), &data,
                                    sizeof data); /* it was there for the driver */
        }
}

static void rewrite_fb_list(const Call *c, const RewriteView *view) {
        bool inline_ = c->ask.what == RM_TELL_FB;
        uint32_t head = inline_ ? offsetof(RmFbInfoV2, list) : sizeof(RmFbInfo), n;
        RmFbInfo info = {.n = 0};

        if (c->ask.params_size < head || peek(&info, c->ask.params, head) < 0)
                return;
        n = info.n;
        if (inline_ && n > (c->ask.params_size - head) / sizeof(RmFbEntry))
                n = (c->ask.params_size - head) / (uint32_t) sizeof(RmFbEntry);
        rewrite_list(view, inline_ ? c->ask.params + head : info.list, n < 1024 ? n : 1024);
}

static void rewrite_region_list(const Call *c, const RewriteView *view) {
        uint8_t regions[sizeof(RmFbRegions)] __attribute__((aligned(8)));
        uint32_t n = c->ask.params_size < sizeof regions ? c->ask.params_size : (uint32_t) sizeof regions;

        if (peek(regions, c->ask.params, n) < 0)
                return;
        rewrite_regions(view, regions, n);
        (void) poke(c->ask.params, regions, n); /* it was there for the driver */
}

static long tell(Call *c) {
        GateCard *card = &c->g->cards[c->card];
        RewriteView view = {.limit = 0};
        long r = call_driver(c);

        if (!call_agreed(c, r))
                return call_answer(c, r);
        gate_refresh(c->g, c->card, c->fd, c->ask.client);
        if (card->good)
                view = (RewriteView){.limit = slice_limit(&card->slice), .used = slice_used(&card->slice)};
        if (c->ask.what == RM_TELL_HEAP)
                rewrite_heap(&view, c->outer);
        else if (c->ask.what == RM_TELL_LIMIT)
                rewrite_limit(&view, c->outer);
        else if (c->ask.what == RM_TELL_REGIONS)
                rewrite_region_list(c, &view);
        else
                rewrite_fb_list(c, &view);
        return call_answer(c, r);
}

/* ---- the call ---- */

/* What is charged and can have a channel below it is a channel group. */
static bool is_below_group(const Call *c) {
        ObjectMark parent;

        return objects_find(&c->g->objects, c->ask.client, c->ask.parent, &parent) &&
               parent.object.kind == OBJECT_LEAF;
}

static RmVerdict judge(Call *c) {
        RmKnown known;

        if (!rm_needs_card(&c->ask))
                return rm_admit(&c->ask, NULL);
        if (c->ask.what == RM_NEW_CHANNEL && is_below_group(c))
                return rm_admit(&c->ask, &(const RmKnown){.grouped = true});
        c->card = gate_card(c->g, c->fd, &c->seat);
        known = call_known(c->g, c->card);
        /* A channel's are longer than what is copied here, and nothing of them matters. */
        if (c->ask.nr == RM_ESC_ALLOC && c->ask.what != RM_NEW_CHANNEL && c->ask.params != 0 &&
            take_inner(c) < 0)
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_INVALID_ADDRESS};
        return rm_admit(&c->ask, &known);
}

static long refuse_by(Call *c, const RmVerdict *verdict) {
        if (c->card >= 0 && c->g->cards[c->card].good && verdict->status == RM_ERR_NO_MEMORY)
                atomic_fetch_add_explicit(&c->g->cards[c->card].slice.counters->refused, 1,
                                          memory_order_relaxed);
        gate_say(c->g, "refused, with status", c->ask.bytes, verdict->status);
        return call_refuse(c, verdict->status);
}

static long act(Call *c) {
        RmVerdict verdict = judge(c);

        switch (verdict.action) {
        case RM_CHARGE:
                return allocate(c, verdict.bytes);
        case RM_REFUSE:
                return refuse_by(c, &verdict);
        case RM_REMEMBER:
                return remember(c);
        case RM_FORGET:
                return forget(c);
        case RM_MEASURE:
                return c->ask.what == RM_DUPLICATE ? call_duplicate(c) : call_import(c);
        case RM_KEEP:
                return call_export(c);
        case RM_REWRITE:
                return tell(c);
        case RM_FORWARD:
        default:
                return call_answer(c, call_driver(c));
        }
}

/* Parameters that name a client of ours and an object of his are for the driver: which file it is
 * need not be asked. If it is another one, or none, the driver or the kernel says so, as it would
 * have. */
static bool is_for_driver(Call *c) {
        if (c->ask.what == RM_FREE_OBJECT) {
                c->known = objects_find(&c->g->objects, c->ask.client, c->ask.object, &c->mark);
        } else {
                c->seat = objects_seat(&c->g->objects, c->ask.client, c->ask.parent);
                c->known = c->seat.known;
        }
        return c->known || gate_file(c->g, c->fd) == GATE_FILE_RM;
}

/* The driver gets what was looked at here, too: in the application's memory another thread may make
 * something else of it by then. */
static long forward(Call *c, unsigned long request, uint64_t argument, uint32_t size) {
        uint32_t client = get32(c->outer);
        ObjectMark mark;
        long r;

        if (!objects_find(&c->g->objects, client, client, &mark) && gate_file(c->g, c->fd) != GATE_FILE_RM)
                return GATE_NOT_OURS;
        r = gate_pass_on(c->fd, request, c->outer);
        if (r < 0)
                return r;
        return poke(argument, c->outer, size) < 0 ? -EFAULT : r;
}

long gate_call(Gate *g, int fd, unsigned long request, uint64_t argument, uint32_t nr, uint32_t size) {
        Call c;

        /* Not left to the kernel: another thread may have put something there by then. */
        if (peek(c.outer, argument, size) < 0)
                return gate_file(g, fd) == GATE_FILE_RM ? -EFAULT : GATE_NOT_OURS;
        rm_decode(nr, size, c.outer, &c.ask);
        c.g = g;
        c.fd = fd;
        /* Other devices may have such calls: as long as it is uncertain, theirs are not answered
         * for them. */
        if (c.ask.what == RM_OTHER || (c.ask.what == RM_UNKNOWN && !gate_is_driver(g, fd)))
                return forward(&c, request, argument, size);
        if (!is_for_driver(&c))
                return GATE_NOT_OURS;
        bytes_copy(c.sent, c.outer, size);
        c.request = request;
        c.argument = argument;
        c.card = GATE_NO_CARD;
        c.n_inner = 0;
        return act(&c);
}
