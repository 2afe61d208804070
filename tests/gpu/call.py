# SPDX-License-Identifier: Apache-2.0
"""One of the three runs on a card: steps with a time limit each, a summary of a screen, and an archive of everything.

$OUT (./gpu-session unless set) gets NAME.txt, the summary, and NAME.tar.gz, in which the summary is the first file."""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VARIANTS = ("library", "forward", "unsupported")
SLICE_MIB = 4096
RESERVE = 15  # seconds at the end for summary and archive
TAIL = 12000  # bytes of an output that may be of use in a sentence


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kit", default=os.path.dirname(os.path.dirname(HERE)), help="what prepare.sh has made; default: where this script is")
    parser.add_argument("--variant", choices=VARIANTS, default="library")
    parser.add_argument("--seconds", type=int, default=540, help="for the whole run")
    parser.add_argument("--quick", action="store_true", help="one second for what takes longer: to see that all steps run")
    return parser.parse_args()


class Call:
    def __init__(self, name, chosen):
        self.name, self.kit, self.quick = name, os.path.abspath(chosen.kit), chosen.quick
        self.out = os.path.abspath(os.environ.get("OUT") or "gpu-session")
        self.folder = os.path.join(self.out, name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.summary = os.path.join(self.folder, "summary.txt")
        self.began, self.seconds = time.monotonic(), chosen.seconds
        self.not_run = 0  # steps
        self.simulated = bool(os.environ.get("ALIQUOT_SIM_DIR"))

    def left(self):
        return self.seconds - (time.monotonic() - self.began)

    def say(self, text):
        print(text, flush=True)
        with open(self.summary, "a") as f:
            f.write(text + "\n")

    def program(self, variant, name):
        return os.path.join(self.kit, variant, name)

    def in_slice(self, variant, command, *more):
        """A command in a slice of card 0. Each variant has its own directory, because their slices must not meet."""
        return [self.program(variant, "aliquot-run"), "--slices", os.path.join(self.folder, "slices-" + variant), "--gpu-mem", str(SLICE_MIB),
                "--gpu-mem-unit", "1MiB", "--gpu", "0", *more, "--", *command]

    def step(self, name, limit, command, reserve=RESERVE, **env):
        """Runs it for at most so many seconds, its output into NAME.txt. Its status and the end of its output: 124 for a step that was
        stopped, None for one that was not run."""
        limit = min(limit, int(self.left()) - reserve)
        if limit < 3:
            if self.not_run == 0:
                self.say("%s: not run, no time left" % name)
            self.not_run += 1
            return None, ""
        path = os.path.join(self.folder, name + ".txt")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            try:
                p = subprocess.Popen(command, env=dict(os.environ, **env), stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT,
                                     start_new_session=True)
            except OSError as e:
                f.write("%s\n" % e)
                return 127, str(e)
            status = self.wait(p, limit)
        with open(path, "rb") as f:
            f.seek(max(0, os.path.getsize(path) - TAIL))
            return status, f.read().decode("utf-8", "replace")

    @staticmethod
    def wait(p, limit):
        try:
            return p.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGTERM)
        try:
            p.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        return 124

    def finish(self):
        for name in os.listdir(self.folder):
            if name.startswith("slices-"):
                shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)
        if self.not_run > 0:
            self.say("%d steps were not run, no time left" % self.not_run)
        self.say("%s: %d s; %s.tar.gz has everything" % (self.name, time.monotonic() - self.began, self.name))
        shutil.copy(self.summary, os.path.join(self.out, self.name + ".txt"))
        with tarfile.open(os.path.join(self.out, self.name + ".tar.gz"), "w:gz") as archive:
            archive.add(self.summary, self.name + "/summary.txt")
            archive.add(self.folder, self.name, filter=lambda member: None if member.name.endswith("/summary.txt") else member)
        shutil.rmtree(self.folder)


def figures(text):
    """KEY VALUE lines of gpu-case"""
    pairs = (line.split(" ", 1) for line in text.splitlines() if " " in line)
    return {key: int(value) for key, value in pairs if value.isdigit()}


def need_card():
    """Ends with 77 where there is no card."""
    status = subprocess.run([sys.executable, os.path.join(HERE, "run.py"), "--check"]).returncode
    if status != 0:
        sys.exit(status)
