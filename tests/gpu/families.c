/* SPDX-License-Identifier: Apache-2.0 */

/* Every way to memory in the driver API, one at a time. */

#include <string.h>
#include <unistd.h>

#include "case.h"

enum { PIECE = 500000, ROW = 16384 };
#define SHEET (16 * MIB)

static const CUmemAllocationProp on_card = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc may_write = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                          .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

/* ---- plain ---- */

static CUresult take_plain(Held *h) {
        CUresult r = CU(cuMemAlloc_v2)(&h->at[0], h->bytes);

        h->n = r == CUDA_SUCCESS;
        return r != CUDA_SUCCESS ? r : CU(cuMemsetD8_v2)(h->at[0], 0x5a, h->bytes);
}

static CUresult take_pieces(Held *h) {
        CUresult r = CUDA_SUCCESS;

        while (r == CUDA_SUCCESS && h->n < HELD_PIECES && h->n < h->bytes / PIECE) {
                r = CU(cuMemAlloc_v2)(&h->at[h->n], PIECE);
                h->n += r == CUDA_SUCCESS;
        }
        return r;
}

static CUresult take_pitched(Held *h) {
        size_t pitch = 0;
        CUresult r = CU(cuMemAllocPitch_v2)(&h->at[0], &pitch, h->bytes / 1024, 1024, 16);

        h->n = r == CUDA_SUCCESS;
        return r;
}

static void give_plain(Held *h) {
        while (h->n > 0)
                OK(CU(cuMemFree_v2)(h->at[--h->n]));
}

/* ---- pools ---- */

static CUresult take_pool(Held *h) {
        CUresult r = CU(cuMemAllocAsync)(&h->at[0], h->bytes, NULL);

        h->n = r == CUDA_SUCCESS;
        return r != CUDA_SUCCESS ? r : CU(cuCtxSynchronize)();
}

static CUresult take_own_pool(Held *h) {
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
        CUresult r = CU(cuMemPoolCreate)(&h->pool, &props);

        if (r != CUDA_SUCCESS)
                return r;
        r = CU(cuMemAllocFromPoolAsync)(&h->at[0], h->bytes, h->pool, NULL);
        h->n = r == CUDA_SUCCESS;
        return r != CUDA_SUCCESS ? r : CU(cuCtxSynchronize)();
}

static void give_pool(Held *h) {
        while (h->n > 0)
                OK(CU(cuMemFreeAsync)(h->at[--h->n], NULL));
        OK(CU(cuCtxSynchronize)());
        if (h->pool)
                OK(CU(cuMemPoolDestroy)(h->pool));
        h->pool = NULL;
}

/* ---- virtual memory management ---- */

static CUresult map(Held *h) {
        CUresult r = CU(cuMemAddressReserve)(&h->at[0], h->bytes, 0, 0, 0);

        if (r == CUDA_SUCCESS)
                r = CU(cuMemMap)(h->at[0], h->bytes, 0, h->handle, 0);
        if (r == CUDA_SUCCESS)
                r = CU(cuMemSetAccess)(h->at[0], h->bytes, &may_write, 1);
        h->n = r == CUDA_SUCCESS;
        return r != CUDA_SUCCESS ? r : CU(cuMemsetD8_v2)(h->at[0], 1, h->bytes);
}

static void unmap(Held *h) {
        if (h->n > 0) {
                OK(CU(cuMemUnmap)(h->at[0], h->bytes));
                OK(CU(cuMemAddressFree)(h->at[0], h->bytes));
        }
        h->n = 0;
}

static void release(Held *h) {
        if (h->handle)
                OK(CU(cuMemRelease)(h->handle));
        h->handle = 0;
}

static CUresult take_vmm(Held *h) {
        CUresult r = CU(cuMemCreate)(&h->handle, h->bytes, &on_card, 0);

        return r != CUDA_SUCCESS ? r : map(h);
}

static void give_vmm(Held *h) {
        unmap(h);
        release(h);
}

/* Releases the handle while the memory is mapped, as PyTorch's expandable segments do: the mapping
 * alone holds the memory. */
static CUresult take_vmm_late(Held *h) {
        CUresult r = take_vmm(h);

        release(h);
        return r;
}

/* The same memory a second time, by a descriptor. */
static CUresult take_external(Held *h) {
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                 .size = h->bytes};
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = h->bytes};
        CUresult r = take_vmm(h);

        if (r == CUDA_SUCCESS)
                r = CU(cuMemExportToShareableHandle)(&desc.handle.fd, h->handle,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        if (r == CUDA_SUCCESS)
                r = CU(cuImportExternalMemory)(&h->external, &desc); /* owns the descriptor from now on */
        return r != CUDA_SUCCESS ? r : CU(cuExternalMemoryGetMappedBuffer)(&h->at[1], h->external, &buffer);
}

static void give_external(Held *h) {
        if (h->external) {
                OK(CU(cuMemFree_v2)(h->at[1]));
                OK(CU(cuDestroyExternalMemory)(h->external));
        }
        h->external = NULL;
        give_vmm(h);
}

/* ---- arrays ---- */

static CUDA_ARRAY3D_DESCRIPTOR sheets(const Held *h) {
        return (CUDA_ARRAY3D_DESCRIPTOR){.Width = ROW / 16,
                                         .Height = SHEET / ROW,
                                         .Depth = h->bytes / SHEET,
                                         .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                         .NumChannels = 4};
}

static CUresult take_array(Held *h) {
        CUDA_ARRAY3D_DESCRIPTOR desc = sheets(h);

        return CU(cuArray3DCreate_v2)(&h->array, &desc);
}

static void give_array(Held *h) {
        if (h->array)
                OK(CU(cuArrayDestroy)(h->array));
        h->array = NULL;
}

static CUresult take_mipmap(Held *h) {
        CUDA_ARRAY3D_DESCRIPTOR desc = sheets(h);

        return CU(cuMipmappedArrayCreate)(&h->mipmap, &desc, 3);
}

static void give_mipmap(Held *h) {
        if (h->mipmap)
                OK(CU(cuMipmappedArrayDestroy)(h->mipmap));
        h->mipmap = NULL;
}

/* ---- managed, and the host's own ---- */

/* The card touches it, so that it moves there. A card without compute leaves it. */
static CUresult take_managed(Held *h) {
        CUresult r = CU(cuMemAllocManaged)(&h->at[0], h->bytes, CU_MEM_ATTACH_GLOBAL);

        h->n = r == CUDA_SUCCESS;
        if (r == CUDA_SUCCESS)
                r = CU(cuMemsetD8_v2)(h->at[0], 7, h->bytes);
        return r != CUDA_SUCCESS ? r : CU(cuCtxSynchronize)();
}

static CUresult take_host(Held *h) {
        return CU(cuMemHostAlloc)(&h->host, h->bytes, 0);
}

static void give_host(Held *h) {
        if (h->host)
                OK(CU(cuMemFreeHost)(h->host));
        h->host = NULL;
}

/* ---- graphs ---- */

static CUresult take_graph(Held *h) {
        CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                            .bytesize = h->bytes};
        CUgraphNode node;
        CUresult r = CU(cuGraphCreate)(&h->graph, 0);

        if (r == CUDA_SUCCESS)
                r = CU(cuGraphAddMemAllocNode)(&node, h->graph, NULL, 0, &alloc);
        if (r == CUDA_SUCCESS)
                r = CU(cuGraphInstantiateWithFlags)(&h->exec, h->graph, 0);
        if (r == CUDA_SUCCESS)
                r = CU(cuGraphLaunch)(h->exec, NULL);
        if (r == CUDA_SUCCESS)
                r = CU(cuCtxSynchronize)();
        h->at[0] = alloc.dptr;
        h->n = r == CUDA_SUCCESS;
        return r;
}

static void give_graph(Held *h) {
        give_plain(h);
        if (h->exec)
                OK(CU(cuGraphExecDestroy)(h->exec));
        if (h->graph)
                OK(CU(cuGraphDestroy)(h->graph));
        OK(CU(cuDeviceGraphMemTrim)(0));
        h->exec = NULL;
        h->graph = NULL;
}

const Family families[] = {
        {"plain", take_plain, give_plain, 1},      {"pieces", take_pieces, give_plain, 1},
        {"pitched", take_pitched, give_plain, 1},  {"pool", take_pool, give_pool, 1},
        {"own-pool", take_own_pool, give_pool, 1}, {"vmm", take_vmm, give_vmm, 1},
        {"vmm-late", take_vmm_late, give_vmm, 1},  {"external", take_external, give_external, 1},
        {"array", take_array, give_array, 1},      {"mipmap", take_mipmap, give_mipmap, 1},
        {"managed", take_managed, give_plain, 1},  {"graph", take_graph, give_graph, 1},
        {"host", take_host, give_host, 0},         {NULL, NULL, NULL, 0},
};

const Family *family_find(const char *name) {
        for (const Family *f = families; f->name; f++)
                if (strcmp(f->name, name) == 0)
                        return f;
        case_fail("there is no family %s", name);
}
