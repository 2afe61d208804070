# SPDX-License-Identifier: Apache-2.0
"""What the tests of isolated containers start from. Takes ALIQUOT STORE_SERVER CLOCK_SHIM NVML out of the arguments."""

import ctypes
import os
import shutil
import subprocess
import sys

ARGUMENTS = list(sys.argv)  # a copy: the modules below change sys.argv

from node_case import Node  # noqa: E402
from node_lab import Limits  # noqa: E402

NVML = sys.argv.pop(1)
INSIDE = "/.aliquot"  # the path in the answers of the agent
ALONE = "ISOLATION_ALONE"  # environment: this process has its own mount namespace
MIB = 1 << 20
FOUR_CARDS = "4xTesla-V100-SXM2-16GB:16160MiB"
ALL = {"/etc/ld.so.preload", INSIDE} | {f"{INSIDE}/{name}" for name in (
    "libaliquot.so", "slice", "slice/0", "slice/0/limits", "slice/0/counters", "slice/0/doorbell")}
DIRECTORIES = {INSIDE, f"{INSIDE}/slice", f"{INSIDE}/slice/0"}
LIBC = ctypes.CDLL(None, use_errno=True)
MS_SHARED, MNT_DETACH = 1 << 20, 2
F_OFD_SETLK = 37  # Linux; Python has it since 3.9


def slices(lab):
    """The slices in the slice directory, without its locks."""
    return [name for name in os.listdir(lab.slices) if os.path.isdir(os.path.join(lab.slices, name))]


class Events(Node):
    def lab(self, **options):
        """With MEMORY_ISOLATION in the environment, the node asks for that mechanism, and has a driver that can be asked."""
        word = os.environ.get("MEMORY_ISOLATION")
        if word:
            options.setdefault("nvml", NVML)
            options["annotations"] = {"aliquot.dev/memory-isolation": word, **options.get("annotations", {})}
            self.addCleanup(lambda: self.assertTrue(lab.logged("memory is limited by the driver, too"), lab.log_tail()))
        lab = super().lab(**options)
        return lab

    def events(self, lab, reason):
        return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                if e["reason"] == reason]


class Started(Events):
    def started(self, lab, uid, name="main"):
        lab.wait(lambda: name in lab.running(uid), f"{name} runs")
        return lab.kubelet.runtime.of(uid, name)

    def limits(self, c, number=0):
        host, read_only = c.options["mounts"][f"{INSIDE}/slice/{number}/limits"]
        self.assertTrue(read_only)
        return Limits(host)

    def counters(self, c, number=0):
        host, read_only = c.options["mounts"][f"{INSIDE}/slice/{number}/counters"]
        self.assertFalse(read_only)
        return host


def alone():
    """Runs in its own mount namespace if possible, so that no mount stays behind."""
    if not os.environ.get(ALONE):
        way = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        if not shutil.which("unshare") or subprocess.run([*way, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            return
        os.environ[ALONE] = "1"
        os.execvp(way[0], [*way, sys.executable, *ARGUMENTS])
