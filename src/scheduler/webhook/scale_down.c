/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/scale_down.h"

#include <stddef.h>

#include "wire/json_field.h"

/* A value that the user has set stays, also null. */
static void read_annotations(JsonReader *r, Arena *arena, void *ret) {
        ScaleDownNeed *need = ret;
        Str key;

        if (!json_object_begin(r))
                return;
        need->has_annotations = true;
        while (json_object_next(r, &key)) {
                if (json_key_is(key, ANNOTATION_SAFE_TO_EVICT))
                        need->wanted = false;
                json_skip(r);
        }
}

static const JsonField metadata_fields[] = {JSON_NESTED("annotations", read_annotations)};
JSON_DECODER(read_metadata, metadata_fields)

static const JsonField pod_fields[] = {JSON_NESTED("metadata", read_metadata)};

int scale_down_read(const Subject *s, Str json, Arena *arena, ScaleDownNeed *ret) {
        Fault fault = FAULT_NULL;
        int r;

        *ret = (ScaleDownNeed){.wanted = subject_asks_for_cards(s)};
        if (!ret->wanted)
                return 0;
        r = json_field_read(json, arena, pod_fields, ELEMENTSOF(pod_fields), ret, &fault);
        if (r != 0)
                ret->wanted = false;
        return r < 0 ? r : 0;
}

/* In the path "/" of a member's name is written "~1" (RFC 6901). */
void scale_down_write(const ScaleDownNeed *need, Buf *out) {
        buf_append_str(out,
                       need->has_annotations
                               ? STR("{\"op\":\"add\",\"path\":\"/metadata/annotations/"
                                     "cluster-autoscaler.kubernetes.io~1safe-to-evict\",\"value\":\"false\"}")
                               : STR("{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":{"
                                     "\"" ANNOTATION_SAFE_TO_EVICT "\":\"false\"}}"));
}
