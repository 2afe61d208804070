/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/state.h"

#include <ctype.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "gpu/rm/uvm_ioctl.h"

State state = {.lock = PTHREAD_MUTEX_INITIALIZER,
               .progress = PTHREAD_COND_INITIALIZER,
               .driver = {.ctl = -1},
               .uvm = -1};

/* ---- the lock ---- */

int state_lock(void) {
        (void) pthread_mutex_lock(&state.lock);
        return 0;
}

void state_unlock(const int *unused) {
        (void) pthread_mutex_unlock(&state.lock);
}

/* Another thread may have held the lock: the child gets a new lock, and refuses everything. */
static void in_child(void) {
        (void) pthread_mutex_init(&state.lock, NULL);
        (void) pthread_cond_init(&state.progress, NULL);
        if (state.ready)
                state.forked = true;
}

uint64_t clock_now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* ---- statuses ---- */

CUresult from_status(uint32_t status) {
        switch (status) {
        case RM_OK:
                return CUDA_SUCCESS;
        case RM_ERR_NO_MEMORY:
                return CUDA_ERROR_OUT_OF_MEMORY;
        case RM_ERR_NOT_SUPPORTED:
                return CUDA_ERROR_NOT_SUPPORTED;
        case DRIVER_E_FILE:
                return CUDA_ERROR_OPERATING_SYSTEM;
        default:
                return CUDA_ERROR_UNKNOWN;
        }
}

/* ---- devices ---- */

typedef struct Family {
        const char *name; /* part of a model's name */
        int major, minor, processors;
} Family;

static const Family families[] = {
        {"V100", 7, 0, 80},   {"T4", 7, 5, 40},  {"A100", 8, 0, 108},     {"A30", 8, 0, 56},
        {"A10", 8, 6, 72},    {"A2", 8, 6, 10},  {"RTX A6000", 8, 6, 84}, {"L40", 8, 9, 142},
        {"L20", 8, 9, 92},    {"L4", 8, 9, 58},  {"4090", 8, 9, 128},     {"H100", 9, 0, 132},
        {"H200", 9, 0, 132},  {"H20", 9, 0, 78}, {"H800", 9, 0, 132},     {"B200", 10, 0, 148},
        {"P100", 6, 0, 56},   {"P40", 6, 1, 30}, {"P4", 6, 1, 20},        {"1080", 6, 1, 28},
        {"M60", 5, 2, 16},    {"M40", 5, 2, 24}, {"K80", 3, 7, 13},       {"TITAN V", 7, 0, 80},
        {"TITAN-V", 7, 0, 80}};

static void init_device(Device *d, DriverCard *card) {
        *d = (Device){.ordinal = (int) (d - state.devices), .card = card, .major = 8, .processors = 108};
        for (size_t i = 0; i < ELEMENTSOF(families); i++)
                if (strstr(card->name, families[i].name)) {
                        d->major = families[i].major;
                        d->minor = families[i].minor;
                        d->processors = families[i].processors;
                        return;
                }
}

/* Parses an entry of CUDA_VISIBLE_DEVICES: an index, or the beginning of a UUID. NULL: no such
 * card. */
static DriverCard *find_visible(const char *entry, size_t n) {
        char *end = NULL;
        unsigned long index = strtoul(entry, &end, 10);

        if (n > 0 && isdigit((unsigned char) entry[0]) && end == entry + n)
                return index < state.driver.n ? &state.driver.cards[index] : NULL;
        for (unsigned i = 0; n > 4 && i < state.driver.n; i++)
                if (strncmp(state.driver.cards[i].uuid, entry, n) == 0)
                        return &state.driver.cards[i];
        return NULL;
}

static bool is_listed(const DriverCard *card) {
        for (unsigned i = 0; i < state.n; i++)
                if (state.devices[i].card == card)
                        return true;
        return false;
}

/* As in the real libcuda: the first entry that names no card ends the list; a card that is named
 * twice hides all. */
static void list_visible(const char *text) {
        while (*text != '\0') {
                size_t n = strcspn(text, ",");
                DriverCard *card = find_visible(text, n);

                if (!card)
                        return;
                if (is_listed(card)) {
                        state.n = 0;
                        return;
                }
                init_device(&state.devices[state.n++], card);
                text += n;
                text += *text == ',' ? 1 : 0;
        }
}

static void list_devices(void) {
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");

        state.n = 0;
        if (visible) {
                list_visible(visible);
                return;
        }
        for (unsigned i = 0; i < state.driver.n; i++)
                init_device(&state.devices[state.n++], &state.driver.cards[i]);
}

CUresult state_device(CUdevice ordinal, Device **ret) {
        CUresult r = state_check();

        if (r != CUDA_SUCCESS)
                return r;
        if (ordinal < 0 || (unsigned) ordinal >= state.n)
                return CUDA_ERROR_INVALID_DEVICE;
        *ret = &state.devices[ordinal];
        return CUDA_SUCCESS;
}

/* ---- the whole ---- */

static void open_uvm(void) {
        UvmInitialize p = {.flags = 0};

        state.uvm = driver_open_file("nvidia-uvm");
        if (state.uvm >= 0)
                (void) ioctl(state.uvm, (unsigned long) UVM_INITIALIZE_CMD, &p);
}

CUresult state_init(void) {
        static bool hooked;
        uint32_t status;

        if (state.forked)
                return CUDA_ERROR_NOT_INITIALIZED;
        if (state.ready)
                return state.n > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
        status = driver_open(&state.driver);
        if (status == DRIVER_E_FILE)
                return CUDA_ERROR_NO_DEVICE;
        if (status != RM_OK)
                return from_status(status);
        list_devices();
        if (state.n == 0) {
                driver_close(&state.driver);
                return CUDA_ERROR_NO_DEVICE;
        }
        open_uvm();
        if (!hooked)
                hooked = pthread_atfork(NULL, NULL, in_child) == 0;
        state.ready = true;
        return CUDA_SUCCESS;
}

CUresult state_check(void) {
        return state.ready && !state.forked ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
