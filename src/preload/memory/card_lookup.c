/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/card_lookup.h"

#include "preload/inject/bytes.h"

/* The gate's own calls use the application's descriptor and client, and free what they allocate. */

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

/* Makes a subdevice to read the UUID from: a device has at least the first. The driver picks the
 * handle. 0: the device has a subdevice already, and can have no other (subdevice.c). */
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

/* Returns the handle of the device's subdevice, or 0: deviceCtrlCmdGpuGetFindSubDeviceHandle_IMPL()
 * in device_ctrl.c, which needs no privilege. */
static uint32_t find_subdevice(int fd, uint32_t client, uint32_t device) {
        RmFindSubdevice params = {.subdevice = 0};

        return control(fd, client, device, RM_CTRL_FIND_SUBDEVICE, &params, sizeof params) == RM_OK
                       ? params.handle
                       : 0;
}

static void free_object(int fd, uint32_t client, uint32_t parent, uint32_t object) {
        RmFree f = {.root = client, .parent = parent, .old = object};

        /* on failure it ends with its device */
        (void) gate_driver(fd, RM_IOCTL(RM_ESC_FREE, sizeof f), &f);
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

static int ask_card(Gate *g, int fd, const RmParent *parent) {
        uint32_t made, subdevice, status;
        RmGidInfo gid;

        status = ask_uuid(fd, parent->client, parent->handle, &gid);
        if (status != RM_OK) { /* the parent is a device */
                made = make_subdevice(fd, parent->client, parent->handle);
                if (made == 0 && g->n_cards == 1)
                        return 0;
                subdevice = made != 0 ? made : find_subdevice(fd, parent->client, parent->handle);
                if (subdevice == 0)
                        return GATE_NO_CARD;
                status = ask_uuid(fd, parent->client, subdevice, &gid);
                if (made != 0)
                        free_object(fd, parent->client, parent->handle, made);
        }
        if (status == RM_OK)
                return by_uuid(g, &gid);
        return g->n_cards == 1 ? 0 : GATE_NO_CARD;
}

int gate_card(Gate *g, int fd, RmParent *parent) {
        int card;

        if (parent->card < GATE_CARDS)
                return parent->card;
        card = ask_card(g, fd, parent);
        if (card >= 0)
                rm_objects_set_card(&g->objects, parent, (uint8_t) card);
        return card;
}
