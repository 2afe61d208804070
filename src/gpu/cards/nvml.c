/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/nvml.h"

#include <dlfcn.h>

#include "base/buf.h"
#include "gpu/cards/driver.h"

typedef struct NvmlSymbol {
        const char *name;
        size_t offset;
        bool needed;
} NvmlSymbol;

#define NVML_SYMBOL(member, needed, symbol, parameters) {symbol, offsetof(Nvml, member), needed},

static const NvmlSymbol symbols[] = {
        NVML_CALLS(NVML_SYMBOL){"nvmlErrorString", offsetof(Nvml, error_string), true}};

/* Opens the host's own library by its path without links: links of Debian's alternatives would lead
 * into the container's root. */
static void *open_below(const char *host_root) {
        _cleanup_(driver_files_done) DriverFiles files = {0};
        void *library = NULL;

        if (driver_files_find(host_root, &files) < 0)
                return NULL;
        for (size_t i = 0; i < files.n && !library; i++) {
                _cleanup_buf_ Buf path = BUF_NULL;

                if (strcmp(files.files[i].target, "libnvidia-ml.so.1") != 0)
                        continue;
                buf_appendf(&path, "%s%s", host_root, files.files[i].path);
                library = buf_result(&path) == 0 ? dlopen(path.data, RTLD_NOW | RTLD_LOCAL) : NULL;
        }
        return library;
}

static void *open_library(const char *library, const char *host_root, Fault *fault) {
        void *opened = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        const char *words;

        if (opened)
                return opened;
        words = dlerror(); /* dlerror() of the loader's own search is the message that users know */
        (void) fault_set(fault, 0, "no NVIDIA driver: %s",
                         words ? words : "libnvidia-ml.so.1 cannot be loaded");
        return library || !host_root || host_root[0] == '\0' ? NULL : open_below(host_root);
}

int nvml_load(const char *library, const char *host_root, Nvml *ret, Fault *fault) {
        void *opened = open_library(library, host_root, fault);
        Nvml n = {0};

        if (!opened)
                return NVML_E_NONE;
        for (size_t i = 0; i < ELEMENTSOF(symbols); i++) {
                void *address = dlsym(opened, symbols[i].name);

                if (!address && symbols[i].needed)
                        return fault_set(fault, NVML_E_NONE,
                                         "the driver's NVML library lacks %s; it is too old",
                                         symbols[i].name);
                memcpy((char *) &n + symbols[i].offset, &address, sizeof address);
        }
        *ret = n;
        return 0;
}

const char *nvml_error_text(const Nvml *n, int r) {
        const char *words = n->error_string(r);

        return words ? words : "an error without words";
}
