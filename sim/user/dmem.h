/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files of the dmem controller: the kernel's, or in plain directories where it has none. dmem.max
 * and dmem.current have a line "REGION BYTES" or "REGION max" for each card (kernel/cgroup/dmem.c
 * of Linux). A reader sees the file before or after a change, never between. libc only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DMEM_REGION = 64 };

/* The region of a card with the driver's number: nvidia/DDDDDDDD:BB:DD.0/vidmem. */
void dmem_region(uint32_t gpu, char ret[static DMEM_REGION]);

/* The value of that region, UINT64_MAX for "max" and where there is no line. false: no such
 * file. */
bool dmem_read(const char *file, const char *region, uint64_t *ret);

/* Writes the line of that region. false: there is no such file, or it cannot be written. */
bool dmem_write(const char *file, const char *region, uint64_t value);
