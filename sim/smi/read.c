/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/smi/smi.h"

enum { EXIT_NO_LIBRARY = 12, EXIT_NO_DRIVER = 9 }; /* nvidia-smi ends with NVML's number */

typedef struct Symbol {
        const char *name;
        size_t offset;
} Symbol;

#define SYMBOL(member, symbol, parameters) {symbol, offsetof(Smi, member)},
static const Symbol symbols[] = {SMI_CALLS(SYMBOL){"nvmlErrorString", offsetof(Smi, error_string)}};

static int load(Smi *s) {
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

        if (!library) {
                (void) puts("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make "
                            "sure that the "
                            "NVIDIA Display Driver is properly installed and present in your system.");
                return EXIT_NO_LIBRARY;
        }
        for (size_t i = 0; i < ELEMENTSOF(symbols); i++) {
                void *address = dlsym(library, symbols[i].name);

                if (!address) {
                        (void) printf("The NVML library lacks %s\n", symbols[i].name);
                        return EXIT_NO_LIBRARY;
                }
                memcpy((char *) s + symbols[i].offset, &address, sizeof address);
        }
        return 0;
}

static NvmlReturn read_card(const Smi *s, SmiCard *c) {
        NvmlReturn r = s->name(c->handle, c->name, sizeof c->name);

        if (r == NVML_SUCCESS)
                r = s->uuid(c->handle, c->uuid, sizeof c->uuid);
        if (r == NVML_SUCCESS)
                r = s->pci(c->handle, &c->pci);
        c->memory.version = NVML_MEMORY_V2;
        if (r == NVML_SUCCESS)
                r = s->memory(c->handle, &c->memory);
        if (r == NVML_SUCCESS)
                r = s->utilization(c->handle, &c->utilization);
        if (r == NVML_SUCCESS)
                r = s->temperature(c->handle, 0, &c->celsius);
        if (r == NVML_SUCCESS)
                r = s->power(c->handle, &c->milliwatts);
        if (r == NVML_SUCCESS)
                r = s->power_limit(c->handle, &c->milliwatts_limit);
        c->n = SMI_PROCESSES;
        if (r == NVML_SUCCESS)
                r = s->processes(c->handle, &c->n, c->processes);
        return r;
}

static NvmlReturn read_all(Smi *s) {
        NvmlReturn r = s->driver_version(s->version, sizeof s->version);

        if (r == NVML_SUCCESS)
                r = s->cuda_version(&s->cuda);
        if (r == NVML_SUCCESS)
                r = s->count(&s->n);
        if (s->n > SMI_CARDS)
                s->n = SMI_CARDS;
        for (unsigned i = 0; i < s->n && r == NVML_SUCCESS; i++) {
                s->cards[i].index = i;
                r = s->handle(i, &s->cards[i].handle);
                if (r == NVML_SUCCESS)
                        r = read_card(s, &s->cards[i]);
        }
        return r;
}

/* Whether a container runtime shows this card: NVIDIA_VISIBLE_DEVICES is a list of UUIDs that has
 * it. Other values, "all" among them, hide nothing here. */
static bool is_visible(const SmiCard *c) {
        const char *list = getenv("NVIDIA_VISIBLE_DEVICES");

        if (!list || strncmp(list, "GPU-", 4) != 0)
                return true;
        for (size_t n; *list != '\0'; list += n + (list[n] == ',')) {
                n = strcspn(list, ",");
                if (n == strlen(c->uuid) && strncmp(list, c->uuid, n) == 0)
                        return true;
        }
        return false;
}

/* A container has device files of its own cards only, so that NVML finds no others. Here all files
 * are in one folder. */
static void drop_hidden(Smi *s) {
        unsigned n = 0;

        for (unsigned i = 0; i < s->n; i++)
                if (is_visible(&s->cards[i])) {
                        if (n < i)
                                s->cards[n] = s->cards[i];
                        n++;
                }
        s->n = n;
}

int smi_read(Smi *s) {
        int status = load(s);
        NvmlReturn r;

        if (status != 0)
                return status;
        r = s->init();
        if (r == NVML_ERROR_DRIVER_NOT_LOADED) {
                (void) puts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
                            "Make sure that the "
                            "latest NVIDIA driver is installed and running.\n");
                return EXIT_NO_DRIVER;
        }
        if (r == NVML_SUCCESS)
                r = read_all(s);
        if (r != NVML_SUCCESS) {
                (void) printf("Failed to initialize NVML: %s\n", s->error_string(r));
                return (int) r < 255 ? (int) r : 255;
        }
        drop_hidden(s);
        if (s->n == 0) {
                (void) puts("No devices were found");
                return NVML_ERROR_NOT_FOUND;
        }
        return 0;
}

void smi_name_of(const Smi *s, unsigned pid, char (*ret)[SMI_NAME]) {
        if (s->process_name(pid, *ret, sizeof *ret) != NVML_SUCCESS)
                (void) snprintf(*ret, sizeof *ret, "[Not Found]");
        for (char *p = *ret; *p != '\0'; p++)
                if ((unsigned char) *p < 0x20 || *p == 0x7f)
                        *p = '?';
}

bool smi_select(Smi *s, const char *id) {
        char *end = NULL;
        unsigned long index = strtoul(id, &end, 10);
        bool number = end != id && *end == '\0';

        for (unsigned i = 0; i < s->n; i++)
                if (number ? s->cards[i].index == index : strcmp(id, s->cards[i].uuid) == 0) {
                        if (i > 0)
                                s->cards[0] = s->cards[i];
                        s->n = 1;
                        return true;
                }
        return false;
}
