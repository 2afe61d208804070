/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/plugin_message.h"

#include <assert.h>
#include <errno.h>

#include "node/kubelet/proto.h"

/* Field numbers of k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1. */
enum {
        REGISTER_VERSION = 1,
        REGISTER_ENDPOINT = 2,
        REGISTER_RESOURCE = 3,
        REGISTER_OPTIONS = 4,
        OPTIONS_PRE_START = 1,
        OPTIONS_PREFERRED = 2,
        LIST_DEVICES = 1,
        DEVICE_ID = 1,
        DEVICE_HEALTH = 2,
        CONTAINER = 1, /* of the requests GetPreferredAllocation and Allocate */
        PREFERRED_AVAILABLE = 1,
        PREFERRED_MUST_INCLUDE = 2,
        PREFERRED_SIZE = 3,
        IDS = 1, /* of the requests Allocate and PreStartContainer */
};

/* ---- requests ---- */

static int malformed_message(Fault *fault, const char *why) {
        return fault_set(fault, PLUGIN_REQUEST_E_REFUSED, "malformed request: %s", why);
}

/* Collects all strings of one field, in an array of exactly their number. */
static int decode_ids(Str message, uint32_t number, const char *what, Str **ret, size_t *ret_n,
                      Fault *fault) {
        _cleanup_free_ Str *ids = NULL;
        ProtoReader r = proto_reader(message);
        ProtoField field;
        size_t n = 0;

        while (proto_next(&r, &field))
                n += field.number == number;
        if (n > PLUGIN_IDS_MAX)
                return fault_set(fault, PLUGIN_REQUEST_E_REFUSED, "%zu %s: at most %d can exist", n, what,
                                 PLUGIN_IDS_MAX);
        ids = calloc(n + 1, sizeof *ids);
        if (!ids)
                return fault_set(fault, -ENOMEM, "out of memory");
        r = proto_reader(message);
        n = 0;
        while (!r.fault && proto_next(&r, &field))
                if (field.number == number && proto_bytes(&r, &field, &ids[n]) && str_is_empty(ids[n++]))
                        (void) proto_end(&r, "an empty device ID");
        if (r.fault)
                return malformed_message(fault, r.fault);
        *ret = TAKE_PTR(ids);
        *ret_n = n;
        return 0;
}

/* Decodes the only container of a request: the kubelet sends one. */
static int decode_container(Str message, Str *ret, Fault *fault) {
        ProtoReader r = proto_reader(message);
        ProtoField field;
        size_t n = 0;

        while (proto_next(&r, &field))
                if (field.number == CONTAINER && proto_bytes(&r, &field, ret))
                        n++;
        if (r.fault)
                return malformed_message(fault, r.fault);
        if (n != 1)
                return fault_set(fault, PLUGIN_REQUEST_E_REFUSED,
                                 "a request for %zu containers: must be for one", n);
        return 0;
}

static int decode_size(Str message, int32_t *ret, Fault *fault) {
        ProtoReader r = proto_reader(message);
        ProtoField field;

        *ret = 0;
        while (proto_next(&r, &field))
                if (field.number == PREFERRED_SIZE)
                        (void) proto_i32(&r, &field, ret); /* a fault is kept in the reader */
        if (r.fault)
                return malformed_message(fault, r.fault);
        if (*ret <= 0)
                return fault_set(fault, PLUGIN_REQUEST_E_REFUSED, "allocation size %d: must be positive",
                                 *ret);
        return 0;
}

static int decode_preferred(Str message, PluginRequest *request, Fault *fault) {
        Str container;
        int r;

        r = decode_container(message, &container, fault);
        if (r == 0)
                r = decode_size(container, &request->size, fault);
        if (r == 0)
                r = decode_ids(container, PREFERRED_AVAILABLE, "available device IDs", &request->ids,
                               &request->n_ids, fault);
        if (r == 0)
                r = decode_ids(container, PREFERRED_MUST_INCLUDE, "device IDs to include",
                               &request->must_include, &request->n_must_include, fault);
        return r;
}

static int decode_held(Str message, PluginRequest *request, Fault *fault) {
        int r = decode_ids(message, IDS, "device IDs", &request->ids, &request->n_ids, fault);

        if (r == 0 && request->n_ids == 0)
                return fault_set(fault, PLUGIN_REQUEST_E_REFUSED, "a request without device IDs");
        return r;
}

int plugin_message_decode_request(PluginRequestKind kind, Str message, PluginRequest *ret, Fault *fault) {
        _cleanup_(plugin_message_request_done) PluginRequest request = PLUGIN_REQUEST_NULL;
        int r;

        switch (kind) {
        case PLUGIN_REQUEST_PREFERRED:
                r = decode_preferred(message, &request, fault);
                break;
        case PLUGIN_REQUEST_ALLOCATE:
                r = decode_container(message, &message, fault);
                if (r == 0)
                        r = decode_held(message, &request, fault);
                break;
        case PLUGIN_REQUEST_PRESTART:
        default:
                r = decode_held(message, &request, fault);
        }
        if (r != 0)
                return r;
        *ret = request;
        request = PLUGIN_REQUEST_NULL;
        return 0;
}

void plugin_message_request_done(PluginRequest *request) {
        free(request->ids);
        free(request->must_include);
        *request = PLUGIN_REQUEST_NULL;
}

/* ---- registration ---- */

void plugin_message_put_options(Buf *b) {
        proto_put_u64(b, OPTIONS_PRE_START, true);
        proto_put_u64(b, OPTIONS_PREFERRED, true);
}

void plugin_message_put_register(Buf *b, Str endpoint, Str resource) {
        _cleanup_buf_ Buf options = BUF_NULL;

        plugin_message_put_options(&options);
        proto_put_bytes(b, REGISTER_VERSION, STR("v1beta1"));
        proto_put_bytes(b, REGISTER_ENDPOINT, endpoint);
        proto_put_bytes(b, REGISTER_RESOURCE, resource);
        proto_put_bytes(b, REGISTER_OPTIONS, buf_str(&options));
        b->broken |= buf_result(&options) < 0;
}

/* ---- devices ---- */

/* All field numbers of these messages fit into one byte. */
size_t plugin_message_field_size(size_t content) {
        return 1 + proto_varint_size(content) + content;
}

static Str device_id(const PluginDevice *d) {
        return (Str){d->id, strnlen(d->id, sizeof d->id)};
}

static Str device_health(const PluginDevice *d) {
        return d->healthy ? STR("Healthy") : STR("Unhealthy");
}

static size_t device_size(const PluginDevice *d) {
        return plugin_message_field_size(device_id(d).len) + plugin_message_field_size(device_health(d).len);
}

static void put_device(Buf *b, const PluginDevice *d) {
        assert(d->id[0]);
        proto_put_length(b, LIST_DEVICES, device_size(d));
        proto_put_bytes(b, DEVICE_ID, device_id(d));
        proto_put_bytes(b, DEVICE_HEALTH, device_health(d));
}

size_t plugin_message_size(const PluginDevice *devices, size_t n) {
        size_t size = 0;

        for (size_t i = 0; i < n; i++)
                size += plugin_message_field_size(device_size(&devices[i]));
        return size;
}

void plugin_message_put_devices(Buf *b, const PluginDevice *devices, size_t n) {
        if (!buf_reserve(b, plugin_message_size(devices, n)))
                return;
        for (size_t i = 0; i < n; i++)
                put_device(b, &devices[i]);
}
