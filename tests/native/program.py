# SPDX-License-Identifier: Apache-2.0
"""The program under test: calls NVML or libcuda step by step, until one fails or waits for the card.

    program.py nvml|cuda [MIB]

Prints a line of JSON for each step: its name, what the library returned, and what it told. MIB: how
much memory the last steps ask for, where a context can be had.
"""
import ctypes
import json
import os
import sys

MIB = 1 << 20


class Library:
    def __init__(self, name):
        self.calls = ctypes.CDLL(name)

    def step(self, name, *arguments, told=lambda: None):
        with open(os.environ["NATIVE_TRACE"], "a", encoding="ascii") as trace:
            print("step " + name, file=trace)
        r = getattr(self.calls, name)(*arguments)
        print(json.dumps([name, r, told() if r == 0 else None]), flush=True)
        if r != 0:
            sys.exit(1)


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def nvml():
    lib, ref = Library("libnvidia-ml.so.1"), ctypes.byref
    n, device, text, memory = ctypes.c_uint(), ctypes.c_void_p(), ctypes.create_string_buffer(96), Memory()
    lib.step("nvmlInit_v2")
    lib.step("nvmlSystemGetDriverVersion", text, 96, told=lambda: text.value.decode())
    lib.step("nvmlDeviceGetCount_v2", ref(n), told=lambda: n.value)
    lib.step("nvmlDeviceGetHandleByIndex_v2", 0, ref(device))
    lib.step("nvmlDeviceGetName", device, text, 96, told=lambda: text.value.decode())
    lib.step("nvmlDeviceGetUUID", device, text, 96, told=lambda: text.value.decode())
    lib.step("nvmlDeviceGetMemoryInfo", device, ref(memory), told=lambda: [memory.total, memory.free, memory.used])
    lib.step("nvmlDeviceGetMinorNumber", device, ref(n), told=lambda: n.value)
    lib.step("nvmlDeviceGetComputeRunningProcesses_v3", device, ref(ctypes.c_uint()), None)
    lib.step("nvmlShutdown")


def attributes(lib, device):
    value, found = ctypes.c_int(), {}
    for number in range(1, 140):
        if lib.calls.cuDeviceGetAttribute(ctypes.byref(value), number, device) == 0:
            found[number] = value.value
    return found


def cuda(mib):
    lib, ref = Library("libcuda.so.1"), ctypes.byref
    n, device, size, text = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(96)
    free, context, pointer, uuid = ctypes.c_size_t(), ctypes.c_void_p(), ctypes.c_uint64(), (ctypes.c_ubyte * 16)()
    lib.step("cuInit", 0)
    lib.step("cuDriverGetVersion", ref(n), told=lambda: n.value)
    lib.step("cuDeviceGetCount", ref(n), told=lambda: n.value)
    lib.step("cuDeviceGet", ref(device), 0)
    lib.step("cuDeviceGetName", text, 96, device, told=lambda: text.value.decode())
    lib.step("cuDeviceGetUuid", uuid, device, told=lambda: bytes(uuid).hex())
    lib.step("cuDeviceTotalMem_v2", ref(size), device, told=lambda: size.value)
    lib.step("cuDeviceGetAttribute", ref(n), 16, device, told=lambda: attributes(lib, device))
    lib.step("cuCtxCreate_v2", ref(context), 0, device)
    lib.step("cuMemGetInfo_v2", ref(free), ref(size), told=lambda: [size.value, free.value])
    lib.step("cuMemAlloc_v2", ref(pointer), ctypes.c_size_t(mib * MIB))
    lib.step("cuCtxDestroy_v2", context)


if __name__ == "__main__":
    nvml() if sys.argv[1] == "nvml" else cuda(int((sys.argv + ["100"])[2]))
