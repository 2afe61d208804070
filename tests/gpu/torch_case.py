# SPDX-License-Identifier: Apache-2.0
"""PyTorch in a slice: torch_case.py. Lines as those of gpu-case. What the environment says of the allocator is part of the case."""
import sys

MIB = 1 << 20


def say(key, value):
    print(key, int(value), flush=True)


def fill(torch, device):
    """Takes tensors until PyTorch says that there is no more; its own error, caught."""
    held, error = [], ""
    try:
        while len(held) < 1 << 16:
            held.append(torch.empty(64 * MIB, dtype=torch.uint8, device=device).fill_(1))
    except torch.cuda.OutOfMemoryError as e:
        error = str(e).splitlines()[0]
    say("tensors", len(held))
    say("reserved", torch.cuda.memory_reserved())
    say("caught", bool(error))
    print("# " + error, flush=True)


def graph(torch, device):
    x = torch.ones(1 << 20, device=device)
    torch.cuda.synchronize()
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        for _ in range(3):
            y = x * 2 + 1
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2 + 1
    x.fill_(3)
    g.replay()
    torch.cuda.synchronize()
    say("graph", y.sum().item() == 7 * (1 << 20))


def main():
    try:
        import torch
    except ImportError:
        print("skip: PyTorch is not installed")
        return 77
    if not torch.cuda.is_available():
        print("skip: PyTorch finds no card")
        return 77
    device = torch.device("cuda:0")
    free, total = torch.cuda.mem_get_info()
    say("total", total)
    say("properties-total", torch.cuda.get_device_properties(0).total_memory)
    say("free-context", free)
    graph(torch, device)
    fill(torch, device)
    torch.cuda.empty_cache()
    y = torch.randn(1024, 1024, device=device) @ torch.randn(1024, 1024, device=device)
    say("works-on", bool(torch.isfinite(y).all().item()))
    say("free-ended", torch.cuda.mem_get_info()[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
