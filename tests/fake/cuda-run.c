/* SPDX-License-Identifier: Apache-2.0 */

/* A CUDA program for the simulated driver.
 *
 *     cuda-run                  every case; each must leave the card as it was
 *     cuda-run devices          the cards: UUIDs in the order of CUDA
 *     cuda-run hold MIB         takes memory, fills it with 0x5a, prints its IPC handle, waits
 *     cuda-run saturate US N    always has kernels of US microseconds waiting; prints "running"
 *     cuda-run open HEX         opens that handle, checks and changes the contents
 *
 * hold waits for a line or for its end. saturate prints for every line that it reads which share of
 * the card the next N kernels got, and for the line "u" its percent by NVML. open prints "opened",
 * waits, closes, prints "closed", and waits. */

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cuda-run.h"

/* ---- what the cases share ---- */

static NvmlHandle card_handle(unsigned card) {
        NvmlHandle h;

        ASSERT_INT(nvmlDeviceGetHandleByIndex_v2(card, &h), NVML_SUCCESS);
        return h;
}

uint64_t used_of(unsigned card) {
        NvmlMemory1 m;

        ASSERT_INT(nvmlDeviceGetMemoryInfo(card_handle(card), &m), NVML_SUCCESS);
        ASSERT_INT(m.used + m.free, m.total);
        return m.used;
}

uint64_t own_of(unsigned card) {
        NvmlProcess2 list[64];
        unsigned n = 64;

        ASSERT_INT(nvmlDeviceGetComputeRunningProcesses_v3(card_handle(card), &n, list), NVML_SUCCESS);
        for (unsigned i = 0; i < n; i++)
                if (list[i].pid == (unsigned) getpid())
                        return list[i].memory;
        return 0;
}

CUcontext begin(void) {
        CUcontext c;

        OK(cuCtxCreate_v2(&c, 0, 0));
        ASSERT_TRUE(own_of(0) > 0 && own_of(0) <= used());
        return c;
}

void end(CUcontext c) {
        OK(cuCtxDestroy_v2(c));
        ASSERT_INT(own_of(0), 0);
}

CUfunction function(const char *name) {
        CUfunction f;
        CUmodule m;

        OK(cuModuleLoadData(&m, "an image"));
        OK(cuModuleGetFunction(&f, m, name));
        return f;
}

void launch_sleep(CUstream s, unsigned us) {
        void *params[] = {&us};

        OK(cuLaunchKernel(function("sleep_us"), 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
}

bool holds(CUdeviceptr at, unsigned char value, size_t n) {
        unsigned char *copy = malloc(n);
        bool all = true;

        ASSERT_TRUE(copy);
        OK(cuMemcpyDtoH_v2(copy, at, n));
        for (size_t i = 0; i < n; i++)
                all = all && copy[i] == value;
        free(copy);
        return all;
}

/* ---- two processes ---- */

static void wait_for_line(void) {
        (void) fflush(stdout);
        while (getchar() > '\n')
                ;
}

static int hold(size_t mib) {
        CUcontext c = begin();
        CUipcMemHandle h;
        CUdeviceptr at;

        OK(cuMemAlloc_v2(&at, mib * MIB));
        OK(cuMemsetD8_v2(at, 0x5a, mib * MIB));
        OK(cuIpcGetMemHandle(&h, at));
        for (size_t i = 0; i < sizeof h; i++)
                (void) printf("%02x", (unsigned char) h.reserved[i]);
        (void) puts("");
        wait_for_line();
        (void) puts(holds(at, 0xa5, 16) ? "changed" : "unchanged");
        end(c);
        wait_for_line();
        return 0;
}

static int open_handle(const char *hex) {
        CUcontext c = begin();
        CUipcMemHandle h;
        CUdeviceptr at, again;
        unsigned byte;

        ASSERT_INT(strlen(hex), 2 * sizeof h);
        for (size_t i = 0; i < sizeof h; i++) {
                ASSERT_INT(sscanf(hex + 2 * i, "%2x", &byte), 1);
                h.reserved[i] = (char) byte;
        }
        OK(cuIpcOpenMemHandle_v2(&at, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        OK(cuIpcOpenMemHandle_v2(&again, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        ASSERT_INT(at, again);
        ASSERT_TRUE(holds(at, 0x5a, 4096));
        OK(cuMemsetD8_v2(at, 0xa5, 16));
        (void) puts("opened");
        wait_for_line();
        ASSERT_TRUE(holds(at, 0xa5, 16)); /* also after its owner has ended */
        OK(cuIpcCloseMemHandle(at));
        OK(cuIpcCloseMemHandle(at));
        ASSERT_INT(cuIpcCloseMemHandle(at), CUDA_ERROR_INVALID_VALUE);
        (void) puts("closed");
        wait_for_line();
        end(c);
        return 0;
}

static int list_devices(void) {
        CUuuid id;
        int n;

        OK(cuDeviceGetCount(&n));
        for (int i = 0; i < n; i++) {
                OK(cuDeviceGetUuid(&id, i));
                for (size_t j = 0; j < sizeof id.bytes; j++)
                        (void) printf("%02x", (unsigned char) id.bytes[j]);
                (void) puts("");
        }
        return 0;
}

/* ---- all ---- */

static const TestCase cases[] = {
        TEST(plain),
        TEST(small_pieces),
        TEST(pitched),
        TEST(pools),
        TEST(pool_gives_back_before_it_fails),
        TEST(mapped),
        TEST(mapped_in_pieces),
        TEST(exported),
        TEST(forged),
        TEST(arrays),
        TEST(mipmaps),
        TEST(host_and_managed),
        TEST(variables),
        TEST(runs_out),
        TEST(ends_with_its_context),
        TEST(two_cards),
        TEST(pointers),
        TEST(time_passes),
        TEST(streams_and_events),
        TEST(the_stream_zero),
        TEST(host_functions_in_order),
        TEST(waits_for_words),
        TEST(captures),
        TEST(captures_refuse),
        TEST(graphs_with_memory),
        TEST(threads),
        TEST(every_launch_takes_time),
        TEST(copies_take_time),
        TEST(streams_share_the_card),
        TEST(a_ring_is_full),
        TEST(addresses),
        TEST(after_fork),
        TEST(bad_arguments),
};

int main(int argc, char **argv) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (argc == 2 && strcmp(argv[1], "devices") == 0 && cuInit(0) == CUDA_ERROR_NO_DEVICE)
                return 0;
        OK(cuInit(0));
        if (argc == 2 && strcmp(argv[1], "devices") == 0)
                return list_devices();
        ASSERT_INT(nvmlInit_v2(), NVML_SUCCESS);
        if (argc == 3 && strcmp(argv[1], "hold") == 0)
                return hold(strtoul(argv[2], NULL, 10));
        if (argc == 3 && strcmp(argv[1], "open") == 0)
                return open_handle(argv[2]);
        if (argc == 4 && strcmp(argv[1], "saturate") == 0)
                return saturate((unsigned) strtoul(argv[2], NULL, 10), (unsigned) strtoul(argv[3], NULL, 10));
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                uint64_t before = used();

                (void) test_run(&cases[i], 1);
                ASSERT_INT(used(), before);
        }
        return 0;
}
