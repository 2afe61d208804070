/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda-run.h"

void plain(void) {
        CUcontext c = begin();
        uint64_t before = used();
        CUdeviceptr at, base;
        size_t size;

        OK(cuMemAlloc_v2(&at, 100 * MIB));
        ASSERT_INT(used() - before, 100 * MIB);
        OK(cuMemsetD8_v2(at, 0x5a, 100 * MIB));
        ASSERT_TRUE(holds(at + 99 * MIB, 0x5a, MIB));
        OK(cuMemGetAddressRange_v2(&base, &size, at + 12345));
        ASSERT_INT(base, at);
        ASSERT_INT(size, 100 * MIB);
        OK(cuMemFree_v2(at));
        ASSERT_INT(used(), before);
        ASSERT_INT(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
        OK(cuMemAlloc_v2(&at, 3 * MIB + 1)); /* in whole large pages */
        ASSERT_INT(used() - before, 4 * MIB);
        OK(cuMemFree_v2(at));
        end(c);
}

void small_pieces(void) {
        enum { PIECES = 5000 };
        static CUdeviceptr at[PIECES];
        CUcontext c = begin();
        uint64_t before = used();

        for (int i = 0; i < PIECES; i++) {
                OK(cuMemAlloc_v2(&at[i], 1000));
                ASSERT_INT(at[i] % 256, 0);
                OK(cuMemsetD8_v2(at[i], (unsigned char) i, 1000));
        }
        ASSERT_INT(used() - before, 6 * MIB); /* 5000 x 1024 bytes in chunks of 2 MiB */
        for (int i = 0; i < PIECES; i++)
                ASSERT_TRUE(holds(at[i], (unsigned char) i, 1000));
        for (int i = 0; i < PIECES; i += 2)
                OK(cuMemFree_v2(at[i]));
        ASSERT_INT(used() - before, 6 * MIB);
        for (int i = 0; i < PIECES; i += 2)
                OK(cuMemAlloc_v2(&at[i], 1000));
        ASSERT_INT(used() - before, 6 * MIB); /* the holes were filled */
        for (int i = 0; i < PIECES; i++)
                OK(cuMemFree_v2(at[i]));
        ASSERT_INT(used(), before);
        end(c);
}

void pitched(void) {
        CUcontext c = begin();
        uint64_t before = used();
        unsigned char image[20][30], back[20][30];
        CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                            .srcHost = image,
                            .srcPitch = sizeof image[0],
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .WidthInBytes = sizeof image[0],
                            .Height = 20};
        CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                             .dstMemoryType = CU_MEMORYTYPE_HOST,
                             .dstHost = back,
                             .dstPitch = sizeof back[0],
                             .WidthInBytes = sizeof image[0],
                             .Height = 20};
        CUdeviceptr at;
        size_t pitch;

        memset(image, 7, sizeof image);
        image[19][29] = 8;
        OK(cuMemAllocPitch_v2(&at, &pitch, 3000, 1000, 4));
        ASSERT_INT(pitch, 3072);
        ASSERT_INT(used() - before, 4 * MIB);
        in.dstDevice = out.srcDevice = at;
        in.dstPitch = out.srcPitch = pitch;
        OK(cuMemcpy2D_v2(&in));
        OK(cuMemcpy2D_v2(&out));
        ASSERT_INT(memcmp(image, back, sizeof image), 0);
        OK(cuMemsetD2D8_v2(at, pitch, 9, 30, 20));
        ASSERT_TRUE(holds(at + 19 * pitch, 9, 30));
        ASSERT_FALSE(holds(at + 19 * pitch, 9, 31));
        OK(cuMemFree_v2(at));
        end(c);
}

void pools(void) {
        CUcontext c = begin();
        uint64_t before = used(), value, keep = UINT64_MAX;
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
        CUmemoryPool pool;
        CUdeviceptr at, other;

        OK(cuMemAllocAsync(&at, 64 * MIB, NULL));
        OK(cuMemsetD8_v2(at, 3, 64 * MIB));
        ASSERT_TRUE(holds(at, 3, 64 * MIB));
        OK(cuMemFreeAsync(at, NULL));
        ASSERT_INT(used() - before, 64 * MIB); /* until a synchronisation */
        OK(cuCtxSynchronize());
        ASSERT_INT(used(), before);

        for (int type = CU_MEM_LOCATION_TYPE_HOST; type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT; type++) {
                const CUmemPoolProps of_host = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                .location = {type, 0}};

                OK(cuMemPoolCreate(&pool, &of_host));
                OK(cuMemAllocFromPoolAsync(&at, 64 * MIB, pool, NULL));
                OK(cuMemsetD8_v2(at, 3, 64 * MIB));
                ASSERT_TRUE(holds(at, 3, 64 * MIB));
                ASSERT_INT(used(), before);
                OK(cuMemFreeAsync(at, NULL));
                OK(cuMemPoolDestroy(pool));
        }

        OK(cuMemPoolCreate(&pool, &props));
        OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
        OK(cuMemAllocFromPoolAsync(&at, 64 * MIB, pool, NULL));
        OK(cuMemFreeAsync(at, NULL));
        OK(cuCtxSynchronize());
        ASSERT_INT(used() - before, 64 * MIB);
        OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
        ASSERT_INT(value, 64 * MIB);
        OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
        ASSERT_INT(value, 0);
        OK(cuMemAllocFromPoolAsync(&other, 60 * MIB, pool, NULL)); /* takes what is there */
        ASSERT_INT(used() - before, 64 * MIB);
        OK(cuMemFreeAsync(other, NULL));
        OK(cuMemPoolTrimTo(pool, 0));
        ASSERT_INT(used(), before);
        OK(cuMemAllocFromPoolAsync(&at, MIB, pool, NULL));
        ASSERT_INT(used() - before, 32 * MIB);
        OK(cuMemAllocFromPoolAsync(&other, 31 * MIB, pool, NULL)); /* the rest of that */
        ASSERT_INT(used() - before, 32 * MIB);
        OK(cuMemFreeAsync(other, NULL));
        OK(cuMemAllocFromPoolAsync(&other, 33 * MIB, pool, NULL));
        ASSERT_INT(used() - before, 96 * MIB);
        OK(cuMemFreeAsync(other, NULL));
        OK(cuMemPoolDestroy(pool));
        ASSERT_INT(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
        OK(cuMemFree_v2(at)); /* outlives its pool */
        ASSERT_INT(used(), before);
        end(c);
}

void pool_gives_back_before_it_fails(void) {
        CUcontext c = begin();
        uint64_t keep = UINT64_MAX;
        CUmemoryPool pool;
        CUdeviceptr at;
        size_t room, total;

        OK(cuDeviceGetDefaultMemPool(&pool, 0));
        OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
        OK(cuMemGetInfo_v2(&room, &total));
        room -= room % (32 * MIB); /* pools grow by so much */
        OK(cuMemAllocAsync(&at, room, NULL));
        OK(cuMemFreeAsync(at, NULL));
        OK(cuMemAlloc_v2(&at, room));
        OK(cuMemFree_v2(at));
        keep = 0;
        OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
        end(c);
}

static const CUmemAllocationProp on_card = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc may_write = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                          .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

void mapped(void) {
        CUcontext c = begin();
        uint64_t before = used();
        CUmemGenericAllocationHandle h;
        CUdeviceptr at;

        OK(cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0));
        ASSERT_INT(used(), before); /* addresses cost nothing */
        OK(cuMemCreate(&h, 32 * MIB, &on_card, 0));
        ASSERT_INT(used() - before, 32 * MIB);
        OK(cuMemMap(at, 32 * MIB, 0, h, 0));
        ASSERT_INT(cuMemsetD8_v2(at, 1, 16), CUDA_ERROR_INVALID_VALUE); /* without access rights so far */
        OK(cuMemSetAccess(at, 32 * MIB, &may_write, 1));
        OK(cuMemsetD8_v2(at, 1, 32 * MIB));
        ASSERT_INT(cuMemsetD8_v2(at, 1, 32 * MIB + 1), CUDA_ERROR_INVALID_VALUE);
        OK(cuMemRelease(h));
        ASSERT_INT(used() - before, 32 * MIB); /* the mapping keeps it */
        ASSERT_TRUE(holds(at, 1, 32 * MIB));
        ASSERT_INT(cuMemAddressFree(at, 64 * MIB), CUDA_ERROR_INVALID_VALUE);
        OK(cuMemUnmap(at, 32 * MIB));
        ASSERT_INT(used(), before);
        OK(cuMemAddressFree(at, 64 * MIB));
        ASSERT_INT(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
        end(c);
}

/* As allocators grow a segment: one copy goes over several mappings; memory mapped twice is the
 * same memory. */
void mapped_in_pieces(void) {
        CUcontext c = begin();
        uint64_t before = used();
        CUmemGenericAllocationHandle h[4];
        CUdeviceptr at, again;

        OK(cuMemAddressReserve(&at, 8 * MIB, 0, 0, 0));
        OK(cuMemAddressReserve(&again, 2 * MIB, 0, 0, 0));
        for (size_t i = 0; i < 4; i++) {
                OK(cuMemCreate(&h[i], 2 * MIB, &on_card, 0));
                OK(cuMemMap(at + i * 2 * MIB, 2 * MIB, 0, h[i], 0));
        }
        OK(cuMemMap(again, 2 * MIB, 0, h[3], 0));
        OK(cuMemSetAccess(at, 8 * MIB, &may_write, 1));
        OK(cuMemSetAccess(again, 2 * MIB, &may_write, 1));
        OK(cuMemsetD8_v2(at, 0x11, 8 * MIB));
        ASSERT_TRUE(holds(again, 0x11, 2 * MIB));
        ASSERT_INT(used() - before, 8 * MIB);
        OK(cuMemUnmap(at, 8 * MIB));
        OK(cuMemUnmap(again, 2 * MIB));
        for (size_t i = 0; i < 4; i++)
                OK(cuMemRelease(h[i]));
        ASSERT_INT(used(), before);
        OK(cuMemAddressFree(at, 8 * MIB));
        OK(cuMemAddressFree(again, 2 * MIB));
        end(c);
}

/* To itself, by a descriptor; and as external memory. */
void exported(void) {
        CUcontext c = begin();
        uint64_t before = used();
        CUmemAllocationProp prop = on_card;
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                 .size = 4 * MIB};
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = 4 * MIB};
        CUmemGenericAllocationHandle h, copy;
        CUexternalMemory external;
        CUdeviceptr at, other;
        int fd;

        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        OK(cuMemAddressReserve(&at, 4 * MIB, 0, 0, 0));
        OK(cuMemCreate(&h, 4 * MIB, &prop, 0));
        OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        OK(cuMemImportFromShareableHandle(&copy, (void *) (intptr_t) fd,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        ASSERT_INT(used() - before, 4 * MIB); /* the same memory */
        OK(cuMemMap(at, 4 * MIB, 0, copy, 0));
        OK(cuMemSetAccess(at, 4 * MIB, &may_write, 1));
        OK(cuMemsetD8_v2(at, 0x77, 4 * MIB));
        desc.handle.fd = fd;
        OK(cuImportExternalMemory(&external, &desc)); /* owns the descriptor from now on */
        OK(cuExternalMemoryGetMappedBuffer(&other, external, &buffer));
        ASSERT_TRUE(holds(other, 0x77, 4 * MIB));
        OK(cuMemRelease(h));
        OK(cuMemRelease(copy));
        OK(cuMemUnmap(at, 4 * MIB));
        ASSERT_INT(used() - before, 4 * MIB);
        OK(cuMemFree_v2(other));
        OK(cuDestroyExternalMemory(external));
        ASSERT_INT(used(), before);
        OK(cuMemAddressFree(at, 4 * MIB));
        fd = STDIN_FILENO;
        ASSERT_INT(cuMemImportFromShareableHandle(&copy, (void *) (intptr_t) fd,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                   CUDA_ERROR_INVALID_HANDLE);
        end(c);
}

/* Files and handles of other processes are refused, or at worst give memory of the process's
 * own. */
void forged(void) {
        CUcontext c = begin();
        uint64_t before = used();
        CUmemGenericAllocationHandle h;
        CUipcMemHandle handle;
        CUdeviceptr at;
        char name[256];
        int fd = memfd_create("forged", MFD_CLOEXEC);

        ASSERT_INT(cuMemImportFromShareableHandle(&h, (void *) (intptr_t) fd, 1), CUDA_ERROR_INVALID_HANDLE);
        ASSERT_INT(ftruncate(fd, 2 * MIB), 0);
        ASSERT_INT(cuMemImportFromShareableHandle(&h, (void *) (intptr_t) fd, 1), CUDA_ERROR_INVALID_HANDLE);
        ASSERT_INT(close(fd), 0);
        ASSERT_INT(cuMemImportFromShareableHandle(&h, (void *) (intptr_t) fd, 1), CUDA_ERROR_INVALID_HANDLE);
        ASSERT_INT(cuMemImportFromShareableHandle(&h, (void *) (intptr_t) -1, 1), CUDA_ERROR_INVALID_HANDLE);
        (void) snprintf(name, sizeof name, "%s/nvidiactl", getenv("ALIQUOT_SIM_DIR"));
        fd = open(name, O_RDWR | O_CLOEXEC); /* nothing was exported to it */
        ASSERT_TRUE(fd >= 0);
        ASSERT_INT(cuMemImportFromShareableHandle(&h, (void *) (intptr_t) fd, 1), CUDA_ERROR_INVALID_HANDLE);
        ASSERT_INT(close(fd), 0);
        ASSERT_INT(used(), before);

        OK(cuMemAlloc_v2(&at, MIB));
        OK(cuIpcGetMemHandle(&handle, at));
        ASSERT_INT(cuIpcOpenMemHandle_v2(&at, handle, 1),
                   CUDA_ERROR_INVALID_CONTEXT); /* of the same process */
        for (size_t i = 0; i < sizeof handle; i++) {
                CUipcMemHandle bad = handle;
                CUdeviceptr got = 0;

                bad.reserved[4] ^= 1; /* another client */
                bad.reserved[i] = (char) ~bad.reserved[i];
                ASSERT_TRUE(cuIpcOpenMemHandle_v2(&got, bad, 1) != CUDA_SUCCESS);
        }
        OK(cuMemFree_v2(at));
        ASSERT_INT(used(), before);
        end(c);
}

void arrays(void) {
        CUcontext c = begin();
        uint64_t before = used();
        CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 256,
                                        .Height = 256,
                                        .Depth = 64,
                                        .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                        .NumChannels = 1};
        static unsigned volume[4][4][4], back[4][4][4];
        CUDA_MEMCPY3D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                            .srcHost = volume,
                            .srcPitch = sizeof volume[0][0],
                            .srcHeight = 4,
                            .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                            .dstXInBytes = 40,
                            .dstY = 7,
                            .dstZ = 60,
                            .WidthInBytes = sizeof volume[0][0],
                            .Height = 4,
                            .Depth = 4};
        CUDA_MEMCPY3D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                             .srcXInBytes = 40,
                             .srcY = 7,
                             .srcZ = 60,
                             .dstMemoryType = CU_MEMORYTYPE_HOST,
                             .dstHost = back,
                             .dstPitch = sizeof back[0][0],
                             .dstHeight = 4,
                             .WidthInBytes = sizeof volume[0][0],
                             .Height = 4,
                             .Depth = 4};
        CUarray a;

        for (unsigned i = 0; i < 64; i++)
                volume[i / 16][i / 4 % 4][i % 4] = i;
        OK(cuArray3DCreate_v2(&a, &desc));
        ASSERT_INT(used() - before, 16 * MIB);
        in.dstArray = out.srcArray = a;
        OK(cuMemcpy3D_v2(&in));
        OK(cuMemcpy3D_v2(&out));
        ASSERT_INT(memcmp(volume, back, sizeof volume), 0);
        in.dstZ = 61;
        ASSERT_INT(cuMemcpy3D_v2(&in), CUDA_ERROR_INVALID_VALUE);
        OK(cuArrayDestroy(a));
        ASSERT_INT(used(), before);
        ASSERT_INT(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
        desc.Width = SIZE_MAX / 8;
        ASSERT_INT(cuArray3DCreate_v2(&a, &desc), CUDA_ERROR_OUT_OF_MEMORY);
        end(c);
}

void mipmaps(void) {
        CUcontext c = begin();
        uint64_t before = used();
        CUDA_ARRAY3D_DESCRIPTOR desc = {
                .Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 4};
        CUmipmappedArray m;
        CUarray level;

        OK(cuMipmappedArrayCreate(&m, &desc, 11));
        ASSERT_INT(used() - before, 6 * MIB); /* 4 MiB and a third, rounded */
        OK(cuMipmappedArrayGetLevel(&level, m, 10));
        ASSERT_INT(cuMipmappedArrayGetLevel(&level, m, 11), CUDA_ERROR_INVALID_VALUE);
        OK(cuMipmappedArrayDestroy(m));
        ASSERT_INT(used(), before);
        end(c);
}

void host_and_managed(void) {
        CUcontext c = begin();
        uint64_t before = used();
        static char page[8192];
        CUdeviceptr managed, at;
        void *pinned;

        OK(cuMemHostAlloc(&pinned, 10 * MIB, 0));
        OK(cuMemHostRegister_v2(page, sizeof page, 0));
        ASSERT_INT(cuMemHostRegister_v2(page, sizeof page, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        OK(cuMemAllocManaged(&managed, 10 * MIB, CU_MEM_ATTACH_GLOBAL));
        OK(cuMemAlloc_v2(&at, MIB));
        memset((void *) (uintptr_t) managed, 0x42, 10 * MIB); /* the host writes, the card reads */
        OK(cuMemcpyDtoD_v2(at, managed + 9 * MIB, MIB));
        OK(cuMemcpyDtoH_v2(pinned, at, MIB));
        ASSERT_INT(((char *) pinned)[MIB - 1], 0x42);
        OK(cuMemFree_v2(at));
        ASSERT_INT(used(), before); /* no memory of the card */
        OK(cuMemFree_v2(managed));
        OK(cuMemHostUnregister(page));
        ASSERT_INT(cuMemHostUnregister(page), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        OK(cuMemFreeHost(pinned));
        end(c);
}

void variables(void) {
        CUcontext c = begin();
        CUdeviceptr at, again;
        size_t size;
        CUmodule m;

        OK(cuModuleLoadData(&m, "anything"));
        OK(cuModuleGetGlobal_v2(&at, &size, m, "counter"));
        OK(cuMemsetD8_v2(at, 1, size));
        OK(cuModuleGetGlobal_v2(&again, &size, m, "counter"));
        ASSERT_INT(at, again);
        OK(cuModuleUnload(m));
        ASSERT_INT(cuMemsetD8_v2(at, 1, 1), CUDA_ERROR_INVALID_VALUE);
        end(c);
}

void runs_out(void) {
        enum { PIECE = 256 };
        CUcontext c = begin();
        size_t room, total, n = 0;
        CUdeviceptr at[1024];

        OK(cuMemGetInfo_v2(&room, &total));
        ASSERT_INT(cuMemAlloc_v2(&at[0], total), CUDA_ERROR_OUT_OF_MEMORY);
        ASSERT_INT(cuMemAlloc_v2(&at[0], SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
        ASSERT_INT(cuMemAlloc_v2(&at[0], 0), CUDA_ERROR_INVALID_VALUE);
        while (n < 1024 && cuMemAlloc_v2(&at[n], PIECE * MIB) == CUDA_SUCCESS)
                n++;
        ASSERT_INT(n, room / (PIECE * MIB)); /* all that fits, and not one more */
        while (n > 0)
                OK(cuMemFree_v2(at[--n]));
        OK(cuMemAlloc_v2(&at[0], room / (2 * MIB) * 2 * MIB));
        OK(cuMemFree_v2(at[0]));
        end(c);
}

/* All memory of a context is freed with it, and all that was kept for later. */
void ends_with_its_context(void) {
        CUDA_ARRAY_DESCRIPTOR desc = {
                .Width = 1000, .Height = 1000, .Format = CU_AD_FORMAT_HALF, .NumChannels = 1};
        uint64_t keep = UINT64_MAX;
        CUcontext c = begin();
        CUmemoryPool pool;
        CUdeviceptr at;
        CUarray a;
        CUstream s;

        OK(cuStreamCreate(&s, 0));
        OK(cuMemAlloc_v2(&at, 100));
        OK(cuMemAlloc_v2(&at, 50 * MIB));
        OK(cuArrayCreate_v2(&a, &desc));
        OK(cuMemAllocManaged(&at, MIB, CU_MEM_ATTACH_GLOBAL));
        OK(cuDeviceGetDefaultMemPool(&pool, 0));
        OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
        OK(cuMemAllocAsync(&at, 20 * MIB, s));
        OK(cuMemAllocAsync(&at, 30 * MIB, s));
        OK(cuMemFreeAsync(at, s));
        keep = 0;
        OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
        end(c);
        ASSERT_INT(cuMemAlloc_v2(&at, 1), CUDA_ERROR_INVALID_CONTEXT);
}

void two_cards(void) {
        uint64_t first = used_of(0), second = used_of(1), with[2];
        CUdeviceptr a, b;
        CUcontext c, d;

        OK(cuDevicePrimaryCtxRetain(&c, 0));
        OK(cuDevicePrimaryCtxRetain(&d, 1));
        with[0] = used_of(0);
        with[1] = used_of(1);
        ASSERT_TRUE(with[0] > first && with[1] > second);
        OK(cuCtxSetCurrent(c));
        OK(cuMemAlloc_v2(&a, 10 * MIB));
        OK(cuCtxSetCurrent(d));
        OK(cuMemAlloc_v2(&b, 20 * MIB));
        ASSERT_INT(used_of(0) - with[0], 10 * MIB);
        ASSERT_INT(used_of(1) - with[1], 20 * MIB);
        OK(cuMemsetD8_v2(a, 4, MIB));
        OK(cuMemcpy(b, a, MIB));
        ASSERT_TRUE(holds(b, 4, MIB));
        OK(cuCtxSetCurrent(NULL));
        OK(cuDevicePrimaryCtxRelease_v2(0));
        OK(cuDevicePrimaryCtxRelease_v2(1));
        ASSERT_INT(used_of(1), second);
        ASSERT_INT(cuDevicePrimaryCtxRelease_v2(1), CUDA_ERROR_INVALID_CONTEXT);
}

void pointers(void) {
        CUcontext c = begin(), of = NULL;
        CUdeviceptr at, managed;
        unsigned type;
        int flag;
        char local;

        OK(cuMemAlloc_v2(&at, 5000));
        OK(cuMemAllocManaged(&managed, 5000, CU_MEM_ATTACH_GLOBAL));
        OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 4999));
        ASSERT_INT(type, CU_MEMORYTYPE_DEVICE);
        OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, at));
        ASSERT_TRUE(of == c);
        OK(cuPointerGetAttribute(&flag, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
        ASSERT_INT(flag, 1);
        ASSERT_INT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                         (CUdeviceptr) (uintptr_t) &local),
                   CUDA_ERROR_INVALID_VALUE);
        OK(cuMemFree_v2(managed));
        OK(cuMemFree_v2(at));
        end(c);
}
