/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/managed.h"

#include <errno.h>
#include <sys/mman.h>

#include "gpu/rm/uvm_ioctl.h"
#include "preload/inject/bytes.h"
#include "preload/inject/next.h"
#include "preload/inject/usermem.h"
#include "preload/memory/driver_fd.h"
#include "preload/memory/reserve.h"
#include "preload/memory/uvm_file.h"

enum {
        UUID_BYTES = 16,
        /* attempts; one is enough, unless another thread maps or unmaps at the same time */
        TRIES_MAX = 1000,
};

static void release_on(Gate *g, uint32_t card, uint64_t bytes) {
        if (g->cards[card].usable)
                slice_release(&g->cards[card].slice, bytes);
}

static void release_cards(Gate *g, uint32_t cards, uint64_t bytes) {
        for (; cards != 0; cards &= cards - 1)
                release_on(g, (uint32_t) __builtin_ctz(cards), bytes);
}

static void release_bytes(Gate *g, uint32_t cards, const UvmBytes *bytes) {
        for (uint32_t left = cards & bytes->cards; left != 0; left &= left - 1) {
                uint32_t i = (uint32_t) __builtin_ctz(left);

                release_on(g, i, bytes->card[i]);
        }
}

/* Reserves the bytes on all cards, or on none. */
static bool reserve_bytes(Gate *g, const UvmBytes *bytes) {
        for (uint32_t left = bytes->cards; left != 0; left &= left - 1) {
                uint32_t i = (uint32_t) __builtin_ctz(left);

                if (!g->cards[i].usable || gate_reserve_managed(g, (int) i, bytes->card[i]) < 0) {
                        release_bytes(g, (1u << i) - 1, bytes);
                        return false;
                }
        }
        return true;
}

static bool reserve_cards(Gate *g, uint32_t cards, uint64_t bytes) {
        UvmBytes all;

        uvm_bytes_none(&all);
        uvm_bytes_add(&all, cards, bytes);
        return reserve_bytes(g, &all);
}

/* ---- mappings ---- */

void gate_unmap_managed(Gate *g, uint64_t start, uint64_t end, uint32_t now) {
        UvmRange part;

        while (uvm_take(&g->uvm, start, end, now, &part))
                release_cards(g, part.cards, part.end - part.start);
}

/* Returns the card with the most room in its slice: a guess, for memory that is mapped before a
 * card is registered. */
static uint32_t roomiest_card(Gate *g) {
        uint64_t best = 0;
        uint32_t card = 0;

        for (uint32_t i = 0; i < g->n_cards && i < GATE_CARDS; i++) {
                uint64_t limit = g->cards[i].usable ? slice_limit(&g->cards[i].slice) : 0;
                uint64_t used = limit > 0 ? slice_used(&g->cards[i].slice) : 0;

                if (used < limit && limit - used > best) {
                        best = limit - used;
                        card = i;
                }
        }
        return card;
}

static uint32_t registered_cards(Gate *g) {
        return atomic_load_explicit(&g->uvm.cards, memory_order_relaxed);
}

/* Adds a range of the table. false: a card was registered meanwhile, and its slice has no room. */
static bool note_range(Gate *g, uint64_t start, uint64_t end, uint32_t cards, bool guessed) {
        int r = uvm_add(&g->uvm, start, end, cards, guessed);

        while (r == -EAGAIN) {
                uint32_t now = registered_cards(g);

                guessed = now == 0;
                now = guessed ? 1u << roomiest_card(g) : now;
                if (!reserve_cards(g, now & ~cards, end - start)) {
                        release_cards(g, cards, end - start);
                        return false;
                }
                release_cards(g, cards & ~now, end - start);
                cards = now;
                r = uvm_add(&g->uvm, start, end, cards, guessed);
        }
        return true; /* without memory for the table it stays charged */
}

/* A new mapping. One that replaces others (MAP_FIXED) takes over their bytes: only what exceeds the
 * bytes charged there is reserved. */
typedef struct Mapping {
        uint64_t bytes;
        uint32_t cards;
        uint32_t now;      /* serial before the call */
        UvmBytes reserved; /* on each of the cards */
} Mapping;

static bool reserve_mapping(Gate *g, Mapping *m, uint64_t start, bool over) {
        UvmBytes there;

        uvm_bytes_none(&there);
        uvm_bytes_none(&m->reserved);
        if (over && start + m->bytes > start)
                uvm_charged(&g->uvm, start, start + m->bytes, m->now, &there);
        for (uint32_t left = m->cards; left != 0; left &= left - 1) {
                uint64_t has = uvm_bytes_on(&there, (uint32_t) __builtin_ctz(left));

                uvm_bytes_add(&m->reserved, left & -left, has < m->bytes ? m->bytes - has : 0);
        }
        return reserve_bytes(g, &m->reserved);
}

/* Takes over the charges below the new mapping, and releases what exceeds its bytes. Another thread
 * may have unmapped some of it meanwhile, and other callers got those bytes: the difference is
 * reserved again. false: there is no room, and nothing of the mapping is charged. */
static bool settle_mapping(Gate *g, const Mapping *m, uint64_t start) {
        UvmBytes has, lacks, more;
        UvmRange part;

        uvm_bytes_none(&has);
        uvm_bytes_none(&lacks);
        uvm_bytes_none(&more);
        while (uvm_take(&g->uvm, start, start + m->bytes, m->now, &part))
                uvm_bytes_add(&has, part.cards, part.end - part.start);
        for (uint32_t left = m->cards; left != 0; left &= left - 1)
                uvm_bytes_add(&has, left & -left, m->reserved.card[__builtin_ctz(left)]);
        for (uint32_t left = has.cards; left != 0; left &= left - 1) {
                uint32_t i = (uint32_t) __builtin_ctz(left);
                uint64_t wants = m->cards >> i & 1 ? m->bytes : 0;

                if (has.card[i] < wants)
                        uvm_bytes_add(&lacks, left & -left, wants - has.card[i]);
                else
                        uvm_bytes_add(&more, left & -left, has.card[i] - wants);
        }
        if (!reserve_bytes(g, &lacks)) {
                release_bytes(g, has.cards, &has);
                return false;
        }
        release_bytes(g, more.cards, &more);
        return true;
}

long gate_map_managed(Gate *g, void *address, size_t length, int protection, int flags, int fd,
                      off_t offset) {
        uint32_t cards = registered_cards(g);
        bool guessed = cards == 0;
        Mapping m;
        long r;

        m.bytes = gate_page_up(length);
        m.cards = guessed ? 1u << roomiest_card(g) : cards;
        m.now = uvm_now(&g->uvm);
        if (m.bytes < length || !reserve_mapping(g, &m, (uint64_t) (uintptr_t) address, flags & MAP_FIXED)) {
                gate_log(g, "refused: managed memory", length, m.cards);
                return -ENOMEM;
        }
        r = next_mmap(address, length, protection, flags, fd, offset);
        if (gate_failed(r)) {
                release_bytes(g, m.cards, &m.reserved);
                return r;
        }
        if (settle_mapping(g, &m, (uint64_t) r) &&
            note_range(g, (uint64_t) r, (uint64_t) r + m.bytes, m.cards, guessed))
                return r;
        (void) next_munmap((void *) r, m.bytes); /* the mapping that was just made */
        return -ENOMEM;
}

/* Notes moved ranges under their new addresses, on the same cards: the pages have not moved. */
static bool move_ranges(Gate *g, uint64_t start, uint64_t end, uint64_t r, uint32_t now) {
        bool fits = true;
        UvmRange part;

        while (uvm_take(&g->uvm, start, end, now, &part))
                fits = note_range(g, part.start - start + r, part.end - start + r, part.cards,
                                  part.guessed) &&
                       fits;
        return fits;
}

long gate_remap_managed(Gate *g, uint64_t start, uint64_t old, uint64_t r, uint64_t length, uint32_t now) {
        uint64_t kept = old < length ? old : length;

        if (old > kept)
                gate_unmap_managed(g, start + kept, start + old, now);
        if (r == start)
                return (long) r;
        gate_unmap_managed(g, r, r + length, now); /* with MREMAP_FIXED */
        if (move_ranges(g, start, start + kept, r, now))
                return (long) r;
        (void) next_munmap((void *) r, length); /* the mapping that was just moved */
        return -ENOMEM;
}

/* ---- the file ---- */

/* Switches HMM off: with it, ordinary memory of the process migrates to the card, and no mapping of
 * this file shows it. No other driver has this request number, so a file that answers OK is uvm's,
 * also if it did not exist when the limits page was written. */
long gate_uvm_initialize(Gate *g, int fd, unsigned long request, uint64_t argument) {
        bool is_uvm = gate_is_uvm(g, fd);
        UvmInitialize p;
        uint64_t flags;
        long r;

        if (usermem_read(&p, argument, sizeof p) < 0)
                return is_uvm ? -EFAULT : GATE_NOT_OURS; /* it may be mapped when the driver looks */
        flags = p.flags;
        p.flags |= UVM_INIT_DISABLE_HMM;
        r = gate_next_ioctl(fd, request, &p);
        if (r < 0)
                return r;
        if (p.status == RM_OK && !is_uvm)
                gate_set_uvm_file(g, fd);
        p.flags = flags;
        return usermem_write(argument, &p, sizeof p) < 0 ? -EFAULT : r;
}

/* ---- cards ---- */

static uint32_t hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return (uint32_t) (c - '0');
        return c >= 'a' && c <= 'f'   ? (uint32_t) (c - 'a') + 10
               : c >= 'A' && c <= 'F' ? (uint32_t) (c - 'A') + 10
                                      : 16;
}

/* text: "GPU-" and 32 hexadecimal digits with dashes; uuid: 16 bytes in the same order. */
static bool same_uuid(const char *text, const uint8_t *uuid) {
        uint32_t n = 0;

        for (uint32_t i = 4; i < SLICE_UUID && text[0] != '\0' && text[i] != '\0' && n < 2 * UUID_BYTES;
             i++) {
                if (text[i] == '-')
                        continue;
                if (hex_digit(text[i]) != (uint32_t) (n % 2 == 0 ? uuid[n / 2] >> 4 : uuid[n / 2] & 15))
                        return false;
                n++;
        }
        return n == 2 * UUID_BYTES;
}

int gate_card_by_uuid(const Gate *g, const uint8_t *uuid) {
        for (uint32_t i = 0; i < g->n_cards && i < GATE_CARDS; i++)
                if (same_uuid(g->cards[i].uuid, uuid))
                        return (int) i;
        return g->n_cards == 1 && g->cards[0].uuid[0] == '\0' ? 0 : GATE_NO_CARD;
}

static bool charge_registration(Gate *g, uint32_t card) {
        uint64_t bytes;
        UvmBytes freed;

        for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
                bytes = uvm_lacks(&g->uvm, card);
                if (!reserve_cards(g, 1u << card, bytes))
                        return false;
                if (uvm_register(&g->uvm, card, bytes, &freed)) {
                        release_bytes(g, freed.cards, &freed);
                        return true;
                }
                release_cards(g, 1u << card, bytes);
        }
        return false;
}

static void release_registration(Gate *g, uint32_t card) {
        uint64_t bytes = uvm_unregister(&g->uvm, card);

        if (bytes > 0)
                release_cards(g, 1u << card, bytes);
}

/* Answers with the structure as it was sent, and a status. */
static long refuse_card(UvmRegisterGpu *p, uint64_t argument) {
        p->status = RM_ERR_NO_MEMORY;
        return usermem_write(argument, p, sizeof *p) < 0 ? -EFAULT : 0;
}

static long add_card(Gate *g, int fd, unsigned long request, uint64_t argument) {
        UvmRegisterGpu p;
        int card;
        long r;

        if (usermem_read(&p, argument, sizeof p) < 0)
                return -EFAULT; /* it may be mapped when the driver looks */
        card = gate_card_by_uuid(g, p.uuid);
        if (card < 0 || !charge_registration(g, (uint32_t) card)) {
                gate_log(g, "refused: a card for managed memory", (uint64_t) fd, (uint64_t) card);
                return refuse_card(&p, argument);
        }
        r = gate_next_ioctl(fd, request, &p);
        if (r < 0 || p.status != RM_OK)
                release_registration(g, (uint32_t) card);
        if (r < 0)
                return r;
        return usermem_write(argument, &p, sizeof p) < 0 ? -EFAULT : r;
}

static long remove_card(Gate *g, int fd, unsigned long request, uint64_t argument) {
        uint32_t now = uvm_maps_now(&g->maps);
        UvmUnregisterGpu p;
        uint64_t key = 0;
        int card;
        long r;

        if (usermem_read(&p, argument, sizeof p) < 0)
                return -EFAULT; /* it may be mapped when the driver looks */
        if (!gate_hold_fd(&fd)) /* another thread may put another file in its place */
                return GATE_NOT_OURS;
        if (fd >= 0)
                (void) uvm_file_key(g, fd, &key); /* if it is not known, the mappings stay charged */
        r = gate_next_ioctl(fd, request, &p);
        gate_release_fd(fd);
        card = gate_card_by_uuid(g, p.uuid);
        if (r >= 0 && p.status == RM_OK && card >= 0) {
                release_registration(g, (uint32_t) card);
                if (key != 0)
                        uvm_file_end(g, &(UvmEnd){.key = key,
                                                  .end = UINT64_MAX,
                                                  .kinds = 1u << UVM_NOTE_MAP, /* device P2P may stay */
                                                  .gpus = 1u << card,
                                                  .now = now});
        }
        if (r < 0)
                return r;
        return usermem_write(argument, &p, sizeof p) < 0 ? -EFAULT : r;
}

long gate_uvm_register(Gate *g, int fd, unsigned long request, uint64_t argument) {
        return request == UVM_REGISTER_GPU_CMD ? add_card(g, fd, request, argument)
                                               : remove_card(g, fd, request, argument);
}
