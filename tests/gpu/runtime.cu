/* SPDX-License-Identifier: Apache-2.0 */

/* A program of the CUDA runtime, built with -cudart static and with -cudart shared: runtime MIB. It says what it sees, takes MIB, which
 * must work, then as much as the card has, which must not, and works on. Lines as those of gpu-case. */

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void add(unsigned *words, size_t n, unsigned value) {
        for (size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x; i < n;
             i += (size_t) gridDim.x * blockDim.x)
                words[i] += value;
}

static void fail(const char *what, cudaError_t r) {
        std::printf("fail: %s is %d, %s\n", what, (int) r, cudaGetErrorString(r));
        std::exit(1);
}

#define OK(call)                                                                                             \
        do {                                                                                                 \
                cudaError_t r_ = (call);                                                                     \
                if (r_ != cudaSuccess)                                                                       \
                        fail(#call, r_);                                                                     \
        } while (0)

static void mark(const char *place) {
        char line[16];

        std::printf("== %s\n", place);
        std::fflush(stdout);
        (void) !std::fgets(line, sizeof line, stdin);
}

static void info(const char *place) {
        size_t free_, total;

        OK(cudaMemGetInfo(&free_, &total));
        std::printf("free-%s %zu\ntotal-%s %zu\n", place, free_, place, total);
}

int main(int argc, char **argv) {
        size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64) << 20;
        size_t n = bytes / sizeof(unsigned), free_, total;
        unsigned *words, *managed, last = 0;
        cudaDeviceProp properties;
        void *more = nullptr;
        cudaStream_t s;

        OK(cudaGetDeviceProperties(&properties, 0));
        OK(cudaFree(nullptr));
        std::printf("properties-total %zu\n", properties.totalGlobalMem);
        info("context");
        OK(cudaMalloc(&words, bytes));
        OK(cudaMemset(words, 0, bytes));
        add<<<256, 256>>>(words, n, 7);
        OK(cudaGetLastError());
        OK(cudaDeviceSynchronize());
        OK(cudaMemcpy(&last, words + n - 1, sizeof last, cudaMemcpyDeviceToHost));
        std::printf("word %u\n", last);
        info("held");
        mark("held");
        OK(cudaMemGetInfo(&free_, &total));
        std::printf("error %d\n", (int) cudaMalloc(&more, total));
        (void) cudaGetLastError(); /* it does not stick */
        OK(cudaStreamCreate(&s));
        OK(cudaMallocAsync(&more, bytes / 4, s));
        OK(cudaFreeAsync(more, s));
        OK(cudaStreamSynchronize(s));
        OK(cudaMallocManaged(&managed, bytes / 4));
        managed[0] = 1;
        add<<<1, 32, 0, s>>>(managed, 32, 1);
        OK(cudaStreamSynchronize(s));
        std::printf("managed %u\n", managed[0]);
        OK(cudaFree(managed));
        OK(cudaFree(words));
        info("freed");
        mark("freed");
        return last == 7 ? 0 : 1;
}
