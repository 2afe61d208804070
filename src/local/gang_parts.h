/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gangs of which only a part has a node. Pods are placed one by one here, while a cluster with
 * --gangs binds so many members as a gang says, or none (docs/use/gangs.md). */

#include <jansson.h>

/* Receives a note on a gang: one sentence. Returns 0 or negative errno, which ends the search. */
typedef int (*GangPartsNote)(void *userdata, const char *namespace_, const char *gang, const char *text);

/* pods: all pods, after each was tried. before: the pods before any was tried. A gang with a member
 * that had a node then is left out, because it may have been complete once. Returns 0, -ENOMEM, or
 * what a note returned. */
int gang_parts_find(const json_t *pods, const json_t *before, GangPartsNote note, void *userdata);
