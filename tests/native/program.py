# SPDX-License-Identifier: Apache-2.0
"""The program under test: calls NVML or libcuda step by step, until one fails.

    program.py NAME [hold] [mib=N]

NAME is one of the functions below, which have further options. Prints a line of JSON for each step: its name, what the library
returned, and what it told. hold: waits for a line on its input before it gives back what it has.
"""
import ctypes
import json
import os
import select
import struct
import sys

MIB = 1 << 20
OPTIONS = dict((word + "=1").split("=")[:2] for word in sys.argv[2:])
ref, Handle, Address, Int, Size = ctypes.byref, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int, ctypes.c_size_t
UNIFIED, HOST, DEVICE = 4, 1, 2  # CUmemorytype
OUT_OF_MEMORY, ILLEGAL_ADDRESS = 2, 700  # CUDA_ERROR_...
BLOCKING_SYNC, DISABLE_TIMING = 1, 2  # CU_EVENT_...
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


class BoxSide(ctypes.Structure):
    _fields_ = [("x", Size), ("y", Size), ("z", Size), ("lod", Size), ("type", Int), ("host", Handle), ("device", Address), ("array", Handle),
                ("context", Handle), ("pitch", Size), ("height", Size)]


class PeerBox(ctypes.Structure):
    """CUDA_MEMCPY3D_PEER"""
    _fields_ = [("src", BoxSide), ("dst", BoxSide), ("width", Size), ("height", Size), ("depth", Size)]


class ArrayOf(ctypes.Structure):
    """CUDA_ARRAY_DESCRIPTOR"""
    _fields_ = [("width", Size), ("height", Size), ("format", Int), ("channels", ctypes.c_uint)]


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


def pattern(n, salt):
    """n bytes that repeat late, and differ by salt."""
    step = bytes((salt + 7 * i) % 251 for i in range(251))
    return (step * (n // len(step) + 1))[:n]


def buffer(n, salt=None):
    return ctypes.create_string_buffer(pattern(n, salt) if salt is not None else bytes(n), n)


def check(name, got, wanted):
    """Bytes must be the same."""
    got = bytes(got)
    where = next((i for i, pair in enumerate(zip(got, wanted)) if pair[0] != pair[1]), None) if got != wanted else None
    told(name, "same" if got == wanted else "differs from byte %s on" % where)
    if got != wanted:
        sys.exit(1)


SIZES = [1, 4, 1000, 65536, MIB, 3 * MIB + 7, 40 * MIB]


def copies():
    """To the card and back; and within it, which libcuda has a kernel or a copy engine do."""
    with Context() as lib:
        for n in SIZES:
            one, other = (lib.make("cuMemAlloc_v2", Address, Size(n)) for _ in range(2))
            source, target = buffer(n, n % 199), buffer(n)
            lib.step("cuMemcpyHtoD_v2", one, source, Size(n))
            lib.step("cuMemcpyDtoH_v2", target, one, Size(n))
            check("copied %d" % n, target, source.raw)
            lib.step("cuMemcpyDtoD_v2", other, one, Size(n))
            lib.step("cuMemcpyDtoH_v2", target, other, Size(n))
            told("within %d" % n, target.raw == source.raw)
            lib.step("cuMemFree_v2", one)
            lib.step("cuMemFree_v2", other)


def pinned():
    """Memory of the host that the card reaches: allocated, registered, managed."""
    n = 2 * MIB + 8
    with Context() as lib:
        at = lib.make("cuMemAlloc_v2", Address, Size(n))
        host = lib.make("cuMemHostAlloc", Handle, Size(n), 2)  # CU_MEMHOSTALLOC_DEVICEMAP
        ctypes.memmove(host.value, pattern(n, 3), n)
        lib.step("cuMemHostGetDevicePointer_v2", ref(Address()), host, 0)
        lib.step("cuMemcpyHtoDAsync_v2", at, host, Size(n), None)
        lib.step("cuStreamSynchronize", None)
        own, whole = ctypes.create_string_buffer(n + 8192), pattern(n, 3)
        page = ctypes.c_void_p((ctypes.addressof(own) + 4095) & ~4095)
        lib.step("cuMemHostRegister_v2", page, Size(n), 0)
        lib.step("cuMemcpyDtoHAsync_v2", page, at, Size(n), None)
        lib.step("cuCtxSynchronize")
        check("registered", ctypes.string_at(page.value, n), whole)
        lib.step("cuMemHostUnregister", page)
        lib.step("cuMemFreeHost", host)
        lib.step("cuMemFree_v2", at)


def managed():
    """libcuda has a kernel do copies of managed memory."""
    n = 2 * MIB + 8
    with Context() as lib:
        shared = lib.make("cuMemAllocManaged", Address, Size(n), 1)  # CU_MEM_ATTACH_GLOBAL
        source, target = buffer(n, 5), buffer(n)
        lib.step("cuMemcpyHtoD_v2", shared, source, Size(n))
        told("written", ctypes.string_at(shared.value, n) == source.raw)
        lib.step("cuMemPrefetchAsync", shared, Size(n), 0, None)
        lib.step("cuCtxSynchronize")
        ctypes.memmove(shared.value, pattern(n, 6), n)
        lib.step("cuMemcpyDtoH_v2", target, shared, Size(n))
        told("read", target.raw == pattern(n, 6))
        lib.step("cuMemFree_v2", shared)


def planes():
    """Lines with a pitch, an array, and fills."""
    width, height = 1000, 64
    with Context() as lib:
        pitch = Size()
        at = lib.make("cuMemAllocPitch_v2", Address, ref(pitch), Size(width), Size(height), 4)
        source, target = buffer(width * height, 9), buffer(width * height)
        lib.step("cuMemcpy2D_v2", ref(Copy2D(src_type=HOST, src_host=ctypes.addressof(source), src_pitch=width, dst_type=DEVICE, dst_device=at,
                                             dst_pitch=pitch, width=width, height=height)))
        lib.step("cuMemcpy2D_v2", ref(Copy2D(src_type=DEVICE, src_device=at, src_pitch=pitch, dst_type=HOST, dst_host=ctypes.addressof(target),
                                             dst_pitch=width, width=width, height=height)))
        check("lines", target, source.raw)
        lib.step("cuMemsetD32_v2", at, 0x01020304, Size(1000))
        lib.step("cuMemcpyDtoH_v2", target, at, Size(4000))
        told("filled", target.raw[:4000] == bytes([4, 3, 2, 1]) * 1000)
        lib.step("cuMemFree_v2", at)


def pools():
    n = 8 * MIB
    with Context() as lib:
        before = info(lib)
        stream = lib.make("cuStreamCreate", Handle, NON_BLOCKING)
        at = lib.make("cuMemAllocAsync", Address, Size(n), stream)
        source, target = buffer(n, 4), buffer(n)
        lib.step("cuMemcpyHtoDAsync_v2", at, source, Size(n), stream)
        lib.step("cuMemcpyDtoHAsync_v2", target, at, Size(n), stream)
        lib.step("cuMemFreeAsync", at, stream)
        lib.step("cuStreamSynchronize", stream)
        check("copied", target, source.raw)
        pool = lib.make("cuDeviceGetDefaultMemPool", Handle, 0)
        told("kept", before - info(lib))
        lib.step("cuMemPoolTrimTo", pool, Size(0))
        told("left", before - info(lib))
        lib.step("cuStreamDestroy_v2", stream)


def grains():
    """How much of the card an allocation takes: plain memory, pools, and a pool with less than its grain left."""
    with Context() as lib:
        pool = lib.make("cuDeviceGetDefaultMemPool", Handle, 0)

        def taken(name, n, *stream, wanted=0):
            before, at = info(lib), Address()
            lib.step(name, ref(at), Size(n), *stream, wanted=wanted)
            told("%s %d" % (name, n), before - info(lib))
            if wanted == 0:
                lib.step("cuMemFree_v2", at)
                lib.step("cuMemPoolTrimTo", pool, Size(0))
            return before

        for n in 1, MIB, MIB + 1, 3 * MIB:
            taken("cuMemAlloc_v2", n)
        for n in 1, 33 * MIB:
            taken("cuMemAllocAsync", n, None)
        free = info(lib)
        rest = lib.make("cuMemAlloc_v2", Address, Size(free // MIB * MIB - 20 * MIB))
        taken("cuMemAllocAsync", 2, None, wanted=OUT_OF_MEMORY)
        lib.step("cuMemFree_v2", rest)


def vmm():
    with Context() as lib:
        before = info(lib)
        what = Property(type=1, location=Location(1, 0))  # PINNED, of device 0
        grain = lib.make("cuMemGetAllocationGranularity", Size, ref(what), 0)
        n = 4 * grain.value
        handle = lib.make("cuMemCreate", ctypes.c_ulonglong, Size(n), ref(what), ctypes.c_ulonglong(0))
        told("taken", before - info(lib))
        at = lib.make("cuMemAddressReserve", Address, Size(n), Size(0), Address(0), ctypes.c_ulonglong(0))
        lib.step("cuMemMap", at, Size(n), Size(0), handle, ctypes.c_ulonglong(0))
        lib.step("cuMemSetAccess", at, Size(n), ref(Access(Location(1, 0), 3)), Size(1))
        source, target = buffer(n, 6), buffer(n)
        lib.step("cuMemcpyHtoD_v2", at, source, Size(n))
        lib.step("cuMemcpyDtoH_v2", target, at, Size(n))
        check("copied", target, source.raw)
        lib.step("cuMemUnmap", at, Size(n))
        lib.step("cuMemRelease", handle)
        lib.step("cuMemAddressFree", at, Size(n))
        told("left", before - info(lib))


def events():
    n = 16 * MIB
    with Context() as lib:
        at, host = lib.make("cuMemAlloc_v2", Address, Size(n)), lib.make("cuMemHostAlloc", Handle, Size(n), 0)
        begin, end = lib.make("cuEventCreate", Handle, 0), lib.make("cuEventCreate", Handle, BLOCKING_SYNC)
        lib.step("cuEventRecord", begin, None)
        lib.step("cuMemcpyHtoDAsync_v2", at, host, Size(n), None)
        lib.step("cuEventRecord", end, None)
        lib.step("cuEventSynchronize", end)
        lib.step("cuEventQuery", end)
        took = ctypes.c_float()
        lib.step("cuEventElapsedTime", ref(took), begin, end, told=lambda: took.value > 0)
        lib.step("cuEventDestroy_v2", begin)
        lib.step("cuEventDestroy_v2", end)


def streams():
    n = 4 * MIB
    with Context() as lib:
        one, other = (lib.make("cuStreamCreateWithPriority", Handle, NON_BLOCKING, -i) for i in range(2))
        at, flag = lib.make("cuMemAlloc_v2", Address, Size(n)), lib.make("cuMemAlloc_v2", Address, Size(4))
        source, target = lib.make("cuMemHostAlloc", Handle, Size(n), 0), lib.make("cuMemHostAlloc", Handle, Size(n), 0)
        ctypes.memmove(source.value, pattern(n, 8), n)
        event = lib.make("cuEventCreate", Handle, DISABLE_TIMING)
        lib.step("cuMemsetD32_v2", flag, 0, Size(1))
        lib.step("cuStreamWaitValue32_v2", one, flag, 1, 0)  # until the other stream writes the word
        lib.step("cuMemcpyHtoDAsync_v2", at, source, Size(n), one)
        lib.step("cuEventRecord", event, one)
        lib.step("cuStreamWaitEvent", other, event, 0)
        lib.step("cuMemcpyDtoHAsync_v2", target, at, Size(n), other)
        lib.step("cuStreamQuery", one, wanted=600)  # CUDA_ERROR_NOT_READY
        third = lib.make("cuStreamCreate", Handle, NON_BLOCKING)
        lib.step("cuStreamWriteValue32_v2", third, flag, 1, 0)
        lib.step("cuStreamSynchronize", other)
        check("copied", ctypes.string_at(target.value, n), pattern(n, 8))
        for stream in one, other, third:
            lib.step("cuStreamDestroy_v2", stream)


def module(lib):
    module = lib.make("cuModuleLoadData", Handle, PTX)
    return lib.make("cuModuleGetFunction", Handle, module, b"nothing"), module


def launch():
    """Nothing is computed, but the module's memory has what it was loaded with."""
    with Context() as lib:
        function, loaded = module(lib)
        word, size, value = Address(), Size(), ctypes.c_uint()
        lib.step("cuModuleGetGlobal_v2", ref(word), ref(size), loaded, b"word")
        parameter = Address(0)
        parameters = (Handle * 1)(ctypes.addressof(parameter))
        for _ in range(int(OPTIONS.get("launches", 3))):
            lib.step("cuLaunchKernel", function, 4, 1, 1, 32, 1, 1, 0, None, parameters, None)
        lib.step("cuCtxSynchronize")
        lib.step("cuMemcpyDtoH_v2", ref(value), word, Size(4), told=lambda: value.value)
        lib.step("cuModuleUnload", loaded)


def busy():
    """Launches of `grid` microseconds each, so many, and waits for them."""
    with Context() as lib:
        function, _ = module(lib)
        parameter = Address(0)
        parameters = (Handle * 1)(ctypes.addressof(parameter))
        told("ready", os.getpid())
        for _ in range(int(OPTIONS["launches"])):
            if lib.calls.cuLaunchKernel(function, int(OPTIONS["grid"]), 1, 1, 32, 1, 1, 0, None, parameters, None) != 0:
                sys.exit(1)
        told("launched", None)
        lib.step("cuCtxSynchronize")


def graph_of_kernels(lib, stream, grid):
    """Two kernels side by side between two others, each of so many microseconds: a graph that is ready. libcuda submits the first of them."""
    other, function = lib.make("cuStreamCreate", Handle, NON_BLOCKING), module(lib)[0]
    events = [lib.make("cuEventCreate", Handle, DISABLE_TIMING) for _ in range(2)]
    parameter = Address(0)
    parameters = (Handle * 1)(ctypes.addressof(parameter))

    def kernel(to):
        lib.step("cuLaunchKernel", function, grid, 1, 1, 32, 1, 1, 0, to, parameters, None)

    lib.step("cuStreamBeginCapture_v2", stream, 1)  # THREAD_LOCAL
    kernel(stream)
    lib.step("cuEventRecord", events[0], stream)
    lib.step("cuStreamWaitEvent", other, events[0], 0)
    kernel(stream)
    kernel(other)
    lib.step("cuEventRecord", events[1], other)
    lib.step("cuStreamWaitEvent", stream, events[1], 0)
    kernel(stream)
    captured = Handle()
    lib.step("cuStreamEndCapture", stream, ref(captured))
    return lib.make("cuGraphInstantiateWithFlags", Handle, captured, ctypes.c_ulonglong(0))


def graphs():
    """Launches a graph more often than a channel's ring has entries."""
    with Context() as lib:
        stream = lib.make("cuStreamCreate", Handle, NON_BLOCKING)
        ready = graph_of_kernels(lib, stream, 1)
        for _ in range(int(OPTIONS["launches"])):
            if lib.calls.cuGraphLaunch(ready, stream) != 0:
                sys.exit(1)
        lib.step("cuStreamSynchronize", stream)
        lib.step("cuGraphExecDestroy", ready)


def kernels_of_libcuda(lib, context):
    """Calls that libcuda does by a kernel, and graphs, by name."""
    n, few, width = Size(MIB), Size(4), 1024
    other = lib.make("cuCtxCreate_v2", Handle, 0, 0)
    to, to_other = (lib.make("cuMemAlloc_v2", Address, n) for _ in range(2))
    far = lib.make("cuCtxCreate_v2", Handle, 0, 1)  # of the second card
    lib.step("cuCtxSetCurrent", context)
    at = lib.make("cuMemAlloc_v2", Address, n)
    shared, page = lib.make("cuMemAllocManaged", Address, n, 1), buffer(MIB)
    stream = lib.make("cuStreamCreate", Handle, NON_BLOCKING)
    array = lib.make("cuArrayCreate_v2", Handle, ref(ArrayOf(4096, 0, 1, 1)))  # bytes
    as_host = {"src_type": HOST, "src_host": at.value, "src_pitch": width, "dst_type": HOST, "dst_host": to.value, "dst_pitch": width}
    box = {"pitch": width, "height": width}
    return {
        "within": ("cuMemcpyDtoD_v2", to, at, n),
        "within, 4 bytes": ("cuMemcpyDtoD_v2", to, at, few),
        "within, 4 bytes, async": ("cuMemcpyDtoDAsync_v2_ptsz", to, at, few, stream),
        "within, by addresses": ("cuMemcpy", to, at, Size(65535)),
        "between contexts": ("cuMemcpyPeer", to, other, at, context, n),
        "between contexts, async": ("cuMemcpyPeerAsync", to, other, at, context, few, stream),
        "between contexts, boxes": ("cuMemcpy3DPeer", ref(PeerBox(BoxSide(type=DEVICE, device=at, context=context, **box),
                                                                  BoxSide(type=DEVICE, device=to_other, context=other, **box), width, width, 1))),
        "between contexts, one named, async": ("cuMemcpyPeerAsync", to, None, at, context, n, stream),
        "within, contexts of two cards": ("cuMemcpyPeer", to, far, at, context, n),
        "to the host, which is the card": ("cuMemcpyDtoH_v2", to, at, n),
        "to the host, which is the card, async": ("cuMemcpyDtoHAsync_v2", to, at, few, stream),
        "from the host, which is the card": ("cuMemcpyHtoD_v2", to, at, few),
        "rows of the host, which is the card": ("cuMemcpy2D_v2", ref(Copy2D(width=64, height=4, **as_host))),
        "array to the host, which is the card": ("cuMemcpyAtoH_v2", to, array, Size(0), few),
        "from managed memory": ("cuMemcpyDtoH_v2", page, shared, n),
        "from managed memory, 4 bytes": ("cuMemcpyDtoH_v2_ptds", page, shared, few),
        "to managed memory, 4 bytes": ("cuMemcpyHtoD_v2", shared, page, few),
        "fill": ("cuMemsetD8_v2", to, 1, Size(4097)),
        "fill, two lines": ("cuMemsetD2D8_v2", to, Size(width), 1, few, Size(2)),
        "graph, async": ("cuGraphLaunch", graph_of_kernels(lib, stream, 500), stream),
        "fill of managed memory": ("cuMemsetD32Async", shared, 1, Size(1), stream),
    }


def loops():
    """For each line on its input, makes that one of these calls without pause until the next line."""
    with Context() as lib:
        context = lib.make("cuCtxGetCurrent", Handle)
        calls = kernels_of_libcuda(lib, context)
        told("ready", sorted(calls))
        for name in iter(lambda: sys.stdin.readline().strip(), ""):
            function, *arguments = calls[name]
            function = getattr(lib.calls, function)
            told("begins", name)
            while not select.select([sys.stdin], [], [], 0)[0]:
                for _ in range(32):
                    if function(*arguments) != 0:
                        sys.exit(1)
            lib.step("cuCtxSynchronize")


def host():
    called = []
    function = ctypes.CFUNCTYPE(None, Handle)(called.append)
    with Context() as lib:
        stream = lib.make("cuStreamCreate", Handle, NON_BLOCKING)
        for number in 1, 2, 3:
            lib.step("cuLaunchHostFunc", stream, function, Handle(number))
        lib.step("cuStreamSynchronize", stream)
        told("called", called)
        lib.step("cuStreamDestroy_v2", stream)


def graph():
    n = MIB
    called = []
    callback = ctypes.CFUNCTYPE(None, Handle)(called.append)
    with Context() as lib:
        function, _ = module(lib)
        stream = lib.make("cuStreamCreate", Handle, NON_BLOCKING)
        at, source, target = lib.make("cuMemAlloc_v2", Address, Size(n)), lib.make("cuMemHostAlloc", Handle, Size(n), 0), buffer(n)
        ctypes.memmove(source.value, pattern(n, 2), n)
        parameter = Address(0)
        parameters = (Handle * 1)(ctypes.addressof(parameter))
        lib.step("cuStreamBeginCapture_v2", stream, 1)  # THREAD_LOCAL
        lib.step("cuMemcpyHtoDAsync_v2", at, source, Size(n), stream)
        lib.step("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, None)
        lib.step("cuLaunchHostFunc", stream, callback, Handle(7))
        captured, count = Handle(), Size()
        lib.step("cuStreamEndCapture", stream, ref(captured))
        lib.step("cuGraphGetNodes", captured, None, ref(count), told=lambda: count.value)
        ready = lib.make("cuGraphInstantiateWithFlags", Handle, captured, ctypes.c_ulonglong(0))
        for _ in range(2):
            lib.step("cuGraphLaunch", ready, stream)
        lib.step("cuStreamSynchronize", stream)
        told("called", called)
        lib.step("cuMemcpyDtoH_v2", target, at, Size(n))
        check("copied", target, pattern(n, 2))
        lib.step("cuGraphExecDestroy", ready)
        lib.step("cuGraphDestroy", captured)
        lib.step("cuStreamDestroy_v2", stream)


def cards():
    """A context on each of two cards, and a copy from one to the other."""
    n, made = MIB, []
    lib, _ = start()
    for card in range(2):
        context = lib.make("cuCtxCreate_v2", Handle, 0, card)
        function, _ = module(lib)
        parameter = Address(0)
        lib.step("cuLaunchKernel", function, 4, 1, 1, 32, 1, 1, 0, None, (Handle * 1)(ctypes.addressof(parameter)), None)
        lib.step("cuCtxSynchronize")
        made.append((lib.make("cuMemAlloc_v2", Address, Size(n)), context))
    source, target = buffer(n, 7), buffer(n)
    lib.step("cuCtxSetCurrent", made[0][1])
    lib.step("cuMemcpyHtoD_v2", made[0][0], source, Size(n))
    lib.step("cuMemcpyPeer", *made[1], *made[0], Size(n))
    lib.step("cuCtxSetCurrent", made[1][1])
    lib.step("cuMemcpyDtoH_v2", target, made[1][0], Size(n))
    check("copied", target, source.raw)
    for _, context in made:
        lib.step("cuCtxDestroy_v2", context)


def outside():
    """The program unmaps its memory from the card behind libcuda (UVM_UNMAP_EXTERNAL). The next copy is
    a fault of the card, and the context is lost."""
    n, uuid = 4 * MIB, (ctypes.c_ubyte * 16)()
    with Context() as lib:
        lib.step("cuDeviceGetUuid", uuid, 0)
        at = lib.make("cuMemAlloc_v2", Address, Size(n))
        unmap = ctypes.create_string_buffer(struct.pack("<QQ16sII", at.value, n, bytes(uuid), 99, 0))
        uvm = [int(fd) for fd in os.listdir("/proc/self/fd") if os.path.realpath("/proc/self/fd/" + fd).endswith("/nvidia-uvm")]
        told("unmapped", [ctypes.CDLL(None).ioctl(fd, 66, unmap) == 0 and struct.unpack_from("<I", unmap, 32)[0] for fd in uvm])
        lib.step("cuMemcpyDtoH_v2", buffer(n), at, Size(n), wanted=ILLEGAL_ADDRESS)
        lib.step("cuMemAlloc_v2", ref(Address()), Size(MIB), wanted=ILLEGAL_ADDRESS)
        os._exit(0)  # the context is of no use any more


def copying():
    """Copies without end."""
    n = 512 * MIB
    with Context() as lib:
        at, host = lib.make("cuMemAlloc_v2", Address, Size(n)), lib.make("cuMemHostAlloc", Handle, Size(n), 0)
        told("ready", None)
        while lib.calls.cuMemcpyHtoDAsync_v2(at, host, Size(n), None) == 0:
            pass


if __name__ == "__main__":
    globals()[sys.argv[1]]()
