/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>

#include "gpu/rm/rm.h"
#include "sim/export.h"

enum {
        HANDLES_FIRST = 0xCAF00000, /* RS_UNIQUE_HANDLE_BASE and _RANGE: handles that the driver makes */
        HANDLES = 0x80000,
        TIMESLICE_DEFAULT_USEC = 128 << 3, /* kernel_fifo_gv100.c */
};

SimObject *sim_object_find(const SimClient *c, uint32_t handle) {
        SimObject *o;

        HASH_FIND(hh, c->objects, &handle, sizeof handle, o);
        return o;
}

/* clientAssignResourceHandle(): the handle that the client asks for, or the next one of the
 * driver's range. */
static uint32_t assign_handle(SimClient *c, uint32_t wanted, uint32_t *ret) {
        uint32_t handle;

        if (wanted == c->handle)
                return RM_ERR_INVALID_OBJECT_HANDLE;
        if (wanted != 0) {
                if (sim_object_find(c, wanted))
                        return RM_ERR_INSERT_DUPLICATE_NAME;
                *ret = wanted;
                return RM_OK;
        }
        do /* ends, because a file has fewer objects than there are handles */
                handle = HANDLES_FIRST + c->next_handle++ % HANDLES;
        while (handle == c->handle || sim_object_find(c, handle));
        *ret = handle;
        return RM_OK;
}

static_assert((int) SIM_FILE_OBJECTS_MAX < (int) HANDLES, "a free handle is always found");

/* The parents of resource_list.h for the known classes; objects of other classes may be
 * anywhere. */
static bool may_stand_below(uint32_t class_, uint32_t parent) {
        switch (class_) {
        case RM_CLASS_DEVICE:
        case RM_CLASS_MEMORY_EXPORT:
                return parent == RM_CLASS_ROOT_CLIENT;
        case RM_CLASS_SUBDEVICE:
        case RM_CLASS_MEMORY_SYSTEM:
        case RM_CLASS_MEMORY_DYNAMIC:
        case RM_CLASS_MEMORY_VIRTUAL:
        case RM_CLASS_MEMORY_FLA:
        case RM_CLASS_CHANNEL_GROUP:
                return parent == RM_CLASS_DEVICE;
        case RM_CLASS_MEMORY_LOCAL:
        case RM_CLASS_VASPACE:
                return parent == RM_CLASS_DEVICE || parent == RM_CLASS_SUBDEVICE;
        default:
                if (rm_class_is_channel(class_))
                        return parent == RM_CLASS_DEVICE || parent == RM_CLASS_CHANNEL_GROUP;
                return true;
        }
}

static bool has_child(const SimObject *parent, uint32_t class_) {
        for (const SimObject *o = parent->children; o; o = o->next)
                if (o->class_ == class_)
                        return true;
        return false;
}

/* device.c and subdevice.c: their constructors, and resservResourceFactory() before them. */
static uint32_t choose_card(const Sim *s, const SimObject *parent, const SimWish *w, uint32_t *ret) {
        *ret = parent->card;
        if (w->class_ == RM_CLASS_DEVICE) {
                if (w->instance >= SIM_CARDS_MAX)
                        return RM_ERR_INVALID_ARGUMENT;
                if (w->instance >= s->n_cards)
                        return RM_ERR_INVALID_STATE;
                *ret = w->instance;
        }
        if (w->class_ == RM_CLASS_MEMORY_EXPORT && s->release.facts->export_mem < 2)
                return RM_ERR_INVALID_CLASS;
        if (w->class_ == RM_CLASS_SUBDEVICE) {
                if (w->instance != 0)
                        return RM_ERR_INVALID_CLASS;
                if (has_child(parent, RM_CLASS_SUBDEVICE))
                        return RM_ERR_INSUFFICIENT_RESOURCES;
        }
        return RM_OK;
}

/* A channel outside a group gets a group of its own. */
static uint64_t bytes_of(const SimObject *parent, const SimWish *w) {
        if (w->class_ == RM_CLASS_MEMORY_LOCAL)
                return w->bytes;
        if (w->class_ == RM_CLASS_CHANNEL_GROUP ||
            (rm_class_is_channel(w->class_) && parent->class_ == RM_CLASS_DEVICE))
                return SIM_GROUP_BYTES;
        return 0;
}

static uint32_t take_block(Sim *s, uint32_t card, uint64_t bytes, SimBlock **ret) {
        int r;

        if (bytes == 0)
                return RM_OK;
        if (card >= s->n_cards)
                return RM_ERR_INVALID_OBJECT_PARENT;
        r = sim_card_take(&s->cards[card], bytes, ret);
        return r == 0 ? RM_OK : r < 0 ? RM_ERR_INSUFFICIENT_RESOURCES : RM_ERR_NO_MEMORY;
}

/* Takes the lowest free slot of the card's engines. false: all are taken. */
static bool take_place(SimObject *o) {
        const SimListener *l = &o->client->file->sim->listener;
        SimCard *card = &o->client->file->sim->cards[o->card];
        uint32_t slot = 0;

        while (slot < ENGINE_GROUPS && card->slots[slot])
                slot++;
        if (slot == ENGINE_GROUPS)
                return false;
        card->slots[slot] = true;
        o->slot = slot + 1;
        if (l->enter)
                l->enter(l->data, o->card, slot, o);
        return true;
}

static void leave_place(SimObject *o) {
        const SimListener *l = &o->client->file->sim->listener;

        if (o->slot == 0)
                return;
        o->client->file->sim->cards[o->card].slots[o->slot - 1] = false;
        if (l->leave)
                l->leave(l->data, o->card, o->slot - 1);
}

static SimObject *object_init(SimClient *c, SimObject *o, SimObject *parent) {
        HASH_ADD(hh, c->objects, handle, sizeof o->handle, o);
        if (!hash_added(o, hh)) {
                free(o);
                return NULL;
        }
        o->client = c;
        o->parent = parent;
        if (parent) {
                o->next = parent->children;
                o->link = &parent->children;
                if (o->next)
                        o->next->link = &o->next;
                parent->children = o;
        }
        c->file->n_objects++;
        c->file->sim->n_objects++;
        return o;
}

/* On success the object owns the block; on failure the caller does. */
static SimObject *object_new(SimClient *c, SimObject *parent, uint32_t handle, uint32_t class_, uint32_t card,
                             SimBlock *block) {
        Sim *s = c->file->sim;
        SimObject *o;

        if (s->n_objects >= s->max_objects || c->file->n_objects >= s->max_file_objects)
                return NULL;
        o = calloc(1, sizeof *o);
        if (!o)
                return NULL;
        o->handle = handle;
        o->class_ = class_;
        o->card = card;
        o->depth = parent ? parent->depth + 1 : 0;
        o->block = block;
        o->timeshare = (SimTimeshare){.timeslice_usec = TIMESLICE_DEFAULT_USEC};
        return object_init(c, o, parent);
}

uint32_t sim_object_new(SimClient *c, const SimWish *w, SimObject **ret) {
        Sim *s = c->file->sim;
        uint32_t status, handle, card;
        SimObject *parent, *o;
        SimBlock *block = NULL;

        if (w->handle == c->handle)
                return RM_ERR_INVALID_OBJECT_PARENT; /* serverAllocResourceUnderLock(): only a client's own object */
        parent = sim_object_find(c, w->parent);
        if (!parent)
                return RM_ERR_OBJECT_NOT_FOUND;
        if (!may_stand_below(w->class_, parent->class_))
                return RM_ERR_INVALID_OBJECT_PARENT;
        status = assign_handle(c, w->handle, &handle);
        if (status == RM_OK && parent->depth >= SIM_DEPTH_MAX)
                status = RM_ERR_ILLEGAL_ACTION;
        if (status == RM_OK)
                status = choose_card(s, parent, w, &card);
        if (status == RM_OK)
                status = take_block(s, card, bytes_of(parent, w), &block);
        if (status != RM_OK)
                return status;
        o = object_new(c, parent, handle, w->class_, card, block);
        if (!o) {
                (void) sim_block_unref(block); /* it is always NULL */
                return RM_ERR_INSUFFICIENT_RESOURCES;
        }
        o->owner = block != NULL;
        if (block)
                block->charge = w->charge;
        if (w->class_ == RM_CLASS_CHANNEL_GROUP && !take_place(o)) {
                sim_object_free(o);
                return RM_ERR_INSUFFICIENT_RESOURCES;
        }
        *ret = o;
        return RM_OK;
}

/* Classes that cannot be duplicated have no ...CanCopy_IMPL() in the driver that allows it. */
static bool can_copy(const SimObject *o) {
        return o->parent && o->class_ != RM_CLASS_DEVICE && o->class_ != RM_CLASS_SUBDEVICE &&
               !rm_class_is_channel(o->class_) && o->class_ != RM_CLASS_MEMORY_EXPORT;
}

/* memCopyConstruct(): the duplicate of an object below a device goes below a device, that of one
 * below a subdevice below a subdevice. It may be another card's, for peer access; the memory stays
 * where it is. */
static uint32_t check_copy(const SimObject *source, const SimObject *parent) {
        if (source->class_ != RM_CLASS_MEMORY_LOCAL || parent->class_ == source->parent->class_)
                return RM_OK;
        return RM_ERR_INVALID_OBJECT_PARENT;
}

/* the driver's own calls have the rights of the kernel */
static bool is_drivers(const SimClient *c) {
        return c->file == c->file->sim->exporter;
}

uint32_t sim_object_dup(SimClient *c, uint32_t parent, uint32_t wanted, SimClient *from, uint32_t source,
                        SimObject **ret) {
        SimObject *what = sim_object_find(from, source), *below = sim_object_find(c, parent), *o;
        uint32_t status, handle;
        SimBlock *block;

        if (!what || !below)
                return RM_ERR_OBJECT_NOT_FOUND;
        if (!can_copy(what))
                return RM_ERR_INVALID_ARGUMENT;
        status = assign_handle(c, wanted, &handle);
        if (status == RM_OK && c != from && c->uid != from->uid && !is_drivers(c) && !is_drivers(from))
                status = RM_ERR_INSUFFICIENT_PERMISSIONS;
        if (status == RM_OK)
                status = check_copy(what, below);
        if (status == RM_OK && below->depth >= SIM_DEPTH_MAX)
                status = RM_ERR_ILLEGAL_ACTION;
        if (status != RM_OK)
                return status;
        block = what->block ? sim_block_ref(what->block) : NULL;
        o = object_new(c, below, handle, what->class_, below->card, block);
        if (!o) {
                (void) sim_block_unref(block); /* it is always NULL */
                return RM_ERR_INSUFFICIENT_RESOURCES;
        }
        *ret = o;
        return RM_OK;
}

/* Frees children first, as clientUpdatePendingFreeList() orders them; the depth is bounded. */
static void object_free(SimObject *o) {
        while (o->children)
                object_free(o->children);
        leave_place(o);
        sim_export_object_done(o);
        if (o->link) {
                *o->link = o->next;
                if (o->next)
                        o->next->link = o->link;
        }
        HASH_DELETE(hh, o->client->objects, o);
        o->client->file->n_objects--;
        o->client->file->sim->n_objects--;
        o->block = sim_block_unref(o->block);
        free(o);
}

void sim_object_free(SimObject *o) {
        assert(o->parent);
        object_free(o);
}

/* ---- clients: here, because a client is its own first object ---- */

enum { CLIENTS_FIRST = 0xC1D00000, CLIENTS = 0x100000 }; /* RS_CLIENT_HANDLE_BASE and _MAX */

static_assert((int) SIM_OBJECTS_MAX <= (int) CLIENTS, "a free handle is always found");

SimClient *sim_client_find(const Sim *s, uint32_t handle) {
        SimClient *c;

        HASH_FIND(hh, s->clients, &handle, sizeof handle, c);
        return c;
}

static uint32_t client_handle(Sim *s) {
        uint32_t handle;

        do
                handle = CLIENTS_FIRST + s->next_client++ % CLIENTS;
        while (sim_client_find(s, handle));
        return handle;
}

static SimClient *client_new(SimFile *f, uint32_t handle, SimProcess process) {
        SimClient *c = calloc(1, sizeof *c);

        if (!c)
                return NULL;
        *c = (SimClient){.handle = handle,
                         .pid = process.pid,
                         .uid = process.uid,
                         .started = process.started,
                         .file = f};
        c->root = object_new(c, NULL, handle, RM_CLASS_ROOT_CLIENT, SIM_CARDS_MAX, NULL);
        if (!c->root) {
                free(c);
                return NULL;
        }
        HASH_ADD(hh, f->sim->clients, handle, sizeof c->handle, c);
        if (!hash_added(c, hh)) {
                object_free(c->root);
                free(c);
                return NULL;
        }
        return c;
}

uint32_t sim_client_new(SimFile *f, uint32_t wanted, SimProcess process, SimClient **ret) {
        SimClient *c;

        if (wanted != 0 && sim_client_find(f->sim, wanted))
                return RM_ERR_INSERT_DUPLICATE_NAME;
        if (f->sim->n_objects >= f->sim->max_objects)
                return RM_ERR_INSUFFICIENT_RESOURCES;
        c = client_new(f, wanted != 0 ? wanted : client_handle(f->sim), process);
        if (!c)
                return RM_ERR_INSUFFICIENT_RESOURCES;
        c->next = f->clients;
        c->link = &f->clients;
        if (c->next)
                c->next->link = &c->next;
        f->clients = c;
        *ret = c;
        return RM_OK;
}

/* rmclientValidate(): a client belongs to the open file that made it. For a card's file, the driver
 * knows the control file that it was registered with. The simulator only knows that this is a file
 * of the same process. */
uint32_t sim_client_get(const SimFile *f, uint32_t handle, SimProcess process, SimClient **ret) {
        SimClient *c = sim_client_find(f->sim, handle);

        if (!c)
                return RM_ERR_INVALID_OBJECT_HANDLE;
        if (c->file != f && !(f->registered && c->pid == process.pid))
                return RM_ERR_INVALID_CLIENT;
        *ret = c;
        return RM_OK;
}

void sim_client_free(SimClient *c) {
        object_free(c->root);
        assert(!c->objects);
        *c->link = c->next;
        if (c->next)
                c->next->link = c->link;
        HASH_DELETE(hh, c->file->sim->clients, c);
        free(c);
}
