/* SPDX-License-Identifier: Apache-2.0 */

/* Copies and fills on the simulated card, one for each line that it reads:
 *
 *     SYMBOL BYTES ENDS   calls this function of libcuda; prints "done SYMBOL" when it has returned
 *     kernel US -         launches a kernel of so many us into a new stream; prints "done kernel"
 *
 * ENDS: "host": what is memory of the host by the function's name is so, and the other end is of
 * the card. "card": all is memory of the card. "managed": memory of the host, and managed memory.
 *
 * It first prints the copies and fills of launches.h in a line each, then "ready". The functions
 * are looked up with dlsym(). */

#include <dlfcn.h>

#include "cuda-calls.h"
#include "preload/launch/launches.h"
#include "test.h"

enum { ROOM = 1 << 20, ROW = 1 << 10 };

static void *library;
static CUdeviceptr on_card, other, managed;
static CUcontext context, other_context;
static bool all_on_card, with_managed;
static CUarray array;
static CUstream stream, kernels;
static char on_host[ROOM];

#define CALL(name) ((__typeof__(&name)) look_up(#name))

static void *look_up(const char *name) {
        void *p = dlsym(library, name);

        if (!p)
                TEST_FAIL_("%s", name);
        return p;
}

/* A function without a stream ignores the last argument. */
typedef CUresult Linear(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s);
typedef CUresult ToArray(CUarray to, size_t at, CUdeviceptr from, size_t n, CUstream s);
typedef CUresult FromArray(CUdeviceptr to, CUarray from, size_t at, size_t n, CUstream s);
typedef CUresult InArray(CUarray to, size_t at, CUarray from, size_t from_at, size_t n);
typedef CUresult Shaped(const void *shape, CUstream s);
typedef CUresult Between(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                         size_t n, CUstream s);
typedef CUresult Fill(CUdeviceptr to, unsigned value, size_t n, CUstream s);
typedef CUresult FillRows(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                          CUstream s);

static CUdeviceptr host(void) {
        return all_on_card ? on_card : (CUdeviceptr) (uintptr_t) on_host;
}

static CUdeviceptr card(CUdeviceptr plain) {
        return with_managed ? managed : plain;
}

static CUresult copy_linear(const char *symbol, void *f, size_t n) {
        bool from_host = strstr(symbol, "HtoD") != NULL, to_host = strstr(symbol, "toH") != NULL;

        return ((Linear *) f)(to_host ? host() : card(on_card), from_host ? host() : card(other), n, stream);
}

static CUresult copy_array(const char *symbol, void *f, size_t n) {
        CUdeviceptr from = strstr(symbol, "HtoA") ? host() : card(other);

        if (strstr(symbol, "AtoA"))
                return ((InArray *) f)(array, 0, array, n, n);
        if (strstr(symbol, "toA"))
                return ((ToArray *) f)(array, 0, from, n, stream);
        return ((FromArray *) f)(strstr(symbol, "AtoH") ? host() : card(on_card), array, 0, n, stream);
}

static CUresult copy_rows(void *f, size_t n) {
        CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = (void *) (uintptr_t) host(),
                              .srcPitch = ROW,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = card(on_card),
                              .dstPitch = ROW,
                              .WidthInBytes = ROW,
                              .Height = n / ROW};

        return ((Shaped *) f)(&rows, stream);
}

/* Within the card; with managed memory to the host. */
static CUresult copy_box(void *f, size_t n, CUcontext from, CUcontext to) {
        CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                             .srcDevice = card(other),
                             .reserved0 = from,
                             .srcPitch = ROW,
                             .srcHeight = n / ROW,
                             .dstMemoryType = with_managed ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                             .dstHost = on_host,
                             .dstDevice = on_card,
                             .reserved1 = to,
                             .dstPitch = ROW,
                             .dstHeight = n / ROW,
                             .WidthInBytes = ROW,
                             .Height = n / ROW,
                             .Depth = 1};

        return ((Shaped *) f)(&box, stream);
}

/* libcuda takes NULL for a context, too. */
static CUresult copy_between(const char *symbol, void *f, size_t n) {
        CUcontext from = strstr(symbol, "Async") ? NULL : other_context;

        if (strstr(symbol, "3D"))
                return copy_box(f, n, from, context);
        return ((Between *) f)(card(on_card), context, card(other), from, n, stream);
}

static CUresult fill(const char *symbol, void *f, size_t n) {
        size_t of = strstr(symbol, "D16") || strstr(symbol, "D2D16")   ? 2
                    : strstr(symbol, "D32") || strstr(symbol, "D2D32") ? 4
                                                                       : 1;

        if (strstr(symbol, "D2D"))
                return ((FillRows *) f)(card(on_card), ROW, 1, ROW / of, n / ROW, stream);
        return ((Fill *) f)(card(on_card), 1, n / of, stream);
}

static CUresult run(const char *symbol, size_t n) {
        void *f = look_up(symbol);

        if (strncmp(symbol, "cuMemset", 8) == 0)
                return fill(symbol, f, n);
        if (strstr(symbol, "Peer"))
                return copy_between(symbol, f, n);
        if (strstr(symbol, "2D"))
                return copy_rows(f, n);
        if (strstr(symbol, "3D"))
                return copy_box(f, n, NULL, NULL);
        return strstr(symbol, "toA") || strstr(symbol, "Ato") ? copy_array(symbol, f, n)
                                                              : copy_linear(symbol, f, n);
}

static CUresult launch(unsigned us) {
        void *params[] = {&us};
        CUmodule m;
        CUfunction f;

        ASSERT_INT(CALL(cuModuleLoadData)(&m, "an image"), CUDA_SUCCESS);
        ASSERT_INT(CALL(cuModuleGetFunction)(&f, m, "sleep_us"), CUDA_SUCCESS);
        return CALL(cuLaunchKernel)(f, 1, 1, 1, 32, 1, 1, 0, kernels, params, NULL);
}

static void begin(void) {
        CUDA_ARRAY_DESCRIPTOR shape = {
                .Width = ROOM / 8, .Height = 0, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};

        library = dlopen("libcuda.so.1", RTLD_NOW);
        if (!library)
                TEST_FAIL_("%s", dlerror());
        ASSERT_INT(CALL(cuInit)(0), CUDA_SUCCESS);
        ASSERT_INT(CALL(cuCtxCreate_v2)(&other_context, 0, 0), CUDA_SUCCESS);
        ASSERT_INT(CALL(cuMemAlloc_v2)(&other, ROOM), CUDA_SUCCESS);
        ASSERT_INT(CALL(cuCtxCreate_v2)(&context, 0, 0), CUDA_SUCCESS);
        ASSERT_INT(CALL(cuMemAlloc_v2)(&on_card, ROOM), CUDA_SUCCESS);
        ASSERT_INT(CALL(cuMemAllocManaged)(&managed, ROOM, 1), CUDA_SUCCESS);
        ASSERT_INT(CALL(cuArrayCreate_v2)(&array, &shape), CUDA_SUCCESS);
        ASSERT_INT(CALL(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        ASSERT_INT(CALL(cuStreamCreate)(&kernels, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
}

#define SAY(name, symbol, twin) puts(#symbol);

int main(void) {
        char symbol[64], ends[16];
        size_t n;

        begin();
        GATE_COPIES(SAY)
        (void) puts("ready");
        (void) fflush(stdout);
        while (scanf("%63s %zu %15s", symbol, &n, ends) == 3) {
                CUresult r;

                all_on_card = strcmp(ends, "card") == 0;
                with_managed = strcmp(ends, "managed") == 0;
                r = strcmp(symbol, "kernel") == 0 ? launch((unsigned) n) : run(symbol, n);

                if (r != CUDA_SUCCESS)
                        TEST_FAIL_("%s: %d", symbol, r);
                (void) printf("done %s\n", symbol);
                (void) fflush(stdout);
        }
        return 0;
}
