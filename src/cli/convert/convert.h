/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Rewrites manifests of HAMi and vgpu-manager to Aliquot's resources. Memory becomes units, compute
 * becomes steps of 5 percent, and the number of cards becomes the pod's label. The names are those
 * of HAMi's pkg/device/nvidia/device.go and vgpu-manager's pkg/util/consts.go. */

#include <jansson.h>
#include <stdint.h>

#include "cli/convert/convert_mix.h"

typedef struct ConvertOptions {
        uint32_t unit_mib; /* the nodes' unit of aliyun.com/gpu-mem; not 0 */
        uint64_t card_mib; /* memory of a card, for requests in percent and for whole cards; 0: not known */
} ConvertOptions;

/* Called once for each note: what changed in a pod, why a pod stays as it is, or which name of
 * another system is left. object: "pod NAME", or the kind and the name of the object around. */
typedef void (*ConvertNote)(void *userdata, const char *object, const char *text);

enum { CONVERT_E_LEFT = 1 };

/* Rewrites every pod and pod template of the document in place, at whatever depth. So lists and
 * other projects' kinds with pod templates are included. A pod that asks for nothing of HAMi or
 * vgpu-manager stays as it is. So does one whose result the scheduler would refuse, or that no
 * card of `card_mib` has room for. mix: gets each converted pod of which as many fit on a card as
 * before, where the card is known; NULL: not needed.
 *
 * Returns 0, -ENOMEM, or CONVERT_E_LEFT, of which a note says why. A pod was kept because its
 * request has no equal here. Fewer of a pod fit on a card than before, or that is not known. Or a
 * name of another sharing system is left anywhere (foreign_keys.h). */
int convert_document(json_t *document, const ConvertOptions *options, ConvertMix *mix, ConvertNote note,
                     void *userdata);
