/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/reserve.h"

#include <errno.h>

#include "preload/memory/driver_fd.h"
#include "preload/memory/export_fd.h"
#include "preload/memory/rows.h"
#include "preload/memory/uvm_file.h"

enum {
        FILES_MAX = 1024, /* descriptors that are searched: the default limit of a process */
        FEW_CLIENTS = 16,
};

/* ---- stale clients ---- */

/* Asks whether a client lives: it ends with its open file, and the gate does not see a close(). So
 * the driver is asked for a duplicate of an object that does not exist. If the source client lives,
 * the answer is that there is no such object, and otherwise that there is no such client; both on
 * any file. */
static uint32_t ask_client(int fd, uint32_t client, uint32_t about) {
        RmDup d = {.client = client,
                   .parent = client,
                   .source_client = about,
                   .status = RM_ERR_INVALID_ARGUMENT};

        return gate_driver(fd, RM_IOCTL(RM_ESC_DUP_OBJECT, sizeof d), &d) < 0 ? RM_ERR_INVALID_ARGUMENT
                                                                              : d.status;
}

/* Whether the asking client itself lives. This also shows that this driver answers as described
 * above. */
static bool client_lives(int fd, uint32_t client) {
        return ask_client(fd, client, client) == RM_ERR_OBJECT_NOT_FOUND;
}

/* Whether a client has ended. If another thread ends the asking client, the driver gives the same
 * answer for every other client, and nothing was learnt. asker: the client as it was found
 * before. */
static bool is_dead(Gate *g, int fd, const RmParent *asker, uint32_t about) {
        uint32_t status = about == asker->client ? RM_OK : ask_client(fd, asker->client, about);

        return (status == RM_ERR_INVALID_CLIENT || status == RM_ERR_INVALID_OBJECT_HANDLE) &&
               client_lives(fd, asker->client) && (!asker->known || rm_objects_is_valid(&g->objects, asker));
}

/* Drops the clients that have ended. fd: held by the gate. false: the client does not live on this
 * file, and nothing was learnt. */
static bool drop_stale_clients(Gate *g, int fd, uint32_t client) {
        RmParent asker = rm_objects_parent(&g->objects, client, client);
        uint32_t clients[64], after = 0;
        FreedBytes freed;
        unsigned n;

        freed_bytes_clear(&freed);
        if (!client_lives(fd, client))
                return false;
        do {
                n = rm_objects_clients(&g->objects, after, clients, sizeof clients / sizeof clients[0]);
                for (unsigned i = 0; i < n; i++) {
                        RmObjectMark mark = rm_objects_mark_client(&g->objects, clients[i]);

                        after = clients[i];
                        if (is_dead(g, fd, &asker, clients[i]))
                                rm_objects_remove(&g->objects, &mark, &freed);
                }
        } while (n == sizeof clients / sizeof clients[0]);
        gate_release_bytes(g, &freed);
        return true;
}

/* Whether anything may be stale. A single client is the one that calls, and cannot be stale; files
 * may be closed. */
static bool may_be_stale(Gate *g) {
        return atomic_load_explicit(&g->objects.clients, memory_order_relaxed) > 1 ||
               export_table_files(&g->exports) > 0 ||
               atomic_load_explicit(&g->maps.n_files, memory_order_relaxed) > 0;
}

/* Drops what is stale, through a descriptor of the gate's own: the program's number may become
 * another file's meanwhile. */
static void drop_stale(Gate *g, int fd, uint32_t client) {
        int held = fd;

        uvm_file_drop_closed(g, fd);
        if (!gate_hold_fd(&held) || held < 0)
                return; /* stale bytes stay charged */
        if (atomic_load_explicit(&g->objects.clients, memory_order_relaxed) > 1)
                (void) drop_stale_clients(g, held, client); /* on failure they stay charged */
        export_fd_drop_closed(g, held);
        gate_release_fd(held);
}

int gate_reserve(Gate *g, int card, GateRow row, uint64_t bytes, int fd, uint32_t client) {
        SliceUser *slice = gate_slice(g, card, row);
        bool again = may_be_stale(g);
        int r;

        if (!gate_need_row(g, card, fd))
                return -ENOMEM;
        atomic_store_explicit(&slice->file, fd, memory_order_relaxed);
        r = again ? slice_try(slice, bytes) : slice_reserve(slice, bytes);
        if (r < 0 && again) {
                drop_stale(g, fd, client);
                r = slice_reserve(slice, bytes);
        }
        if (r < 0)
                gate_say_refused(g, &g->cards[card], bytes);
        return r;
}

/* Drops what is stale through any descriptor of this process. None is remembered: the gate does not
 * see a close(), and the number may be another file's by now. Not while the driver's files are
 * unknown. last: the number of the last call's file. */
static void drop_stale_anywhere(Gate *g, int last) {
        uint32_t clients[FEW_CLIENTS];
        unsigned n = rm_objects_clients(&g->objects, 0, clients, FEW_CLIENTS);
        bool asked = n < 2; /* a single client has no other to ask about */

        uvm_file_drop_closed(g, last);
        for (int fd = 0; fd < FILES_MAX && !g->files_unknown; fd++) {
                int held = fd;

                if (gate_file(g, fd) != GATE_FILE_RM || !gate_hold_fd(&held))
                        continue;
                if (gate_file(g, held) == GATE_FILE_RM) { /* the duplicate, too */
                        export_fd_drop_closed(g, held);
                        for (unsigned i = 0; i < n && !asked; i++)
                                asked = drop_stale_clients(g, held, clients[i]);
                }
                gate_release_fd(held);
        }
}

int gate_reserve_managed(Gate *g, int card, uint64_t bytes) {
        SliceUser *slice = &g->cards[card].slice;
        int last = atomic_load_explicit(&slice->file, memory_order_relaxed), r;
        bool again = may_be_stale(g);

        if (!gate_need_row(g, card, last))
                return -ENOMEM;
        r = again ? slice_try(slice, bytes) : slice_reserve(slice, bytes);
        if (r < 0 && again) {
                drop_stale_anywhere(g, last);
                r = slice_reserve(slice, bytes);
        }
        if (r < 0)
                gate_say_refused(g, &g->cards[card], bytes);
        return r;
}

void gate_refresh(Gate *g, int card, int fd, uint32_t client) {
        SliceUser *slice = &g->cards[card].slice;

        if (!g->cards[card].usable)
                return;
        atomic_store_explicit(&slice->file, fd, memory_order_relaxed);
        if (slice_refresh(slice) && may_be_stale(g))
                drop_stale(g, fd, client);
}
