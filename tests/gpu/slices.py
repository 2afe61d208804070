# SPDX-License-Identifier: Apache-2.0
"""Programs in slices of the card, and what the slice, the driver and the program itself say of them."""
import json
import os
import signal
import subprocess
import threading

from host import Host

MIB = 1 << 20
PATIENCE = int(os.environ.get("GPU_TEST_PATIENCE", "240"))  # seconds until a program counts as hanging


class Failure(Exception):
    """The test has found something; in words."""


class Skip(Exception):
    """The test cannot run here; what is missing."""


class Program:
    """A gpu-case, or another program that speaks as it does: KEY VALUE lines, and "== PLACE" where it waits for us."""

    def __init__(self, command, env):
        self.figures, self.words = {}, ""
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, start_new_session=True)
        self.errors = []
        self.reader = threading.Thread(target=self.read_errors, daemon=True)
        self.reader.start()
        self.hung = False
        self.timer = threading.Timer(PATIENCE, self.give_up)
        self.timer.daemon = True
        self.timer.start()

    def read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def give_up(self):
        self.hung = True
        self.kill()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def until(self, place):
        """Reads up to that place, where the program waits; go() sends it on. None: to its end, which must be a good one."""
        for line in self.process.stdout:
            key, _, value = line.strip().partition(" ")
            if key == "==":
                if value == place:
                    return self.figures
                self.go()
            elif key in ("fail:", "skip:"):
                self.words = line.strip()
            elif value.lstrip("-").isdigit():
                self.figures[key] = int(value)
        status = self.end()
        if status == 77:
            raise Skip(self.words.replace("skip: ", "") or "no reason given")
        if status == 125:
            raise Failure("no slice: " + "".join(self.errors).strip())
        if place is not None or status != 0:
            raise Failure("%s%s%s" % ("it hung; " if self.hung else "", self.words or "it ended with %d before %s" % (status, place),
                                      "".join(self.errors)[-300:].strip()))
        return self.figures

    def go(self):
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def finish(self):
        self.go()
        return self.until(None)

    def end(self):
        status = self.process.wait()
        self.timer.cancel()
        self.reader.join(5)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.kill()
        self.end()
        for f in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                f.close()
            except BrokenPipeError:
                pass


class Card:
    """The card that the tests use, and the slices made of it."""

    def __init__(self, build, scratch):
        self.build, self.slicedir = build, os.path.join(scratch, "slices")
        self.host = Host(0)
        self.env = dict(os.environ, CUDA_VISIBLE_DEVICES=self.host.uuid)
        self.env.pop("LD_PRELOAD", None)

    def path(self, name):
        return os.path.join(self.build, name)

    def program(self, command):
        """Without libaliquot.so."""
        return Program(command, self.env)

    def case(self, *arguments):
        return self.program([self.path("gpu-case"), *map(str, arguments)])

    def run(self, mib, command, cards=1, core=None, **more):
        which = ["--gpu", "0"] if cards == 1 else ["--gpu-count", str(cards)]
        if core is not None:
            which += ["--gpu-core", str(core)]
        return Program([self.path("aliquot-run"), "--slices", self.slicedir, "--gpu-mem", str(mib), "--gpu-mem-unit", "1MiB", *which, "--",
                        *command], dict(self.env, **more))

    def case_in(self, mib, *arguments):
        return self.run(mib, [self.path("gpu-case"), *map(str, arguments)])

    def beside(self, program, command):
        """Another program in the same slice."""
        env = dict(self.env, LD_PRELOAD=self.path("libaliquot.so"), ALIQUOT_SLICES=os.path.join(self.slicedir, "run-%d" % program.process.pid))
        return Program(command, env)

    def slice(self, program):
        """What aliquot-smi says of it: used, limit, peak, refused, in bytes."""
        text = subprocess.run([self.path("aliquot-smi"), "--slices", self.slicedir, "-o", "json"], stdout=subprocess.PIPE, check=True,
                              env=self.env, text=True, timeout=PATIENCE).stdout
        for one in json.loads(text)["slices"]:
            if one["container"] == "run-%d" % program.process.pid:
                return one["memory"]
        raise Failure("the slice is not there")
