/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/cdi.h"

#include "wire/json_field.h"
#include "wire/json_write.h"

#if defined __aarch64__
#define DEBIAN_FOLDER "/usr/lib/aarch64-linux-gnu"
#else
#define DEBIAN_FOLDER "/usr/lib/x86_64-linux-gnu"
#endif

static const char *const container_folders[] = {DEBIAN_FOLDER, "/usr/lib64"};

/* Omits the mknod permission, because the runtime makes the nodes. */
static void write_node(JsonWriter *w, const char *path) {
        json_write_object(w, NULL);
        json_write_text(w, "path", path);
        json_write_text(w, "permissions", "rw");
        json_write_object_end(w);
}

/* A runtime reads number and type of a node from its path. When the node is missing, because the
 * nvidia-uvm module is not loaded, the container does not start and the runtime's message names the
 * node. Without this entry CUDA would fail with an unspecific error. */
static void write_nodes(JsonWriter *w, const DriverFiles *driver) {
        write_node(w, "/dev/nvidiactl");
        write_node(w, "/dev/nvidia-uvm");
        for (size_t i = 0; driver && i < driver->n; i++)
                if (driver->files[i].kind == DRIVER_DEVICE)
                        write_node(w, driver->files[i].target);
}

static void write_card(JsonWriter *w, uint32_t minor_) {
        char text[32];

        (void) snprintf(text, sizeof text, "/dev/nvidia%u", minor_);
        write_node(w, text);
}

static void write_mount(JsonWriter *w, const char *from, const char *to, bool writable) {
        const char *const options[] = {writable ? "rw" : "ro", "nosuid", "nodev", "bind"};

        json_write_object(w, NULL);
        json_write_text(w, "hostPath", from);
        json_write_text(w, "containerPath", to);
        json_write_array(w, "options");
        for (size_t i = 0; i < ELEMENTSOF(options); i++)
                json_write_text(w, NULL, options[i]);
        json_write_array_end(w);
        json_write_object_end(w);
}

static void write_library(JsonWriter *w, const DriverFile *f) {
        for (size_t i = 0; i < ELEMENTSOF(container_folders); i++) {
                _cleanup_buf_ Buf path = BUF_NULL;

                buf_appendf(&path, "%s/%s", container_folders[i], f->target);
                if (buf_result(&path) < 0)
                        w->out->broken = true; /* an incomplete specification must not be written */
                else
                        write_mount(w, f->path, path.data, false);
        }
}

static void write_driver(JsonWriter *w, const DriverFiles *driver) {
        for (size_t i = 0; driver && i < driver->n; i++) {
                if (driver->files[i].kind == DRIVER_LIBRARY)
                        write_library(w, &driver->files[i]);
                else if (driver->files[i].kind == DRIVER_FILE)
                        write_mount(w, driver->files[i].path, driver->files[i].target, false);
        }
}

static void write_mounts(JsonWriter *w, const DriverFiles *driver) {
        if (!driver || driver->n == 0)
                return;
        json_write_array(w, "mounts");
        write_driver(w, driver);
        json_write_array_end(w);
}

static void write_device(JsonWriter *w, const MachineCard *c, bool simulated) {
        char text[128];

        json_write_object(w, NULL);
        json_write_text(w, "name", c->uuid);
        json_write_object(w, "containerEdits");
        if (simulated) {
                (void) snprintf(text, sizeof text, CDI_SIMULATED_VARIABLE "=%s", c->uuid);
                json_write_array(w, "env");
                json_write_text(w, NULL, text);
        } else {
                json_write_array(w, "deviceNodes");
                write_card(w, c->minor);
        }
        json_write_array_end(w);
        json_write_object_end(w);
        json_write_object_end(w);
}

static void begin_spec(JsonWriter *w, const char *kind, Buf *out) {
        json_write_init(w, out);
        json_write_object(w, NULL);
        json_write_text(w, "cdiVersion", "0.3.0");
        json_write_text(w, "kind", kind);
        json_write_array(w, "devices");
}

void cdi_write(const CardList *cards, const DriverFiles *driver, bool simulated, Buf *out) {
        JsonWriter w;

        if (cards->n == 0)
                return;
        begin_spec(&w, CDI_KIND, out);
        for (size_t i = 0; i < cards->n; i++)
                if (simulated || cards->cards[i].minor != CARD_MINOR_UNKNOWN)
                        write_device(&w, &cards->cards[i], simulated);
        json_write_array_end(&w);
        if (!simulated) {
                json_write_object(&w, "containerEdits");
                json_write_array(&w, "deviceNodes");
                write_nodes(&w, driver);
                json_write_array_end(&w);
                write_mounts(&w, driver);
                json_write_object_end(&w);
        }
        json_write_object_end(&w);
}

static void write_edits(JsonWriter *w, const CdiSlice *s) {
        json_write_array(w, "env");
        for (size_t i = 0; i < s->n_variables; i++)
                json_write_text(w, NULL, s->variables[i]);
        json_write_array_end(w);
        if (s->n_minors > 0) {
                json_write_array(w, "deviceNodes");
                write_nodes(w, s->driver);
                for (size_t i = 0; i < s->n_minors; i++)
                        write_card(w, s->minors[i]);
                json_write_array_end(w);
        }
        json_write_array(w, "mounts");
        write_driver(w, s->driver);
        for (size_t i = 0; i < s->n_mounts; i++)
                write_mount(w, s->mounts[i].from, s->mounts[i].to, s->mounts[i].writable);
        json_write_array_end(w);
}

void cdi_write_slice(const CdiSlice *slice, Buf *out) {
        JsonWriter w;

        begin_spec(&w, CDI_SLICE_KIND, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "name", slice->name);
        json_write_object(&w, "containerEdits");
        write_edits(&w, slice);
        json_write_object_end(&w);
        json_write_object_end(&w);
        json_write_array_end(&w);
        json_write_object_end(&w);
}

/* ---- reading ---- */

#define CARDS "NVIDIA_VISIBLE_DEVICES="

typedef struct SliceReader {
        Str pages_at;
        CdiSliceFound found;
} SliceReader;

typedef struct MountPaths {
        Str from, to;
} MountPaths;

static void read_variables(JsonReader *r, Arena *arena, void *ret) {
        SliceReader *s = ret;

        if (json_array_begin(r))
                while (json_array_next(r)) {
                        Str text = STR("");

                        json_string(r, arena, &text);
                        if (str_has_prefix(text, STR(CARDS)))
                                s->found.cards = (Str){text.data + strlen(CARDS), text.len - strlen(CARDS)};
                }
}

static const JsonField mount_fields[] = {
        JSON_FIELD(MountPaths, from, "hostPath", json_field_str),
        JSON_FIELD(MountPaths, to, "containerPath", json_field_str),
};

static void read_mounts(JsonReader *r, Arena *arena, void *ret) {
        SliceReader *s = ret;

        if (json_array_begin(r))
                while (json_array_next(r)) {
                        MountPaths m = {0};

                        json_field_decode(r, arena, mount_fields, ELEMENTSOF(mount_fields), &m);
                        if (str_eq(m.to, s->pages_at))
                                s->found.pages = m.from;
                }
}

static const JsonField edit_fields[] = {JSON_NESTED("env", read_variables),
                                        JSON_NESTED("mounts", read_mounts)};
JSON_DECODER(read_edits, edit_fields)

static const JsonField device_fields[] = {JSON_NESTED("containerEdits", read_edits)};

static void read_devices(JsonReader *r, Arena *arena, void *ret) {
        if (json_array_begin(r))
                while (json_array_next(r))
                        json_field_decode(r, arena, device_fields, ELEMENTSOF(device_fields), ret);
}

static const JsonField file_fields[] = {JSON_NESTED("devices", read_devices)};

int cdi_read_slice(Str text, Str pages_at, Arena *arena, CdiSliceFound *ret) {
        SliceReader s = {.pages_at = pages_at};
        int k = json_field_read(text, arena, file_fields, ELEMENTSOF(file_fields), &s, NULL);

        *ret = s.found;
        return k;
}
