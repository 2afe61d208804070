# SPDX-License-Identifier: Apache-2.0
"""Processes of containers on one simulated card. Each tenant is an `aliquot run` with a share of
the card's time, measured by the card's own meters."""
import json
import os
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

import page as layout  # noqa: E402
from patience import until  # noqa: E402

CARD = "1xTesla-V100-SXM2-16GB:16160MiB"




class Tenant:
    """`aliquot run --gpu-core PERCENT -- aliquot-sample`, or another command; without a gate where
    percent is 0. terms: (weight, priority first, policy), written to the page once it exists."""

    def __init__(self, lab, percent, kernel_us, processes=1, seconds=3600, command=None, terms=None, stdout=subprocess.DEVNULL):
        self.percent, self.kernel_us = percent, kernel_us
        before = lab.slices()
        run = [lab.aliquot, "run", "--slices", lab.slicedir, "--gpu-mem", "2", "--gpu-core", str(percent), "--"] if percent else []
        command = command or [lab.sample, "--seconds", str(seconds), "--kernel-us", str(kernel_us), "--processes", str(processes)]
        self.process = subprocess.Popen(run + command, stdin=subprocess.DEVNULL, stdout=stdout, env=lab.environment, start_new_session=True)
        if percent and terms:
            self.say(lab, until(lambda: lab.slices() - before, "the slice is there").pop(), terms)

    @staticmethod
    def say(lab, name, terms):
        weight, first, policy = terms
        with open(os.path.join(lab.slicedir, name, "0", "limits"), "r+b") as page:
            page.seek(layout.WEIGHT)  # followed by: priority, policy
            page.write(struct.pack("<III", weight, first, 1 + policy))

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Lab:
    """directory: mount point of an aliquot-sim; libraries: the folder of the simulated libcuda."""

    def __init__(self, directory, slicedir, aliquot, sample, sim, libraries):
        self.directory, self.slicedir, self.aliquot, self.sample, self.sim = directory, slicedir, aliquot, sample, sim
        self.environment = dict(os.environ, ALIQUOT_SIM_DIR=directory, LD_LIBRARY_PATH=libraries,
                                PATH=libraries + ":" + os.environ["PATH"])
        self.sessions, self.ran = {}, {}

    def empty(self):
        """Waits until no process has a file of the card open, so that it can be unmounted."""
        until(lambda: not json.loads(subprocess.run([self.sim, "--status", self.directory], check=True, capture_output=True,
                                                    text=True).stdout)["clients"], "the card is left")

    def slices(self):
        """The tenants with pages."""
        try:
            return {name for name in os.listdir(self.slicedir)
                    if all(os.path.exists(os.path.join(self.slicedir, name, "0", file)) for file in ("limits", "counters"))}
        except FileNotFoundError:
            return set()

    def session(self, pid):
        if pid not in self.sessions:
            try:
                self.sessions[pid] = os.getsid(pid)
            except ProcessLookupError:
                return 0
        return self.sessions[pid]

    def meters(self, tenants):
        """(now, ns that each tenant has had until now), by the engine's own meters. A process that
        ends between two looks is not counted."""
        text = subprocess.run([self.sim, "--meters", self.directory], check=True, capture_output=True, text=True).stdout
        card = json.loads(text)["cards"][0]
        for group in card["groups"]:
            self.ran[group["client"]] = self.session(group["pid"]), group["ran"]
        return card["now"], [sum(ran for session, ran in self.ran.values() if session == t.process.pid) for t in tenants]
