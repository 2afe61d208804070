/* SPDX-License-Identifier: Apache-2.0 */

/* A library of the driver that uses managed memory and is not libcuda: it initializes uvm and maps.
 * Tests build it in all the ways a library can be built: bound lazily and at once, with and without
 * PT_GNU_RELRO, with and without a PLT. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#ifndef MREMAP_MAYMOVE
#define MREMAP_MAYMOVE 1
#endif
#define MIB (1L << 20)

enum { UVM_INITIALIZE = 0x30000001, BLOCK = 10, MOST = 64 };

static char *const base = (char *) 0x600000000000; /* a rarely used address */

static void *map(int fd, long i) {
        char *at = base + i * BLOCK * MIB;

        return mmap(at, BLOCK * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
                    (off_t) (intptr_t) at);
}

static int fill(int fd, long from) {
        int n = 0;

        while (from + n < MOST && map(fd, from + n) != MAP_FAILED)
                n++;
        return n;
}

/* The number of blocks that it got; then again after one was unmapped and one made smaller. */
void use_uvm(void);
void use_uvm(void) {
        struct {
                uint64_t flags;
                uint32_t status;
        } initialize = {0};
        char path[4096];
        int fd, n;

        (void) snprintf(path, sizeof path, "%s/nvidia-uvm", getenv("ALIQUOT_SIM_DIR"));
        fd = open(path, O_RDWR | O_CLOEXEC);
        free(malloc(1 << 22)); /* mappings before those of the driver, so that a lazy slot may be filled in */
        (void) munmap(mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
        if (fd < 0 || ioctl(fd, (unsigned long) UVM_INITIALIZE, &initialize) < 0 || initialize.status != 0) {
                printf("no uvm: %d, status %u\n", errno, initialize.status);
                return;
        }
        n = fill(fd, 0);
        printf("%d", n);
        (void) munmap(base, BLOCK * MIB);
        (void) mremap(base + BLOCK * MIB, BLOCK * MIB, BLOCK / 2 * MIB, 0);
        printf(" %d\n", fill(fd, n));
}

#ifdef PROGRAM
int main(void) {
        use_uvm();
        return 0;
}
#endif
