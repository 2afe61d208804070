/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Rewrites manifests of HAMi and vgpu-manager to Aliquot's resources. Memory becomes units, compute
 * becomes steps of 5 percent, and the number of cards becomes the pod's label. The names are those
 * of HAMi's pkg/device/nvidia/device.go and vgpu-manager's pkg/util/consts.go. */

#include <jansson.h>
#include <stdint.h>

typedef struct ConvertOptions {
        uint32_t unit_mib; /* the nodes' unit of aliyun.com/gpu-mem; not 0 */
        uint64_t card_mib; /* memory of a card, for requests in percent and for whole cards; 0: not known */
} ConvertOptions;

/* Told once per thing that a person should know: what changed in a pod that was rewritten, or why a
 * pod stays as it is. `pod` is the pod's or template's name, or "". */
typedef void (*ConvertNote)(void *userdata, const char *pod, const char *text);

enum { CONVERT_E_KEPT = 1 };

/* Rewrites every pod and pod template of the document in place, at whatever depth. So lists and
 * other projects' kinds with pod templates are included. A pod that asks for nothing of HAMi or
 * vgpu-manager stays as it is. Returns 0; CONVERT_E_KEPT when a pod stays as it is because its
 * request has no equal here, with a note; -ENOMEM. */
int convert_document(json_t *document, const ConvertOptions *options, ConvertNote note, void *userdata);
