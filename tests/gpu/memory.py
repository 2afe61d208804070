# SPDX-License-Identifier: Apache-2.0
"""The memory tests in their order."""
from limits import limits
from tests import (agree, as_many, contexts, crowd, family, fill, forked, killed, most,
                   nccl, over, runtime, smi, threads, times, torch, travels)

FAMILIES = ("plain", "pieces", "pitched", "pool", "own-pool", "vmm", "vmm-late", "external", "array", "mipmap", "managed", "graph")

EVERY = [("agree", agree), ("nvidia-smi", smi)]
EVERY += [("family-" + name, family(name)) for name in FAMILIES] + [("family-host", family("host", counted=False))]
EVERY += [("over-" + name, over(name)) for name in FAMILIES if name not in ("external", "vmm-late")]
EVERY += [("fill", fill), ("contexts", contexts), ("threads", threads), ("forked", forked), ("ipc", travels("ipc")),
          ("shared-vmm", travels("shared")), ("killed", killed),
          ("race-driver-64", crowd("crowd", lambda card, mib: 64, 2, lambda card: 2048)), ("race-cuda", crowd("race", as_many, 2, most)),
          ("runtime-static", runtime("static")), ("runtime-shared", runtime("shared")), ("torch", torch()),
          ("torch-expandable", torch(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")),
          ("torch-async", torch(PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")), ("nccl", nccl), ("limits", limits), ("times", times)]

# The time on a card may end before the tests do.
FIRST = ("agree", "family-plain", "runtime-static", "torch", "contexts", "over-plain", "family-vmm-late", "ipc", "shared-vmm", "times")
ALL = [(name, dict(EVERY)[name]) for name in FIRST] + [pair for pair in EVERY if pair[0] not in FIRST]
