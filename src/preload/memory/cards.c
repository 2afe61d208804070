/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "preload/inject/bytes.h"
#include "preload/memory/rows.h"
#include "preload/memory/travel.h"

enum {
        FILES_LOOKED_AT = 1024, /* the descriptors that a process may have, where nobody has said otherwise */
        FEW_CLIENTS = 16,
};

/* Our own calls of the driver, on the application's descriptor and with its client: nothing stays
 * of them. */

static uint32_t control(int fd, uint32_t client, uint32_t object, uint32_t cmd, void *params, uint32_t size) {
        RmControl c = {.client = client,
                       .object = object,
                       .cmd = cmd,
                       .params = (uint64_t) (uintptr_t) params,
                       .params_size = size,
                       .status = RM_ERR_INVALID_ARGUMENT};

        return gate_driver(fd, RM_IOCTL(RM_ESC_CONTROL, sizeof c), &c) < 0 ? RM_ERR_INVALID_ARGUMENT
                                                                           : c.status;
}

/* Any subdevice tells, and a device has at least the first one. The driver chooses the handle. */
static uint32_t make_subdevice(int fd, uint32_t client, uint32_t device) {
        RmSubdeviceParams params = {.subdevice = 0};
        RmAlloc a = {.root = client,
                     .parent = device,
                     .class_ = RM_CLASS_SUBDEVICE,
                     .params = (uint64_t) (uintptr_t) &params,
                     .params_size = sizeof params,
                     .status = RM_ERR_INVALID_ARGUMENT};

        if (gate_driver(fd, RM_IOCTL(RM_ESC_ALLOC, sizeof a), &a) < 0 || a.status != RM_OK)
                return 0;
        return a.new;
}

static void free_object(int fd, uint32_t client, uint32_t parent, uint32_t object) {
        RmFree f = {.root = client, .parent = parent, .old = object};

        (void) gate_driver(fd, RM_IOCTL(RM_ESC_FREE, sizeof f), &f); /* else it goes with its device */
}

static bool same_text(const char *a, const uint8_t *b, uint32_t n) {
        for (uint32_t i = 0; i < SLICE_UUID && i < n; i++) {
                if (a[i] != (char) b[i])
                        return false;
                if (a[i] == '\0')
                        return i > 0;
        }
        return false;
}

static int by_uuid(const Gate *g, const RmGidInfo *gid) {
        for (uint32_t i = 0; i < GATE_CARDS && i < g->n_cards; i++)
                if (same_text(g->cards[i].uuid, gid->data, sizeof gid->data))
                        return (int) i;
        return GATE_NO_CARD;
}

static uint32_t ask_uuid(int fd, uint32_t client, uint32_t subdevice, RmGidInfo *gid) {
        bytes_clear(gid, sizeof *gid);
        gid->flags = RM_GID_ASCII;
        return control(fd, client, subdevice, RM_CTRL_GID_INFO, gid, sizeof *gid);
}

static int ask_card(Gate *g, int fd, const ObjectSeat *seat) {
        uint32_t subdevice, status;
        RmGidInfo gid;

        status = ask_uuid(fd, seat->client, seat->parent, &gid);
        if (status != RM_OK) { /* not a subdevice: a device, then */
                subdevice = make_subdevice(fd, seat->client, seat->parent);
                if (subdevice == 0)
                        return g->n_cards == 1 ? 0 : GATE_NO_CARD;
                status = ask_uuid(fd, seat->client, subdevice, &gid);
                free_object(fd, seat->client, seat->parent, subdevice);
        }
        if (status == RM_OK)
                return by_uuid(g, &gid);
        return g->n_cards == 1 ? 0 : GATE_NO_CARD;
}

int gate_card(Gate *g, int fd, ObjectSeat *seat) {
        int card;

        if (seat->card < GATE_CARDS)
                return seat->card;
        card = ask_card(g, fd, seat);
        if (card >= 0)
                objects_set_card(&g->objects, seat, (uint8_t) card);
        return card;
}

/* ---- bytes ---- */

void gate_give_back(Gate *g, const ObjectBytes *bytes) {
        for (unsigned row = 0; row < OBJECTS_ROWS; row++)
                for (uint32_t left = bytes->cards[row], i; left != 0; left &= left - 1) {
                        i = (uint32_t) __builtin_ctz(left);
                        if (g->cards[i].good)
                                slice_release(gate_slice(g, (int) i, (GateRow) row), bytes->card[row][i]);
                }
}

/* A client dies with its open file, which we do not watch. A duplicate of an object that does not
 * exist is asked for: where the source client lives, the driver says that there is no such object,
 * and no client otherwise, whichever file the call comes in on. The first question, about the
 * asking client itself, shows that the driver answers so. */
static uint32_t ask_client(int fd, uint32_t client, uint32_t about) {
        RmDup d = {.client = client,
                   .parent = client,
                   .source_client = about,
                   .status = RM_ERR_INVALID_ARGUMENT};

        return gate_driver(fd, RM_IOCTL(RM_ESC_DUP_OBJECT, sizeof d), &d) < 0 ? RM_ERR_INVALID_ARGUMENT
                                                                              : d.status;
}

static bool lives(int fd, uint32_t client) {
        return ask_client(fd, client, client) == RM_ERR_OBJECT_NOT_FOUND;
}

/* That of a client on the same file, which another thread may end at any time: then the driver says
 * so of whomever it is asked about, and nothing was learnt. asker: as it was before. */
static bool is_dead(Gate *g, int fd, const ObjectSeat *asker, uint32_t about) {
        uint32_t status = about == asker->client ? RM_OK : ask_client(fd, asker->client, about);

        return (status == RM_ERR_INVALID_CLIENT || status == RM_ERR_INVALID_OBJECT_HANDLE) &&
               lives(fd, asker->client) && (!asker->known || objects_still(&g->objects, asker));
}

/* fd: held by the gate. false: that client does not live on this file, and nothing was learnt. */
static bool drop_stale_clients(Gate *g, int fd, uint32_t client) {
        ObjectSeat asker = objects_seat(&g->objects, client, client);
        uint32_t clients[64], after = 0;
        ObjectBytes freed;
        unsigned n;

        object_bytes_none(&freed);
        if (!lives(fd, client))
                return false;
        do {
                n = objects_clients(&g->objects, after, clients, sizeof clients / sizeof clients[0]);
                for (unsigned i = 0; i < n; i++) {
                        ObjectMark mark = objects_client(&g->objects, clients[i]);

                        after = clients[i];
                        if (is_dead(g, fd, &asker, clients[i]))
                                objects_forget(&g->objects, &mark, &freed);
                }
        } while (n == sizeof clients / sizeof clients[0]);
        gate_give_back(g, &freed);
        return true;
}

/* Who has one client and has exported nothing need not be asked about. */
static bool may_be_stale(Gate *g) {
        return atomic_load_explicit(&g->objects.clients, memory_order_relaxed) > 1 ||
               exports_files(&g->exports) > 0;
}

/* Through a descriptor of one's own: the program's may be another file's before all is asked. */
static void drop_stale(Gate *g, int fd, uint32_t client) {
        int held = fd;

        if (!filed_hold(&held) || held < 0)
                return; /* they stay charged */
        if (atomic_load_explicit(&g->objects.clients, memory_order_relaxed) > 1)
                (void) drop_stale_clients(g, held, client); /* else they stay charged */
        filed_drop_closed(g, held);
        filed_let_go(held);
}

int gate_reserve(Gate *g, int card, GateRow row, uint64_t bytes, int fd, uint32_t client) {
        SliceUser *slice = gate_slice(g, card, row);
        int r;

        atomic_store_explicit(&slice->file, fd, memory_order_relaxed);
        r = slice_reserve(slice, bytes);
        if (r == 0 || !may_be_stale(g))
                return r;
        drop_stale(g, fd, client);
        return slice_reserve(slice, bytes);
}

/* The files of this process are looked through, because none is remembered: who closes them is not
 * watched, and by then the number is another file's. Not while it is uncertain which ones are the
 * driver's. */
static void drop_stale_anywhere(Gate *g) {
        uint32_t clients[FEW_CLIENTS];
        unsigned n = objects_clients(&g->objects, 0, clients, FEW_CLIENTS);
        bool asked = n < 2; /* a single one can ask about nobody else */

        for (int fd = 0; fd < FILES_LOOKED_AT && !g->uncertain; fd++) {
                int held = fd;

                if (gate_file(g, fd) != GATE_FILE_RM || !filed_hold(&held))
                        continue;
                if (gate_file(g, held) == GATE_FILE_RM) { /* still */
                        filed_drop_closed(g, held);
                        for (unsigned i = 0; i < n && !asked; i++)
                                asked = drop_stale_clients(g, held, clients[i]);
                }
                filed_let_go(held);
        }
}

int gate_reserve_managed(Gate *g, int card, uint64_t bytes) {
        SliceUser *slice = &g->cards[card].slice;
        int r = slice_reserve(slice, bytes);

        if (r == 0 || !may_be_stale(g))
                return r;
        drop_stale_anywhere(g);
        return slice_reserve(slice, bytes);
}

void gate_refresh(Gate *g, int card, int fd, uint32_t client) {
        SliceUser *slice = &g->cards[card].slice;

        if (!g->cards[card].good)
                return;
        atomic_store_explicit(&slice->file, fd, memory_order_relaxed);
        if (slice_refresh(slice) && may_be_stale(g))
                drop_stale(g, fd, client);
}
