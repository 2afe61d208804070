/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What NVIDIA's kernel modules would do, where the simulator has no answer and a library of the
 * driver needs one: mappings into a process, events, and questions about the machine. Layouts and
 * numbers are those of open-gpu-kernel-modules 535.261.03 and 550.163.01. One lock, because
 * libraries call from several threads. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Remembers the class of a new object, which decides in which kind of memory it lies. */
void kernel_saw_alloc(uint32_t client, uint32_t object, uint32_t class_);

/* A call on nvidiactl or nvidiaN that the simulator refused with EINVAL. 0, or -EINVAL: not known
 * here either. */
int kernel_escape(uint32_t nr, void *params, uint32_t size);

/* The same for nvidia-uvm. Only calls whose parameters end with a status. */
int kernel_uvm(uint32_t nr, void *params);

/* A control that needs more than a table. false: another one. */
bool kernel_control(uint32_t cmd, uint32_t client, void *params, uint32_t *ret_status);

/* mmap() of a file of the driver: the memory that the last MAP_MEMORY of this descriptor named, or
 * new memory. As mmap(2). */
void *kernel_map(int fd, void *address, size_t length, int protection, int flags);
