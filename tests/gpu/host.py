# SPDX-License-Identifier: Apache-2.0
"""The card as the host sees it: NVML asked directly, with no gate in between."""
import ctypes


class Missing(Exception):
    """What is not there, in words."""


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("compute", ctypes.c_uint)]


class Utilisation(ctypes.Structure):  # nvmlProcessUtilizationSample_t
    _fields_ = [("pid", ctypes.c_uint), ("time", ctypes.c_ulonglong), ("sm", ctypes.c_uint), ("memory", ctypes.c_uint),
                ("encoder", ctypes.c_uint), ("decoder", ctypes.c_uint)]


def load(soname):
    try:
        return ctypes.CDLL(soname)
    except OSError as e:
        raise Missing("%s: %s" % (soname, e))


class Host:
    """One card, by its NVML index."""

    def __init__(self, index=0):
        self.lib = load("libnvidia-ml.so.1")
        r = self.lib.nvmlInit_v2()
        if r != 0:
            raise Missing("nvmlInit is %d: no driver that answers" % r)
        n = ctypes.c_uint()
        self.must(self.lib.nvmlDeviceGetCount_v2(ctypes.byref(n)))
        self.cards = n.value
        if self.cards <= index:
            raise Missing("the driver counts %d cards" % self.cards)
        self.handle = ctypes.c_void_p()
        self.must(self.lib.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(self.handle)))
        self.name = self.text("nvmlDeviceGetName", self.handle)
        self.uuid = self.text("nvmlDeviceGetUUID", self.handle)
        self.driver = self.text("nvmlSystemGetDriverVersion")

    @staticmethod
    def must(r):
        if r != 0:
            raise RuntimeError("NVML answers %d" % r)

    def text(self, name, *arguments):
        out = ctypes.create_string_buffer(96)
        self.must(getattr(self.lib, name)(*arguments, out, 96))
        return out.value.decode("utf-8", "replace")

    def memory(self):
        m = Memory()
        self.must(self.lib.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(m)))
        return m

    def used(self):
        return self.memory().used

    def processes(self):
        """pid -> bytes; what the driver does not tell is left out."""
        n, found = ctypes.c_uint(512), (Process * 512)()
        if self.lib.nvmlDeviceGetComputeRunningProcesses_v3(self.handle, ctypes.byref(n), found) != 0:
            return {}
        unknown = (1 << 64) - 1
        return {p.pid: p.bytes for p in found[:n.value] if p.bytes != unknown}

    def utilisation(self, since):
        """NVML's status, and (pid, percent, time in us) of each sample after that time."""
        n, found = ctypes.c_uint(256), (Utilisation * 256)()
        r = self.lib.nvmlDeviceGetProcessUtilization(self.handle, found, ctypes.byref(n), ctypes.c_ulonglong(since))
        return r, [(x.pid, x.sm, x.time) for x in found[:n.value] if x.pid] if r == 0 else []


def cuda_version():
    v = ctypes.c_int()
    if load("libcuda.so.1").cuDriverGetVersion(ctypes.byref(v)) != 0:
        return "unknown"
    return "%d.%d" % (v.value // 1000, v.value % 1000 // 10)
