/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/gate_cover.h"

/* The components of SLICE_MOUNT_DIR and SLICE_PRELOAD (slice/container_paths.h). */
#define INSIDE  ".aliquot"
#define ETC     "etc"
#define PRELOAD "ld.so.preload"

enum { PATH_SHOWN = 128 };

/* A path without "//", "." and "..". Its first two components decide whether it covers the gate. */
typedef struct CleanPath {
        Str parts[2];
        size_t depth; /* number of components of the whole path */
} CleanPath;

static CleanPath clean(Str path) {
        CleanPath p = {0};

        while (!str_is_empty(path)) {
                Str part = str_split(&path, '/');

                if (str_is_empty(part) || str_eq(part, STR(".")))
                        continue;
                if (str_eq(part, STR(".."))) {
                        p.depth -= p.depth > 0;
                        continue;
                }
                if (p.depth < 2)
                        p.parts[p.depth] = part;
                p.depth++;
        }
        return p;
}

bool gate_cover_is_at(Str path) {
        CleanPath p = clean(path);

        if (str_is_empty(path))
                return false;
        if (p.depth == 0 || str_eq(p.parts[0], STR(INSIDE)))
                return true;
        return str_eq(p.parts[0], STR(ETC)) && (p.depth == 1 || str_eq(p.parts[1], STR(PRELOAD)));
}

void gate_cover_format_field(const GateCover *cover, Buf *out) {
        if (cover->field == GATE_COVER_VOLUME_MOUNT)
                buf_appendf(out, "volumeMounts[%u].mountPath", cover->index);
        else if (cover->field == GATE_COVER_VOLUME_DEVICE)
                buf_appendf(out, "volumeDevices[%u].devicePath", cover->index);
        else
                buf_append_str(out, STR("terminationMessagePath"));
}

void gate_cover_format_rule(const GateCover *cover, Buf *out) {
        buf_appendf(out, "\"%.*s\" " GATE_COVER_RULE, STR_CUT(cover->path, PATH_SHOWN));
}
