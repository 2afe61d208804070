# SPDX-License-Identifier: Apache-2.0
"""The program under test: calls NVML or libcuda step by step, until one fails.

    program.py NAME [hold] [mib=N]

NAME is one of the functions below. Prints a line of JSON for each step: its name, what the library
returned, and what it told. hold: waits for a line on its input before it gives back what it has.
"""
import ctypes
import json
import os
import sys

MIB = 1 << 20
OPTIONS = dict((word + "=1").split("=")[:2] for word in sys.argv[2:])
ref, Handle, Address, Int, Size = ctypes.byref, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int, ctypes.c_size_t
UNIFIED, HOST, DEVICE = 4, 1, 2  # CUmemorytype
BLOCKING_SYNC = 1  # CU_EVENT_BLOCKING_SYNC
NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 word = 7;
.visible .entry nothing(.param .u64 to) { ret; }
"""


class Library:
    def __init__(self, name):
        self.calls = ctypes.CDLL(name)

    def step(self, name, *arguments, told=lambda: None, wanted=0):
        with open(os.environ["NATIVE_TRACE"], "a", encoding="ascii") as trace:
            print("step " + name, file=trace)
        r = getattr(self.calls, name)(*arguments)
        print(json.dumps([name, r, told() if r == 0 else None]), flush=True)
        if r != wanted:
            sys.exit(1)

    def make(self, name, kind, *arguments):
        """Calls a function that returns something new at its first argument."""
        made = kind()
        self.step(name, ref(made), *arguments)
        return made


def told(name, value):
    print(json.dumps([name, 0, value]), flush=True)


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Location(ctypes.Structure):
    """CUmemLocation, and what else begins with it: CUmemAllocationProp and CUmemAccessDesc have it inside."""
    _fields_ = [("type", Int), ("id", Int)]


class Property(ctypes.Structure):
    _fields_ = [("type", Int), ("handles", Int), ("location", Location), ("win32", Handle), ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", Int)]


class Copy2D(ctypes.Structure):
    _fields_ = [("src_x", Size), ("src_y", Size), ("src_type", Int), ("src_host", Handle), ("src_device", Address), ("src_array", Handle),
                ("src_pitch", Size), ("dst_x", Size), ("dst_y", Size), ("dst_type", Int), ("dst_host", Handle), ("dst_device", Address),
                ("dst_array", Handle), ("dst_pitch", Size), ("width", Size), ("height", Size)]


def nvml():
    lib = Library("libnvidia-ml.so.1")
    n, device, text, memory = ctypes.c_uint(), Handle(), ctypes.create_string_buffer(96), Memory()
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
    value, found = Int(), {}
    for number in range(1, 140):
        if lib.calls.cuDeviceGetAttribute(ref(value), number, device) == 0:
            found[number] = value.value
    return found


def start():
    lib = Library("libcuda.so.1")
    lib.step("cuInit", 0)
    return lib, lib.make("cuDeviceGet", Int, 0)


def device():
    lib, card = start()
    n, size, text, uuid = Int(), Size(), ctypes.create_string_buffer(96), (ctypes.c_ubyte * 16)()
    lib.step("cuDriverGetVersion", ref(n), told=lambda: n.value)
    lib.step("cuDeviceGetCount", ref(n), told=lambda: n.value)
    lib.step("cuDeviceGetName", text, 96, card, told=lambda: text.value.decode())
    lib.step("cuDeviceGetUuid", uuid, card, told=lambda: bytes(uuid).hex())
    lib.step("cuDeviceTotalMem_v2", ref(size), card, told=lambda: size.value)
    lib.step("cuDeviceGetAttribute", ref(n), 16, card, told=lambda: attributes(lib, card))


class Context:
    """A context of the first card, for the time of a with."""

    def __enter__(self):
        self.lib, self.card = start()
        self.context = self.lib.make("cuCtxCreate_v2", Handle, 0, self.card)
        return self.lib

    def __exit__(self, *failed):
        if "hold" in OPTIONS:
            sys.stdin.readline()
        if failed[0] is None:
            self.lib.step("cuCtxDestroy_v2", self.context)


def info(lib):
    free, total = Size(), Size()
    lib.step("cuMemGetInfo_v2", ref(free), ref(total), told=lambda: [total.value, free.value])
    return free.value


def context():
    with Context() as lib:
        info(lib)
        lib.step("cuCtxSynchronize")


def memory():
    with Context() as lib:
        before = info(lib)
        size = Size(int(OPTIONS.get("mib", 100)) * MIB)
        at = lib.make("cuMemAlloc_v2", Address, size)
        told("taken", before - info(lib))
        lib.step("cuMemFree_v2", at)
        told("left", before - info(lib))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
