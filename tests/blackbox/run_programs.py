#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with habits that other limiters break, in slices of `aliquot run` on simulated cards.

    run_programs.py ALIQUOT CC...

Each program is a function of this file, run again with --inside, or a C program.
"""
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import unittest

from patience import PATIENCE, until

MIB = 1 << 20
GROUP = 2  # MiB: SLICE_GROUP_BYTES of src/slicedir, which the slice counts for a channel group and the list of processes does not
V100 = "Tesla-V100-SXM2-16GB:16160MiB"
OUT_OF_MEMORY, INVALID_DEVICE = 2, 101
DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT = range(1, 5)


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Property(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("win32", ctypes.c_void_p),
                ("flags", ctypes.c_ubyte * 8)]


class Process(ctypes.Structure):
    """nvmlProcessInfo_t"""
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


class PoolProperties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("win32", ctypes.c_void_p),
                ("size", ctypes.c_size_t), ("usage", ctypes.c_ushort), ("reserved", ctypes.c_ubyte * 54)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class Cuda:
    """libcuda; a method named as the call without cu returns its result."""

    def __init__(self, device=0):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.init, context = self.lib.cuInit(0), ctypes.c_void_p()
        self.context = self.lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        self.lib.cuCtxSetCurrent(context)

    def alloc(self, mib):
        return self.lib.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib * MIB))

    def info(self):
        """Free and total MiB."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.lib.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value // MIB, total.value // MIB

    def create(self, mib, location=DEVICE, handles=0):
        """Result and handle."""
        handle = ctypes.c_uint64()
        return self.lib.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(mib * MIB),
                                    ctypes.byref(Property(1, handles, Location(location, 0))), ctypes.c_ulonglong(0)), handle

    def map(self, at, mib, handle):
        return self.lib.cuMemMap(ctypes.c_uint64(at), ctypes.c_size_t(mib * MIB), ctypes.c_size_t(0), handle, ctypes.c_ulonglong(0))

    def unmap(self, at, mib):
        return self.lib.cuMemUnmap(ctypes.c_uint64(at), ctypes.c_size_t(mib * MIB))


def host_memory():
    """Memory of the machine, by the calls that also make memory of a card."""
    cuda = Cuda()
    before, total = cuda.info()
    created = [cuda.create(4096, location)[0] for location in (HOST, HOST_NUMA, HOST_NUMA_CURRENT)]
    pools = []
    for location in HOST, HOST_NUMA, HOST_NUMA_CURRENT:
        pool, at = ctypes.c_void_p(), ctypes.c_uint64()
        pools.append([cuda.lib.cuMemPoolCreate(ctypes.byref(pool), ctypes.byref(PoolProperties(1, 0, Location(location, 0)))),
                      cuda.lib.cuMemAllocFromPoolAsync(ctypes.byref(at), ctypes.c_size_t(4096 * MIB), pool, None)])
    return {"created": created, "pools": pools, "free": cuda.info()[0] - before, "total": total,
            "card": [cuda.create(3000)[0], cuda.create(100)[0]]}


def sleep_and_wake():
    """An engine that maps pieces into one large range until it is refused, and gives all back three times."""
    cuda = Cuda()
    before, total = cuda.info()
    size, start = (total // 8 * 9 + 1) // 2 * 2, ctypes.c_uint64()
    reserved = cuda.lib.cuMemAddressReserve(ctypes.byref(start), ctypes.c_size_t(size * MIB), ctypes.c_size_t(0), ctypes.c_uint64(0),
                                            ctypes.c_ulonglong(0))
    after_reserve, rounds, last = cuda.info()[0], [], 0
    handles = []
    for _ in range(4):
        while True:
            last, handle = cuda.create(20, handles=1)
            if last != 0:
                break
            handles.append(handle)
            assert cuda.map(start.value + (len(handles) - 1) * 20 * MIB, 20, handle) == 0
        rounds.append([len(handles), last])
        exported = ctypes.c_int(-1)
        rounds[-1].append(cuda.lib.cuMemExportToShareableHandle(ctypes.byref(exported), handles[0], 1, ctypes.c_ulonglong(0)))
        imported, full = ctypes.c_uint64(), cuda.info()[0]
        rounds[-1].append(cuda.lib.cuMemImportFromShareableHandle(ctypes.byref(imported), ctypes.c_void_p(exported.value), 1))
        rounds[-1].append(cuda.info()[0] - full)  # the same memory
        os.close(exported.value)
        cuda.lib.cuMemRelease(imported)
        for i, handle in enumerate(handles):
            assert cuda.unmap(start.value + i * 20 * MIB, 20) == 0 and cuda.lib.cuMemRelease(handle) == 0
        handles.clear()
    until(lambda: cuda.info()[0] == before, "all is free again")  # a file system hears of close(2) later
    return {"reserved": reserved, "taken": before - after_reserve, "rounds": rounds, "free": before}


def nvml_before_fork():
    """The parent asks NVML; its child is the first to use CUDA. All questions have one answer."""
    nvml, device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()

    def processes():
        """Whether it is this one, and its MiB."""
        n, list_ = ctypes.c_uint(16), (Process * 16)()
        result = nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(n), list_)
        return [result, [[p.pid == os.getpid(), p.used // MIB] for p in list_[:n.value]]]

    def ask():
        one, two = (ctypes.c_ulonglong * 3)(), (ctypes.c_ulonglong * 5)(40 | 2 << 24)
        nvml.nvmlInit_v2()
        nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
        results = nvml.nvmlDeviceGetMemoryInfo(device, one), nvml.nvmlDeviceGetMemoryInfo_v2(device, two)
        return [*results, one[0] // MIB, one[2] // MIB, two[1] // MIB, (two[2] + two[4]) // MIB, *processes()]
    words = {"before": ask()}
    read, write = os.pipe()
    if os.fork() == 0:
        cuda = Cuda()
        child = {"init": cuda.init, "context": cuda.context, "over": cuda.alloc(3000), "fits": cuda.alloc(500)}
        free, total = cuda.info()
        child.update(nvml=ask(), cuda=[total, total - free])
        os.write(write, json.dumps(child).encode())
        os._exit(0)
    os.close(write)
    words["child"] = json.loads(os.read(read, 65536))
    os.wait()
    words["after"] = ask()
    return words


def visible_devices():
    """Each device that CUDA_VISIBLE_DEVICES leaves."""
    lib, n, devices = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), []
    lib.cuInit(0)
    lib.cuDeviceGetCount(ctypes.byref(n))
    for i in range(n.value):
        cuda = Cuda(i)
        devices.append([cuda.context, cuda.alloc(1500), cuda.alloc(1500), *cuda.info()] if cuda.context == 0 else [cuda.context])
    return devices


# The allocator's lock is held while it calls mmap, as in jemalloc.
ALLOCATOR = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *next, *end;
int allocations;
static void *take(size_t n, size_t align) {
        char *p;
        (void) pthread_mutex_lock(&lock);
        if (!next) {
                next = mmap(0, 1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
                end = next + (1 << 30);
        }
        align = align < 16 ? 16 : align;
        p = (char *) (((size_t) next + 16 + align - 1) & ~(align - 1));
        if (p + n > end)
                abort();
        memcpy(p - 16, &n, sizeof n);
        next = p + n;
        allocations++;
        (void) munmap(0, 0);
        (void) pthread_mutex_unlock(&lock);
        return p;
}
void *malloc(size_t n) { return take(n, 16); }
void free(void *p) { (void) p; }
void *calloc(size_t a, size_t b) { return take(a * b, 16); }
void *aligned_alloc(size_t a, size_t n) { return take(n, a); }
void *memalign(size_t a, size_t n) { return take(n, a); }
int posix_memalign(void **ret, size_t a, size_t n) { *ret = take(n, a); return 0; }
void *realloc(void *p, size_t n) {
        void *q = take(n, 16);
        size_t old;
        if (p) {
                memcpy(&old, (char *) p - 16, sizeof old);
                memcpy(q, p, old < n ? old : n);
        }
        return q;
}
"""

ALLOCATES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemAllocManaged(unsigned long long *, size_t, unsigned);
int main(void) {
        unsigned long long at;
        void *context;
        int init = cuInit(0), retain = cuDevicePrimaryCtxRetain(&context, 0);
        (void) cuCtxSetCurrent(context);
        int *allocations = dlsym(RTLD_DEFAULT, "allocations");
        printf("[%d, %d, %d, %d, %d, %d]\n", init, retain, cuMemAlloc_v2(&at, 3000ul << 20), cuMemAlloc_v2(&at, 100ul << 20),
               cuMemAllocManaged(&at, 100ul << 20, 1), allocations && *allocations > 0);
        return 0;
}
"""

INSIDE = {f.__name__: f for f in (host_memory, sleep_and_wake, nvml_before_fork, visible_devices)}


class Programs(unittest.TestCase):
    maxDiff = None

    def run_command(self, *command, cards="1x" + V100, options=()):
        with tempfile.TemporaryDirectory() as folder:
            p = subprocess.run([ALIQUOT, "run", "--slices", os.path.join(folder, "slices"), "--simulate", cards, "--gpu-mem", "2", *options,
                                "--", *command], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def inside(self, program, *before, **options):
        return self.run_command(*before, sys.executable, os.path.abspath(__file__), "--inside", program.__name__, **options)

    def test_host_memory_is_not_counted(self):
        self.assertEqual(self.inside(host_memory), {"created": [0] * 3, "pools": [[0, 0]] * 3, "free": 0, "total": 2154,
                                                    "card": [OUT_OF_MEMORY, 0]})

    def test_sleep_and_wake(self):
        words = self.inside(sleep_and_wake)
        self.assertEqual((words["reserved"], words["taken"]), (0, 0))
        self.assertEqual(words["rounds"], [[words["free"] // 20, OUT_OF_MEMORY, 0, 0, 0]] * 4)

    def test_nvml_before_fork(self):
        words = self.inside(nvml_before_fork)
        child = words["child"]
        self.assertEqual((child["init"], child["context"], child["over"], child["fits"]), (0, 0, OUT_OF_MEMORY, 0))
        total, used = child["cuda"]
        self.assertGreater(used, 500)
        self.assertEqual((total, child["nvml"]), (2154, [0, 0, total, used, total, used, 0, [[True, used - GROUP]]]))
        for when in "before", "after":
            self.assertEqual(words[when], [0, 0, total, 0, total, 0, 0, []])

    def test_visible_devices(self):
        for visible, n in (("0", 1), ("1", 1), ("1,0", 2), (None, 4), ("2,3", 2)):
            # the program's own: `aliquot run` sets the variable
            change = ["env", "-u", "CUDA_VISIBLE_DEVICES"] if visible is None else ["env", "CUDA_VISIBLE_DEVICES=" + visible]
            with self.subTest(visible):
                devices = self.inside(visible_devices, *change, cards="4x" + V100, options=["--gpu-count", "2"])
                self.assertEqual(len(devices), n)
                for device, number in zip(devices, (visible or "0,1,2,3").split(","), strict=True):
                    if int(number) > 1:
                        self.assertEqual(device, [OUT_OF_MEMORY])
                    else:
                        self.assertEqual((device[:3], device[4]), ([0, 0, OUT_OF_MEMORY], 2154))
                        self.assertLess(device[3], 2154 - 1500)

    def test_an_allocator_with_a_lock(self):
        """Linked in, and loaded before and behind libaliquot.so."""
        cuda = os.path.join(os.path.dirname(os.path.abspath(ALIQUOT)), "sim", "libcuda.so.1")
        with tempfile.TemporaryDirectory() as made:
            for name, text in (("allocator.c", ALLOCATOR), ("program.c", ALLOCATES)):
                with open(os.path.join(made, name), "w", encoding="ascii") as f:
                    f.write(text)
            for out, words in (("linked", ["program.c", "allocator.c"]), ("plain", ["program.c"]), ("allocator.so", ["-shared", "-fPIC", "allocator.c"])):
                subprocess.run([*CC, "-std=gnu11", "-O1", "-fno-builtin", "-rdynamic", "-o", out, *words, "-pthread", *([] if "-shared" in words else [cuda])],
                               cwd=made, check=True)
            for preload in None, made + "/allocator.so:$LD_PRELOAD", "$LD_PRELOAD:" + made + "/allocator.so":
                with self.subTest(preload):
                    command = [made + "/linked"] if preload is None else ["sh", "-c", 'LD_PRELOAD="%s" exec %s/plain' % (preload, made)]
                    self.assertEqual(self.run_command(*command), [0, 0, OUT_OF_MEMORY, 0, 0, 1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        print(json.dumps(INSIDE[sys.argv[2]]()))
    else:
        ALIQUOT, CC = sys.argv[1], sys.argv[2:]
        unittest.main(argv=sys.argv[:1], verbosity=2)
