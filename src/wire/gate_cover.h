/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds what a container's specification mounts over the gate of its slice.
 *
 * The kubelet appends volumeMounts to the mounts that a device plugin names (pkg/kubelet,
 * GenerateRunContainerOptions), and the file of terminationMessagePath after those
 * (pkg/kubelet/kuberuntime, makeMounts). containerd mounts all of them by depth, and those of one
 * depth in the order given (internal/cri/opts, orderedMounts). A volume at a path of the gate
 * therefore hides the gate. A volume at /etc can be shared with a container that removes the
 * preload file. */

#include "base/buf.h"
#include "base/str.h"

typedef enum GateCoverField {
        GATE_COVER_NONE,
        GATE_COVER_VOLUME_MOUNT,
        GATE_COVER_VOLUME_DEVICE,
        GATE_COVER_TERMINATION_MESSAGE,
} GateCoverField;

typedef struct GateCover {
        GateCoverField field;
        uint32_t index; /* index in the field's list; 0 for the termination message */
        Str path;       /* the path as the specification has it */
} GateCover;

#define GATE_COVER_RULE                                                                                      \
        "must not be at or over the library of a slice (/, /etc, and /.aliquot and /etc/ld.so.preload with " \
        "all below them)"

/* Whether a mount at this path hides the gate, or shares the directory of the preload file with
 * other containers. The path is read as the runtime reads it: from the root, with "//", "." and
 * ".." resolved. The empty path is none. Symbolic links of the image are not known here. */
bool gate_cover_is_at(Str path);

/* Appends the field: "volumeMounts[1].mountPath". cover->field is not GATE_COVER_NONE. */
void gate_cover_format_field(const GateCover *cover, Buf *out);

/* Appends the value and the rule: "\"/etc\" must not be ...". Long values are cut. */
void gate_cover_format_rule(const GateCover *cover, Buf *out);
