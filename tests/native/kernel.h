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

typedef struct KernelObject {
        uint32_t client, parent, handle, class_;
} KernelObject;

/* What the simulator has done. bytes: of the object's memory, or 0. params: of a device or
 * channel. */
void kernel_saw_alloc(KernelObject o, uint64_t bytes, const void *params);
void kernel_saw_program(KernelObject o, uint64_t address, uint64_t bytes); /* the program's own memory */
void kernel_saw_dup(KernelObject o, uint32_t from_client, uint32_t from);  /* class_ is not read */
void kernel_saw_free(uint32_t client, uint32_t handle);                    /* with all below it */
void kernel_saw_uvm(uint32_t nr, const void *params);

/* A call on nvidiactl or nvidiaN that the simulator refused with EINVAL. 0, or -EINVAL: not known
 * here either. */
int kernel_escape(uint32_t nr, void *params, uint32_t size);

/* The same for nvidia-uvm. Only calls whose parameters end with a status. */
int kernel_uvm(uint32_t nr, void *params);

/* A control that needs more than a table. false: another one. */
bool kernel_control(uint32_t cmd, uint32_t client, uint32_t object, void *params, uint32_t *ret_status);

/* mmap() of a file of the driver: the memory that the last MAP_MEMORY of this descriptor named, or
 * new memory. As mmap(2). */
void *kernel_map(int fd, void *address, size_t length, int protection, int flags);
void *kernel_map_uvm(void *address, size_t length, int protection, int flags); /* of nvidia-uvm */
