#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first run: whether programs live behind libaliquot.so, and what libcuda asks of the driver. Ends with the name of the variant
that the other two runs take."""
import gzip
import os
import shutil
import subprocess
import sys

import facts
from call import VARIANTS, Call, figures, need_card, options

# MiB that a program holds. What a simulated card holds, this machine writes.
HELD = "64" if os.environ.get("ALIQUOT_SIM_DIR") else "256"
LIMIT = 40  # seconds for a program; one that lives needs some
PROGRAMS = (("plain", ["gpu-case", "family", "plain", HELD]), ("over", ["gpu-case", "over", "plain", "8192"]),
            ("managed", ["gpu-case", "family", "managed", HELD]), ("runtime", ["runtime-static", "64"]))
CASES = (("contexts", ["contexts", "1"]), ("vmm-late", ["family", "vmm-late", HELD]), ("plain", ["family", "plain", HELD]),
         ("managed", ["family", "managed", HELD]), ("external", ["family", "external", HELD]), ("ipc", ["ipc", "64"]),
         ("shared", ["shared", "64"]), ("agree", ["agree"]), ("pool", ["family", "pool", HELD]), ("graph", ["family", "graph", HELD]),
         ("vmm", ["family", "vmm", HELD]), ("probe", ["probe"]))
MORE = (("pieces", ["family", "pieces", HELD]), ("pitched", ["family", "pitched", HELD]), ("own-pool", ["family", "own-pool", HELD]),
        ("array", ["family", "array", HELD]), ("mipmap", ["family", "mipmap", HELD]), ("host", ["family", "host", HELD]),
        ("contexts-4", ["contexts", "4"]))
MIB = 1 << 20


def lives(call, variant, name, program):
    """Whether the program ends well in a slice; None: it cannot be run here."""
    path = call.program(variant, program[0])
    if not os.path.exists(path) or (call.simulated and name == "runtime"):
        return None
    status, text = call.step("gate/%s-%s" % (variant, name), LIMIT, call.in_slice(variant, [path, *program[1:]]), ALIQUOT_LOG="2")
    return status == 0 and (name != "over" or figures(text).get("error") == 2)


def choose(call):
    """Each variant with each program. The first variant in which all live; otherwise the one in which most do."""
    words, alive = {True: "lives", False: "FAILS", None: "skipped"}, {}
    for variant in VARIANTS:
        result = [(name, lives(call, variant, name, program)) for name, program in PROGRAMS]
        alive[variant] = sum(r is not False for _, r in result)
        call.say("%s: %s" % (variant, ", ".join("%s %s" % (name, words[r]) for name, r in result)))
    best = max(VARIANTS, key=lambda v: alive[v])
    call.say("variant: %s%s" % (best, "" if alive[best] == len(PROGRAMS) else " (no variant runs all programs: see gate/*.txt)"))
    return best


def trace(call, name, command, **env):
    """With the tracer, and without libaliquot.so. The trace's path, or None."""
    path = os.path.join(call.folder, "trace", name + ".trace")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    status, _ = call.step("trace/%s.output" % name, LIMIT, command, RM_TRACE=path, LD_PRELOAD=call.program("library", "librm-trace.so"), **env)
    if status not in (0, 77, None):
        call.say("trace %s: status %s" % (name, status))
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return None
    call.step("trace/" + name, LIMIT, [call.program("library", "rm-trace"), path])
    return path


def trace_all(call):
    case = call.program("library", "gpu-case")
    traces = [trace(call, name, [case, *arguments]) for name, arguments in CASES + (() if call.quick else MORE)]
    traces.append(trace(call, "nvidia-smi", ["nvidia-smi"]))
    traces.append(trace(call, "nvidia-smi-query", ["nvidia-smi", "--query-gpu=memory.total,memory.used", "--format=csv"]))
    for kind in ("static", "shared"):
        program = call.program("library", "runtime-" + kind)
        if os.path.exists(program) and not call.simulated:
            traces.append(trace(call, "runtime-" + kind, [program, "64"]))
    torch = [sys.executable, os.path.join(call.kit, "tests/gpu/torch_case.py")]
    traces.append(trace(call, "torch", torch))
    traces.append(trace(call, "torch-expandable", torch, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"))
    return [path for path in traces if path]


def pack(call, traces):
    call.step("trace", 60, [call.program("library", "rm-trace"), "--vectors", os.path.join(call.folder, "vectors.txt"), *traces],
              reserve=0)
    for path in traces:
        with open(path, "rb") as f, gzip.open(path + ".gz", "wb") as g:
            shutil.copyfileobj(f, g)
        os.unlink(path)


def late(call, variant):
    """A handle that is released while its mapping lives: what the driver and the slice say of the memory."""
    case = [call.program(variant, "gpu-case"), "family", "vmm-late", HELD]
    words = []
    for place, command in (("driver", case), ("slice", call.in_slice(variant, case))):
        told = figures(call.step("late-" + place, LIMIT, command)[1])
        taken = told.get("free-context", 0) - told.get("free-held", 0)
        words.append("%s %d" % (place, taken // MIB) if "free-held" in told else place + " unknown")
    call.say("released while mapped, of %s MiB: %s" % (HELD, ", ".join(words)))


def strace(call, variant):
    """A program that makes a system call without libc evades the library and the tracer; strace sees it."""
    if not shutil.which("strace"):
        return
    case = [call.program(variant, "gpu-case"), "family", "plain", HELD]
    for name, command in (("strace", case), ("strace-gate", call.in_slice(variant, case))):
        log = os.path.join(call.folder, name + ".log")
        call.step(name, 60, ["strace", "-f", "-e", "trace=ioctl,mmap", "-o", log, *command])


def latency(call):
    told = figures(call.step("latency", 60, [call.program("library", "gpu-case"), "latency"])[1])
    call.say("latency, median of ns: " + ", ".join("%s %d" % (key[:-7], value) for key, value in told.items() if key.endswith("-p50-ns")))
    call.say("the launch that first waits for room: number %s" % told.get("launch-that-waits", "unknown"))


def main():
    chosen = options(__doc__)
    need_card()
    call = Call("call1", chosen)
    facts.machine(call)
    call.step("warm", LIMIT, [call.program("library", "gpu-case"), "contexts", "1"])  # the first program makes the driver's files
    variant = choose(call)
    traces = trace_all(call)
    facts.controls(call, os.path.join(call.folder, "trace", "contexts.trace"))
    facts.uvm_mappings(call, os.path.join(call.folder, "trace", "contexts.trace"))
    late(call, variant)
    facts.probe(call, os.path.join(call.folder, "trace", "probe.output.txt"))
    latency(call)
    strace(call, variant)
    pack(call, traces)
    call.finish()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.SubprocessError as e:
        sys.exit("call1: %s" % e)
