/* SPDX-License-Identifier: Apache-2.0 */

/* Any file as a library of the driver: nothing outside of it is read, and the result is a file
 * name. */

#include <assert.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "gpu/cards/soname.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
        char name[SONAME_SIZE];
        int r;

        assert(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t) size));
        memset(name, '/', sizeof name);
        r = soname_read(fd, &name);
        assert(r == 0 || r == SONAME_E_NONE);
        if (r == 0)
                assert(strnlen(name, sizeof name) < sizeof name && name[0] != '\0' && !strchr(name, '/'));
        return 0;
}
