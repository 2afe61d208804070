/* SPDX-License-Identifier: Apache-2.0 */

/* NCCL over the first two cards, in one process: allreduce MIB. Both must hold the sum of both afterwards. */

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <nccl.h>

#define OK(call)                                                                                             \
        do {                                                                                                 \
                int r_ = (int) (call);                                                                       \
                if (r_ != 0) {                                                                               \
                        std::printf("fail: %s is %d\n", #call, r_);                                          \
                        return 1;                                                                            \
                }                                                                                            \
        } while (0)

int main(int argc, char **argv) {
        enum { CARDS = 2 };
        size_t n = ((argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64) << 20) / sizeof(float);
        int cards[CARDS] = {0, 1}, there = 0;
        ncclComm_t comms[CARDS];
        cudaStream_t streams[CARDS];
        float *data[CARDS], got;
        std::vector<float> host(n);

        OK(cudaGetDeviceCount(&there));
        if (there < CARDS) {
                std::printf("skip: there is %d card\n", there);
                return 77;
        }
        for (int i = 0; i < CARDS; i++) {
                OK(cudaSetDevice(i));
                OK(cudaStreamCreate(&streams[i]));
                OK(cudaMalloc(&data[i], n * sizeof(float)));
                for (size_t k = 0; k < n; k++)
                        host[k] = (float) (i + 1);
                OK(cudaMemcpy(data[i], host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
        }
        OK(ncclCommInitAll(comms, CARDS, cards));
        OK(ncclGroupStart());
        for (int i = 0; i < CARDS; i++)
                OK(ncclAllReduce(data[i], data[i], n, ncclFloat, ncclSum, comms[i], streams[i]));
        OK(ncclGroupEnd());
        for (int i = 0; i < CARDS; i++) {
                OK(cudaSetDevice(i));
                OK(cudaStreamSynchronize(streams[i]));
                OK(cudaMemcpy(&got, data[i] + n - 1, sizeof got, cudaMemcpyDeviceToHost));
                std::printf("sum %.0f\n", got);
                if (got != 3.0f)
                        return 1;
        }
        return 0;
}
