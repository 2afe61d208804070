# SPDX-License-Identifier: Apache-2.0
"""The rates of PyTorch: torch_rate.py SECONDS. Lines as those of gpu-case, in thousandths per second: large products of
matrices, and a network of many small layers whose launches limit it."""
import sys
import time


def rate(torch, function, seconds):
    torch.cuda.synchronize()
    begin, n = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        function()
        n += 1
        if n % 10 == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return int(1000 * n / (time.monotonic() - begin))


def main():
    try:
        import torch
    except ImportError:
        print("skip: PyTorch is not installed")
        return 77
    if not torch.cuda.is_available():
        print("skip: PyTorch finds no card")
        return 77
    seconds = float(sys.argv[1])
    more = {"device": "cuda", "dtype": torch.bfloat16}
    large, small = torch.randn(4096, 4096, **more), torch.randn(32, 1024, **more)
    layers = [torch.nn.Linear(1024, 1024, **more) for _ in range(40)]

    def eager():
        y = small
        for layer in layers:
            y = torch.relu(layer(y))

    rate(torch, eager, 1)  # warm
    print("matmul", rate(torch, lambda: large @ large, seconds), flush=True)
    print("eager", rate(torch, eager, seconds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
