/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Annotations of users that resize a running pod (share/resize_request.h has their values). */

#define ANNOTATION_RESIZE_MEM  "aliquot.dev/gpu-mem"
#define ANNOTATION_RESIZE_CORE "aliquot.dev/gpu-core"

/* On a node: what slices may hold above the limits of their pods (share/growth.h). */
#define ANNOTATION_GROWTH "aliquot.dev/grown-slices"
